// Credit and drain: nothing without credit, no more than the credit, and an answer to every drain.
'use strict';

const { say, connect, once, open_sender, send_all, Inbox, close, run } = require('./peer.js');

async function drain(inbox, credit) {
    const drained = once(inbox.receiver, 'receiver_drained');
    if (credit) inbox.receiver.add_credit(credit);
    inbox.receiver.drain_credit();
    await drained;
    inbox.receiver.drain = false;
    return inbox.got.splice(0).map((each) => each.message.body);
}

run(async () => {
    const connection = connect();
    const queue = process.argv[3];
    const sender = await open_sender(connection, queue);
    await send_all(sender, [...Array(10).keys()].map((body) => ({ durable: true, body })));
    const inbox = new Inbox(connection, queue);
    await once(inbox.receiver, 'receiver_open');
    say({ step: 'no credit', got: inbox.got.length });
    say({ step: 'drain of nothing', got: await drain(inbox, 0) });
    say({ step: 'credit 3', got: (await inbox.take(3)).map((each) => each.message.body) });
    say({ step: 'drain of 4', got: await drain(inbox, 4) });
    say({ step: 'drain of 50', got: await drain(inbox, 50) });
    say({ step: 'drain of an empty queue', got: await drain(inbox, 5) });
    await send_all(sender, [{ body: 'later' }]);
    say({ step: 'nothing later', got: inbox.got.length });
    say({ step: 'later', got: (await inbox.take(1)).map((each) => each.message.body) });
    await close(connection);
});
