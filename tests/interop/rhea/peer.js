// What the scenarios share: a connection, promises for rhea's events, and a line of JSON for each result.
'use strict';

const rhea = require('rhea');

const port = Number(process.argv[2]);

function say(result) {
    process.stdout.write(JSON.stringify(result) + '\n');
}

function connect(options) {
    const container = rhea.create_container();
    return container.connect(Object.assign({ host: '127.0.0.1', port, reconnect: false }, options));
}

// The next event of a kind; a second kind, when given, is a failure.
function once(emitter, event, failure) {
    return new Promise((resolve, reject) => {
        emitter.once(event, resolve);
        if (failure) emitter.once(failure, (context) => reject(new Error(failure + ' ' + context)));
    });
}

// Open a sender and wait for its credit.
async function open_sender(connection, options) {
    const sender = connection.open_sender(options);
    if (!sender.sendable()) await once(sender, 'sendable', 'sender_close');
    return sender;
}

// Send messages as there is credit, and wait until each has an outcome; the names of the outcomes.
function send_all(sender, messages) {
    return new Promise((resolve) => {
        const outcomes = new Array(messages.length);
        const index = new Map();
        let next = 0;
        let settled = 0;
        const put = () => {
            while (next < messages.length && sender.sendable()) {
                index.set(sender.send(messages[next]).id, next);
                next++;
            }
        };
        for (const name of ['accepted', 'rejected', 'released', 'modified']) {
            sender.on(name, (context) => {
                outcomes[index.get(context.delivery.id)] = name;
                settled++;
                if (settled === messages.length) resolve(outcomes);
            });
        }
        sender.on('sendable', put);
        put();
    });
}

// A receiver that keeps what comes until it is asked for, and settles nothing.
class Inbox {
    constructor(connection, source) {
        const options = typeof source === 'string' ? { source } : source;
        const defaults = { credit_window: 0, autoaccept: false, autosettle: false };
        this.receiver = connection.open_receiver(Object.assign(defaults, options));
        this.got = [];
        this.waiting = [];
        this.receiver.on('message', (context) => {
            this.got.push({ message: context.message, delivery: context.delivery });
            this.wake();
        });
    }

    wake() {
        while (this.waiting.length && this.got.length >= this.waiting[0].count) {
            const { count, resolve } = this.waiting.shift();
            resolve(this.got.splice(0, count));
        }
    }

    // Grant credit for so many, and wait for them.
    take(count) {
        this.receiver.add_credit(count);
        return this.wait(count);
    }

    wait(count) {
        return new Promise((resolve) => {
            this.waiting.push({ count, resolve });
            this.wake();
        });
    }
}

async function close(connection) {
    const closed = once(connection, 'connection_close');
    connection.close();
    await closed;
}

function run(scenario) {
    scenario().catch((error) => {
        say({ failed: String(error && error.stack ? error.stack : error) });
        process.exit(1);
    });
}

module.exports = { rhea, say, connect, once, open_sender, send_all, Inbox, close, run };
