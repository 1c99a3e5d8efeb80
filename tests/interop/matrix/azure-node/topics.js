// Topics as paths of the broker's, and subscriptions of Service Bus as queues that are wired to them.
'use strict';

const { setTimeout: pause } = require('timers/promises');
const { assert, NO_LOCKS, connected, made, send, receiver, take, completed, left, create } = require('./actor.js');

const WIRED = 'createReceiver(TOPIC, NAME) receives from the queue TOPIC/Subscriptions/NAME, attached to the muxer TOPIC';

// Receive all that comes from an address; the texts appear in the list that is returned.
function heard(client, address) {
    const texts = [];
    const processError = async ({ error }) => process.stderr.write(String(error) + '\n');
    const processMessage = async (message) => texts.push(message.body);
    client.createReceiver(address, NO_LOCKS).subscribe({ processMessage, processError });
    return texts;
}

// Wait until all have heard a text, and do something meanwhile.
async function heard_by(lists, text, meanwhile) {
    for (let turn = 0; turn < 100 && !lists.every((texts) => texts.includes(text)); turn++) {
        await meanwhile();
        await pause(200);
    }
}

async function topic(client, name) {
    const address = '/topics/' + name;
    const both = [heard(client, address), heard(client, address)];
    const sender = client.createSender(address);
    // subscribe does not tell when its link is there; what no link is there for is released, an error for the SDK.
    await heard_by(both, 'is a link there', () => sender.sendMessages(made('is a link there')).catch(() => {}));
    const news = ['news', 'more news', 'the end'];
    for (const text of news) await sender.sendMessages(made(text));
    await heard_by(both, 'the end', () => {});
    for (const texts of both) assert.deepStrictEqual(texts.slice(-3), news, 'what both get');
    return 'by the address /topics/NAME as the name of a queue';
}

// Make a subscription of Service Bus: a queue of the name that its clients receive from, attached to the topic.
async function subscribed(client, topic, subscription) {
    const member = `${topic}/Subscriptions/${subscription}`;
    await create(client, { type: 'org.ambermq.queue', name: member }, {});
    await create(client, { type: 'org.ambermq.attachment' }, { muxer: 'TOPIC', member, pattern: topic });
}

async function durable_subscription(client, name, url) {
    const address = '/topics/' + name;
    await subscribed(client, name, 'mine');
    const first = connected(url);
    const link = receiver(first, name, 'mine');
    await send(client, address, 'while it is there');
    assert.deepStrictEqual(await completed(link, await take(link, 1)), ['while it is there']);
    await first.close();
    await send(client, address, 'rose', 'brick');
    const again = connected(url);
    assert.deepStrictEqual(await left(again, name, 'mine'), ['rose', 'brick'], 'what has waited');
    await again.close();
    return WIRED;
}

async function shared_subscription(client, name, url) {
    await subscribed(client, name, 'ours');
    const sent = [...Array(10).keys()].map((number) => 'message ' + number);
    await send(client, '/topics/' + name, ...sent);
    const second = connected(url);
    const one = receiver(client, name, 'ours');
    const two = receiver(second, name, 'ours');
    const got = await completed(one, await take(one, 5));
    got.push(...(await completed(two, await take(two, 5))));
    assert.deepStrictEqual(got.sort(), sent, 'what both have, each message once');
    assert.deepStrictEqual(await left(client, name, 'ours'), [], 'what is left');
    await second.close();
    return WIRED;
}

module.exports = { topic, 'durable-subscription': durable_subscription, 'shared-subscription': shared_subscription };
