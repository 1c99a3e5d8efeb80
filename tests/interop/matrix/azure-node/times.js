// When a message is delivered: its priority, its time to live, its delivery delay.
'use strict';

const { assert, send, receiver, take, completed, left } = require('./actor.js');

const LEVELS = [...Array(10).keys()];
const SHORT_MS = 300;
const DELAY_MS = 1000;

async function priority(client, name) {
    const sender = client.createSender(name);
    for (const level of LEVELS) {
        const properties = { messageId: 'level ' + level };
        await sender.sendMessages({ bodyType: 'data', body: 'level ' + level, header: { priority: level }, properties });
    }
    await sender.close();
    const got = await left(client, name);
    assert.deepStrictEqual(got, LEVELS.map((level) => 'level ' + level).reverse(), 'the order');
    return 'by the header of an AmqpAnnotatedMessage';
}

async function expiry(client, name) {
    await send(client, name, { body: 'short', timeToLive: SHORT_MS }, 'long');
    await new Promise((resolve) => setTimeout(resolve, 2 * SHORT_MS));
    assert.deepStrictEqual(await left(client, name), ['long'], 'what is left');
    return 'by timeToLive';
}

async function delay(client, name) {
    const scheduledEnqueueTimeUtc = new Date(Date.now() + DELAY_MS);
    await send(client, name, { body: 'late', scheduledEnqueueTimeUtc }, 'at once');
    const link = receiver(client, name);
    assert.deepStrictEqual(await completed(link, await take(link, 2)), ['at once', 'late'], 'what comes');
    assert.ok(Date.now() >= scheduledEnqueueTimeUtc.getTime(), 'it comes after its time');
    await link.close();
    return 'by scheduledEnqueueTimeUtc';
}

module.exports = { priority, expiry, 'delivery-delay': delay };
