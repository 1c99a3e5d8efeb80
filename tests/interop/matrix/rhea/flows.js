// Credit, drain, and a connection that comes back.
'use strict';

const { assert, once, close, connected, durable, send, receiver, drained, accepted, left } = require('./actor.js');

const COUNT = 100;

async function credit(url, name) {
    const texts = [...Array(10).keys()].map(String);
    const connection = await connected(url);
    await send(connection, name, ...texts);
    const inbox = await receiver(connection, name);
    assert.deepStrictEqual(accepted(await inbox.take(3)), texts.slice(0, 3), 'what credit for three brings');
    // Another receiver takes the rest: nothing was on its way beyond the credit.
    assert.deepStrictEqual(await left(url, name), texts.slice(3), 'what is left');
    await send(connection, name, 'later');
    assert.deepStrictEqual(accepted(await inbox.take(1)), ['later'], 'what more credit brings');
    await close(connection);
}

async function drain(url, name) {
    const connection = await connected(url);
    const inbox = await receiver(connection, name);
    assert.deepStrictEqual(await drained(inbox, 5), [], 'what an empty queue has');
    await send(connection, name, 'a', 'b', 'c');
    assert.deepStrictEqual(await drained(inbox, 2), ['a', 'b'], 'what there is credit for');
    assert.deepStrictEqual(await drained(inbox, 50), ['c'], 'what is there');
    await send(connection, name, 'd');
    assert.deepStrictEqual(await drained(inbox, 1), ['d'], 'what comes after a drain');
    await close(connection);
}

// Have the broker killed and started again; resolves when it is back.
async function restart() {
    process.stdout.write('restart\n');
    await once(process.stdin, 'data');
    process.stdin.pause();
}

// Send texts as there is credit; the broker is restarted when half of them are accepted, and nothing is under way.
function send_over_a_restart(connection, name, texts) {
    return new Promise((resolve, reject) => {
        const sender = connection.open_sender(name);
        let next = 0;
        let count = 0;
        const put = () => {
            const end = count < COUNT / 2 ? COUNT / 2 : COUNT;
            while (next < end && sender.sendable()) sender.send(durable(texts[next++]));
        };
        sender.on('sendable', put);
        sender.on('accepted', () => {
            count++;
            if (count === COUNT / 2) restart().then(put, reject);
            if (count === COUNT) resolve();
        });
    });
}

async function reconnect(url, name) {
    const texts = [...Array(COUNT).keys()].map((number) => 'message ' + number);
    const connection = await connected(url, '', { reconnect: 50 });
    const came_back = once(connection, 'disconnected');
    await send_over_a_restart(connection, name, texts);
    await came_back;
    await close(connection);
    assert.deepStrictEqual(await left(url, name), texts, 'what comes');
    return "by itself: rhea reconnects";
}

module.exports = { credit, drain, reconnect };
