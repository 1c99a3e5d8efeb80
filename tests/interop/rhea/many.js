// 5,000 messages, received in order, settled out of order, none left.
'use strict';

const { say, connect, open_sender, send_all, Inbox, close, once, run } = require('./peer.js');

const COUNT = 5000;
const BATCH = 500;

// Every seventh first, then the rest from the back.
function shuffled(list) {
    const first = list.filter((_, index) => index % 7 === 0);
    return first.concat(list.filter((_, index) => index % 7 !== 0).reverse());
}

run(async () => {
    const connection = connect();
    const queue = process.argv[3];
    const sender = await open_sender(connection, queue);
    const outcomes = await send_all(sender, [...Array(COUNT).keys()].map((body) => ({ durable: true, body })));
    say({ accepted: outcomes.filter((outcome) => outcome === 'accepted').length });
    const inbox = new Inbox(connection, queue);
    let next = 0;
    let in_order = true;
    while (next < COUNT) {
        const batch = await inbox.take(BATCH);
        for (const each of batch) in_order = in_order && each.message.body === next++;
        shuffled(batch).forEach((each) => each.delivery.accept());
    }
    const drained = once(inbox.receiver, 'receiver_drained');
    inbox.receiver.add_credit(1);
    inbox.receiver.drain_credit();
    await drained;
    say({ received: next, in_order, left: inbox.got.length });
    await close(connection);
});
