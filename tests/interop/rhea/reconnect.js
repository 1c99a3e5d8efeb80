// A sender that reconnects by itself: what was not accepted is sent again when the broker is back.
'use strict';

const { say, connect, run } = require('./peer.js');

const COUNT = 3000;
const TELL_AT = 500;

run(async () => {
    const connection = connect({ reconnect: 50 });
    const sender = connection.open_sender(process.argv[3]);
    let unsent = [...Array(COUNT).keys()];
    let under_way = new Map();
    let accepted = 0;
    sender.on('sendable', () => {
        while (unsent.length && sender.sendable()) {
            const id = unsent.shift();
            under_way.set(sender.send({ durable: true, message_id: id, body: id }), id);
        }
    });
    sender.on('accepted', (context) => {
        if (!under_way.delete(context.delivery)) return;
        accepted++;
        if (accepted === TELL_AT) say({ accepted });
        if (accepted === COUNT) {
            say({ accepted });
            connection.close();
        }
    });
    connection.on('disconnected', (context) => {
        if (!context.reconnecting) return;
        say({ disconnected: true });
        unsent = [...under_way.values(), ...unsent];
        under_way = new Map();
    });
});
