// Queues: sending, receiving, and what can be said of a message.
'use strict';

const { assert, NotOffered, made, send, receiver, take, completed, left, create } = require('./actor.js');

const COUNT = 10;

function numbers() {
    return [...Array(COUNT).keys()];
}

async function sending(client, name) {
    await send(client, name, ...numbers().map((number) => 'message ' + number));
}

async function receiving(client, name) {
    const sent = numbers().map((number) => ({
        body: 'message ' + number,
        messageId: 'id ' + number,
        correlationId: 'correlation ' + number,
        subject: 'subject',
        applicationProperties: { number },
    }));
    await send(client, name, ...sent);
    const link = receiver(client, name);
    const got = await take(link, COUNT);
    for (const [number, message] of got.entries()) {
        for (const key of Object.keys(sent[number])) assert.deepStrictEqual(message[key], sent[number][key], key);
    }
    await completed(link, got);
    assert.deepStrictEqual(await left(client, name), [], 'what is left');
}

async function accept(client, name) {
    await send(client, name, 'a');
    const link = receiver(client, name);
    await link.completeMessage((await take(link, 1))[0]);
    await link.close();
    assert.deepStrictEqual(await left(client, name), [], 'what is left');
    return 'by completeMessage';
}

async function reject(client, name) {
    await create(client, { type: 'org.ambermq.queue', name }, { dead_letter: name + '-dead' });
    await send(client, name, 'a', 'b');
    const link = receiver(client, name);
    const [bad] = await take(link, 1);
    await link.deadLetterMessage(bad, { deadLetterReason: 'bad', deadLetterErrorDescription: 'not this one' });
    assert.deepStrictEqual(await completed(link, await take(link, 1)), ['b'], 'what comes next');
    assert.deepStrictEqual(await left(client, name), [], 'what is left');
    const dead = client.createReceiver(name, { subQueueType: 'deadLetter' });
    const shown = await dead.peekMessages(9);
    assert.deepStrictEqual(shown.map((message) => message.body), ['a'], 'what the dead letters are');
    assert.deepStrictEqual(await completed(dead, await take(dead, 1)), ['a'], 'what the dead-letter queue has');
    await dead.close();
    return 'by deadLetterMessage; subQueueType peeks and receives it';
}

// Abandon a message to the same link, and defer it to another one; neither call says that the delivery has failed.
async function modify(client, name) {
    await send(client, name, 'a');
    const link = receiver(client, name);
    await link.abandonMessage((await take(link, 1))[0], { why: 'it failed' });
    const [again] = await take(link, 1);
    assert.equal(again._rawAmqpMessage.messageAnnotations.why, 'it failed', 'the annotation that came with it');
    await link.deferMessage(again);
    const other = receiver(client, name);
    const [elsewhere] = await take(other, 1);
    assert.strictEqual(elsewhere.deliveryCount, 0, 'delivery-count');
    await other.completeMessage(elsewhere);
    throw new NotOffered('abandonMessage and deferMessage modify, but neither sets delivery-failed');
}

// Peek, and use what else the node of a queue answers: schedule, cancel, deferred messages.
async function browse(client, name) {
    await send(client, name, 'a', 'b', 'c');
    const link = receiver(client, name);
    const texts = (messages) => messages.map((message) => message.body);
    assert.deepStrictEqual(texts(await link.peekMessages(2)), ['a', 'b'], 'what is shown');
    assert.deepStrictEqual(texts(await link.peekMessages(9)), ['c'], 'what is shown next');
    const sender = client.createSender(name);
    const later = new Date(Date.now() + 3600 * 1000);
    const numbers = await sender.scheduleMessages([made({ body: 'd' }), made({ body: 'e' })], later);
    const from = { fromSequenceNumber: numbers[0] };
    assert.deepStrictEqual(texts(await link.peekMessages(9, from)), ['d', 'e'], 'what is scheduled');
    await sender.cancelScheduledMessages(numbers);
    assert.deepStrictEqual(texts(await link.peekMessages(9, from)), [], 'what is cancelled');
    const [deferred] = await take(link, 1);
    await link.deferMessage(deferred);
    const [again] = await link.receiveDeferredMessages(deferred.sequenceNumber);
    assert.strictEqual(again.body, 'a', 'what was deferred');
    await link.completeMessage(again);
    await link.close();
    assert.deepStrictEqual(await left(client, name), ['b', 'c'], 'what is left');
    return 'by peekMessages; schedule, cancel and deferred messages too';
}

async function lose_link(client, name) {
    await send(client, name, 'a');
    const link = receiver(client, name);
    await take(link, 1);
    await link.close();
    const another = receiver(client, name);
    const again = await take(another, 1);
    assert.strictEqual(again[0].deliveryCount, 1, 'delivery-count');
    await completed(another, again);
}

async function large_message(client, name) {
    const body = Buffer.alloc(3 * 1024 * 1024).map((_, place) => (place * 31) >> 3);
    await send(client, name, { body });
    const link = receiver(client, name);
    const got = await take(link, 1);
    assert.ok(Buffer.compare(got[0].body, body) === 0, 'the same bytes');
    await completed(link, got);
}

module.exports = {
    send: sending,
    receive: receiving,
    accepted: accept,
    rejected: reject,
    modified: modify,
    browse,
    'lost-link': lose_link,
    'large-message': large_message,
};
