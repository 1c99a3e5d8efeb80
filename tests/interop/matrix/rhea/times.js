// When a message is delivered: its priority, its time to live, its delivery delay.
'use strict';

const { assert, connected, send, receiver, drained, accepted, close, left } = require('./actor.js');

const LEVELS = [...Array(10).keys()];
const SHORT_MS = 300;
const DELAY_MS = 1000;

function pause(milliseconds) {
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function priority(url, name) {
    const connection = await connected(url);
    await send(connection, name, ...LEVELS.map((level) => ({ durable: true, priority: level, body: 'level ' + level })));
    const got = await drained(await receiver(connection, name), 100);
    assert.deepStrictEqual(got, LEVELS.map((level) => 'level ' + level).reverse(), 'the order');
    await close(connection);
}

async function expiry(url, name) {
    const connection = await connected(url);
    await send(connection, name, { durable: true, ttl: SHORT_MS, body: 'short' }, 'long');
    await pause(2 * SHORT_MS);
    await close(connection);
    assert.deepStrictEqual(await left(url, name), ['long'], 'what is left');
}

async function delay(url, name) {
    const connection = await connected(url);
    const inbox = await receiver(connection, name);
    const taken = inbox.take(2);
    const began = performance.now();
    const message_annotations = { 'x-opt-delivery-delay': DELAY_MS };
    await send(connection, name, { durable: true, message_annotations, body: 'late' }, 'at once');
    assert.deepStrictEqual(accepted(await taken), ['at once', 'late'], 'what comes');
    assert.ok(performance.now() - began >= DELAY_MS, 'it comes after its delay');
    await close(connection);
    return 'by x-opt-delivery-delay';
}

module.exports = { priority, expiry, 'delivery-delay': delay };
