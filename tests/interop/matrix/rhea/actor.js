// What all behaviours do with rhea: connections, texts sent, what is drained, and what is left of a queue.
'use strict';

const assert = require('assert');
const { rhea, connect, once, open_sender, send_all, Inbox, close } = require('../../rhea/peer.js');

// Connect, as a container of that name where one is given.
async function connected(url, container_id, options) {
    const { hostname: host, port } = new URL(url);
    const named = container_id ? { container_id } : {};
    const connection = connect(Object.assign({ host, port: Number(port) }, named, options));
    await once(connection, 'connection_open', 'connection_close');
    return connection;
}

function durable(body, colour) {
    return { durable: true, body, application_properties: colour ? { colour } : {} };
}

// Send texts or messages on a link of its own; each must be accepted.
async function send(connection, target, ...bodies) {
    const sender = await open_sender(connection, { target });
    const outcomes = await send_all(sender, bodies.map((body) => (typeof body === 'string' ? durable(body) : body)));
    assert.deepStrictEqual(outcomes, bodies.map(() => 'accepted'));
    await end(sender, 'sender_close');
}

async function receiver(connection, source, name) {
    const inbox = new Inbox(connection, name ? { source, name } : { source });
    await once(inbox.receiver, 'receiver_open', 'receiver_error');
    return inbox;
}

// Give credit, drain it, and return the texts that came, accepted.
async function drained(inbox, credit) {
    const done = once(inbox.receiver, 'receiver_drained');
    inbox.receiver.add_credit(credit);
    inbox.receiver.drain_credit();
    await done;
    inbox.receiver.drain = false;
    return accepted(inbox.got.splice(0));
}

function accepted(got) {
    return got.map(({ message, delivery }) => {
        delivery.accept();
        return message.body;
    });
}

// Take what a queue has, on a connection of its own.
async function left(url, source) {
    const connection = await connected(url);
    const texts = await drained(await receiver(connection, source), 100);
    await close(connection);
    return texts;
}

async function end(link, event) {
    const closed = once(link, event);
    link.close();
    await closed;
}

module.exports = { assert, rhea, once, open_sender, send_all, close, connected, durable, send, receiver, drained, accepted, left, end };
