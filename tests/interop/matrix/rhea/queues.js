// Queues: sending, receiving, outcomes, browsing, selectors, temporary ones, the anonymous relay.
'use strict';

const { assert, rhea, open_sender, send_all, close, connected, durable, send, receiver, drained, accepted, left, end } = require('./actor.js');

const COUNT = 10;

function numbers() {
    return [...Array(COUNT).keys()];
}

async function sending(url, name) {
    const connection = await connected(url);
    await send(connection, name, ...numbers().map((number) => 'message ' + number));
    await close(connection);
}

async function receiving(url, name) {
    const connection = await connected(url);
    const sent = numbers().map((number) => ({
        durable: true,
        priority: 7,
        message_id: 'id ' + number,
        correlation_id: 'correlation ' + number,
        subject: 'subject',
        application_properties: { number },
        body: 'message ' + number,
    }));
    await send(connection, name, ...sent);
    const inbox = await receiver(connection, name);
    const got = await inbox.take(COUNT);
    for (const [number, { message }] of got.entries()) {
        for (const key of Object.keys(sent[number])) assert.deepEqual(message[key], sent[number][key], key);
    }
    accepted(got);
    assert.deepStrictEqual(await drained(inbox, 100), [], 'what is left');
    await close(connection);
}

async function accept(url, name) {
    const connection = await connected(url);
    await send(connection, name, 'a');
    accepted(await (await receiver(connection, name)).take(1));
    await close(connection);
    assert.deepStrictEqual(await left(url, name), [], 'what is left');
}

async function reject(url, name) {
    const connection = await connected(url);
    await send(connection, name, 'a', 'b');
    const inbox = await receiver(connection, name);
    const [{ delivery }] = await inbox.take(1);
    delivery.reject({ condition: 'app:bad', description: 'not this one' });
    const [{ message }] = await inbox.take(1);
    assert.strictEqual(message.body, 'b', 'what comes next');
    await close(connection);
    assert.deepStrictEqual(await left(url, name), ['b'], 'what is left');
}

// End a message, and take it again.
async function seen_again(url, name, end_it) {
    const connection = await connected(url);
    await send(connection, name, 'a');
    const inbox = await receiver(connection, name);
    const [{ delivery }] = await inbox.take(1);
    end_it(delivery);
    const again = await inbox.take(1);
    accepted(again);
    await close(connection);
    return again[0].message;
}

async function release(url, name) {
    const again = await seen_again(url, name, (delivery) => delivery.release());
    assert.strictEqual(again.delivery_count || 0, 0, 'delivery-count');
}

async function modify(url, name) {
    const message_annotations = { 'x-opt-why': 'it failed' };
    const again = await seen_again(url, name, (delivery) => delivery.modified({ delivery_failed: true, message_annotations }));
    assert.strictEqual(again.delivery_count, 1, 'delivery-count');
    assert.deepEqual(again.message_annotations, message_annotations, 'the annotations that came with it');
}

async function lose_link(url, name) {
    const connection = await connected(url);
    await send(connection, name, 'a');
    const inbox = await receiver(connection, name);
    await inbox.take(1);
    await end(inbox.receiver, 'receiver_close');
    const again = await (await receiver(connection, name, 'another')).take(1);
    assert.strictEqual(again[0].message.delivery_count, 1, 'delivery-count');
    accepted(again);
    await close(connection);
}

async function browse(url, name) {
    const connection = await connected(url);
    await send(connection, name, 'a', 'b', 'c');
    const browser = await receiver(connection, { address: name, distribution_mode: 'copy' });
    assert.deepStrictEqual(await drained(browser, 100), ['a', 'b', 'c'], 'what is shown');
    await close(connection);
    assert.deepStrictEqual(await left(url, name), ['a', 'b', 'c'], 'what is left');
}

async function select(url, name) {
    const connection = await connected(url);
    const coloured = [['sky', 'blue'], ['rose', 'red'], ['sea', 'blue'], ['brick', 'red']];
    await send(connection, name, ...coloured.map(([text, colour]) => durable(text, colour)));
    const filter = rhea.filter.selector("colour = 'red' AND JMSPriority < 9");
    const reds = await receiver(connection, { address: name, filter });
    assert.deepStrictEqual(await drained(reds, 100), ['rose', 'brick'], 'what is selected');
    await close(connection);
    assert.deepStrictEqual(await left(url, name), ['sky', 'sea'], 'what is left');
}

async function temporary_queue(url) {
    const connection = await connected(url);
    const other = await connected(url);
    const answers = await receiver(connection, { dynamic: true });
    await send(other, answers.receiver.source.address, 'answer');
    assert.deepStrictEqual(accepted(await answers.take(1)), ['answer'], 'what comes');
    await close(other);
    await close(connection);
}

async function anonymous_relay(url, name) {
    const connection = await connected(url);
    const addresses = [name + '.one', name + '.two'];
    for (const address of addresses) await open_sender(connection, address);
    const sender = await open_sender(connection, { target: {} });
    const outcomes = await send_all(sender, addresses.map((to) => ({ durable: true, to, body: to })));
    assert.deepStrictEqual(outcomes, ['accepted', 'accepted']);
    await close(connection);
    for (const address of addresses) assert.deepStrictEqual(await left(url, address), [address], 'what the queue has');
}

async function large_message(url, name) {
    const connection = await connected(url);
    const body = Buffer.alloc(3 * 1024 * 1024).map((_, place) => (place * 31) >> 3);
    await send(connection, name, { durable: true, body });
    const got = await (await receiver(connection, name)).take(1);
    assert.ok(Buffer.compare(got[0].message.body, body) === 0, 'the same bytes');
    accepted(got);
    await close(connection);
}

async function groups(url, name) {
    const connection = await connected(url);
    const inboxes = [await receiver(connection, name), await receiver(connection, name)];
    const taken = [inboxes[0].take(5), inboxes[1].take(3)];
    const made = ['a1', 'b1', 'c1', 'a2', 'b2', 'c2', 'a3', 'a4'].map((body) => {
        const group_sequence = body === 'a3' ? 0xffffffff : Number(body[1]);
        return { durable: true, group_id: body[0], group_sequence, body };
    });
    await send(connection, name, ...made);
    assert.deepStrictEqual(accepted(await taken[0]), ['a1', 'c1', 'a2', 'c2', 'a3'], 'what the first gets');
    assert.deepStrictEqual(accepted(await taken[1]), ['b1', 'b2', 'a4'], 'what the second gets');
    await close(connection);
}

module.exports = {
    send: sending,
    receive: receiving,
    accepted: accept,
    rejected: reject,
    released: release,
    modified: modify,
    'lost-link': lose_link,
    browse,
    selector: select,
    'temporary-queue': temporary_queue,
    'anonymous-relay': anonymous_relay,
    groups,
    'large-message': large_message,
};
