// Topics, temporary ones, and subscriptions.
'use strict';

const { assert, rhea, once, open_sender, close, connected, durable, send, receiver, drained, end } = require('./actor.js');

async function both_get(one, two, expected) {
    assert.deepStrictEqual(await drained(one, 100), expected, 'what the first gets');
    assert.deepStrictEqual(await drained(two, 100), expected, 'what the second gets');
}

async function topic(url, name) {
    const connection = await connected(url);
    const address = '/topics/' + name;
    const one = await receiver(connection, address);
    const two = await receiver(connection, address);
    await send(connection, address, 'news');
    await both_get(one, two, ['news']);
    await close(connection);
}

async function temporary_topic(url) {
    const connection = await connected(url);
    const made = await open_sender(connection, { target: { dynamic: true, capabilities: 'temporary-topic' } });
    const { address } = made.target;
    const one = await receiver(connection, address);
    const two = await receiver(connection, address);
    const other = await connected(url);
    await send(other, address, 'news');
    await both_get(one, two, ['news']);
    await close(other);
    await close(connection);
    return 'by a dynamic target with the capability temporary-topic';
}

async function durable_subscription(url, name) {
    const address = '/topics/' + name;
    const source = { address, durable: 2, expiry_policy: 'never', filter: rhea.filter.selector("colour = 'red'") };
    const sender = await connected(url);
    const first = await connected(url, name);
    const inbox = await receiver(first, source, 'mine');
    const detached = once(inbox.receiver, 'receiver_close');
    inbox.receiver.detach();
    await detached;
    await close(first);
    await send(sender, address, durable('rose', 'red'), durable('brick', 'red'));

    const again = await connected(url, name);
    const kept = await receiver(again, source, 'mine');
    assert.deepStrictEqual(await drained(kept, 100), ['rose', 'brick'], 'what has waited');
    await send(sender, address, durable('left behind', 'red'));
    await end(kept.receiver, 'receiver_close');
    const fresh = await receiver(again, source, 'mine');
    assert.deepStrictEqual(await drained(fresh, 100), [], 'what an ended subscription has kept');
    await close(again);
    await close(sender);
    return 'with a selector; a detach leaves it, closing the link ends it';
}

async function shared_subscription(url, name) {
    for (const is_durable of [false, true]) await share(url, '/topics/' + name + '.' + is_durable, is_durable);
    return 'volatile and durable, by the capabilities shared and global';
}

async function share(url, address, is_durable) {
    const lasting = is_durable ? { durable: 2, expiry_policy: 'never' } : {};
    const source = Object.assign({ address, capabilities: ['topic', 'shared', 'global'] }, lasting);
    const first = await connected(url);
    const second = await connected(url);
    const one = await receiver(first, source, 'ours');
    const two = await receiver(second, source, 'ours');
    const sent = [...Array(10).keys()].map((number) => 'message ' + number);
    await send(first, address, ...sent);
    const got = await drained(one, 5);
    assert.strictEqual(got.length, 5, 'how many the first has');
    got.push(...(await drained(two, 100)));
    assert.deepStrictEqual(got.sort(), sent, 'what both have, each message once');
    await end(one.receiver, 'receiver_close');
    await end(two.receiver, 'receiver_close');
    await close(first);
    await close(second);
}

module.exports = {
    topic,
    'temporary-topic': temporary_topic,
    'durable-subscription': durable_subscription,
    'shared-subscription': shared_subscription,
};
