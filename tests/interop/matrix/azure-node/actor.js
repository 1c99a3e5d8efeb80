// What all behaviours do with the Service Bus SDK: clients, texts sent, messages taken, and what is left of a queue.
'use strict';

const assert = require('assert');
const { ServiceBusClient } = require('@azure/service-bus');

const PATIENCE = { maxWaitTimeInMs: 20000 };
// How long nothing comes from where nothing is.
const SILENCE = { maxWaitTimeInMs: 2000 };
// There are no locks here that a client would have to renew.
const NO_LOCKS = { maxAutoLockRenewalDurationInMs: 0 };

// Thrown by a behaviour that has shown what its calls do, where that is not what the row means.
class NotOffered extends Error {}

// Connect as to the emulator: no TLS, and the token of a key that the broker does not check.
function connected(url) {
    const key = 'SharedAccessKeyName=any;SharedAccessKey=any;UseDevelopmentEmulator=true;';
    const retryOptions = { maxRetries: 50, retryDelayInMs: 200, timeoutInMs: 20000 };
    return new ServiceBusClient(`Endpoint=sb://${new URL(url).host};${key}`, { retryOptions });
}

let count = 0;

// The SDK wants a message-id of whatever it receives.
function made(message) {
    const messageId = 'id ' + count++;
    return Object.assign({ messageId }, typeof message === 'string' ? { body: message } : message);
}

// Send texts or messages, one by one; each is accepted when this resolves.
async function send(client, address, ...messages) {
    const sender = client.createSender(address);
    for (const message of messages) await sender.sendMessages(made(message));
    await sender.close();
}

// A receiver from a queue, or from a topic and a subscription.
function receiver(client, ...names) {
    return client.createReceiver(...names, NO_LOCKS);
}

// The next messages, all of which must come; the link never has more credit than for these.
async function take(link, wanted) {
    const got = [];
    while (got.length < wanted) {
        const more = await link.receiveMessages(wanted - got.length, PATIENCE);
        assert.ok(more.length, `${got.length} of ${wanted} messages came within ${PATIENCE.maxWaitTimeInMs} ms`);
        got.push(...more);
    }
    return got;
}

async function completed(link, got) {
    for (const message of got) await link.completeMessage(message);
    return got.map((message) => message.body);
}

// Take what a queue has, or a subscription.
async function left(client, ...names) {
    const link = receiver(client, ...names);
    const texts = [];
    for (;;) {
        const got = await link.receiveMessages(100, SILENCE);
        if (!got.length) break;
        texts.push(...(await completed(link, got)));
    }
    await link.close();
    return texts;
}

// Have the management node make something; the answer comes to a queue.
async function create(client, applicationProperties, body) {
    const answers = 'answers';
    await send(client, answers, 'makes the queue');
    const link = receiver(client, answers);
    await completed(link, await take(link, 1));
    Object.assign(applicationProperties, { operation: 'CREATE' });
    const properties = { messageId: 'request', replyTo: answers };
    const sender = client.createSender('$management');
    await sender.sendMessages({ body, bodyType: 'value', properties, applicationProperties });
    const [answer] = await take(link, 1);
    assert.strictEqual(answer.applicationProperties.statusCode, 201, answer.applicationProperties.statusDescription);
    await completed(link, [answer]);
    await sender.close();
    await link.close();
}

module.exports = { assert, NotOffered, NO_LOCKS, connected, made, send, receiver, take, completed, left, create };
