// Credit, drain, and a connection that comes back.
'use strict';

const { once } = require('events');
const { AzureLogger, setLogLevel } = require('@azure/logger');
const { assert, made, send, receiver, take, completed, left } = require('./actor.js');

async function credit(client, name) {
    const texts = [...Array(10).keys()].map(String);
    await send(client, name, ...texts);
    const link = receiver(client, name);
    const got = await take(link, 3);
    // Another receiver takes the rest: nothing was on its way beyond the credit.
    assert.deepStrictEqual(await left(client, name), texts.slice(3), 'what is left');
    assert.deepStrictEqual(await completed(link, got), texts.slice(0, 3), 'what credit for three brings');
    await send(client, name, 'later');
    assert.deepStrictEqual(await completed(link, await take(link, 1)), ['later'], 'what more credit brings');
    return 'by the count of receiveMessages';
}

// receiveMessages drains what credit is left a second after the first message; it would close a link that does not answer, and warn.
async function drain(client, name) {
    const warnings = [];
    AzureLogger.log = (...words) => warnings.push(words.join(' '));
    setLogLevel('warning');
    await send(client, name, 'a', 'b', 'c');
    const link = receiver(client, name);
    const got = await link.receiveMessages(50, { maxWaitTimeInMs: 20000 });
    assert.deepStrictEqual(await completed(link, got), ['a', 'b', 'c'], 'what is there');
    await send(client, name, 'd');
    assert.deepStrictEqual(await left(client, name), ['d'], 'what a drained link leaves to others');
    await send(client, name, 'e');
    assert.deepStrictEqual(await completed(link, await take(link, 1)), ['e'], 'what comes after a drain');
    setLogLevel();
    assert.deepStrictEqual(warnings.filter((text) => text.includes('draining')), [], 'drains that were not answered');
    return 'by receiveMessages, which drains the credit that is left';
}

// Send texts; the broker is killed and started again when half of them are accepted.
async function reconnect(client, name) {
    const texts = [...Array(20).keys()].map((number) => 'message ' + number);
    const sender = client.createSender(name);
    for (const [number, text] of texts.entries()) {
        if (number === 10) {
            process.stdout.write('restart\n');
            await once(process.stdin, 'data');
            process.stdin.pause();
        }
        await sender.sendMessages(made(text));
    }
    assert.deepStrictEqual(await left(client, name), texts, 'what comes');
    return 'by itself: the sender retries';
}

module.exports = { credit, drain, reconnect };
