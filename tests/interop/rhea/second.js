// rcv-settle-mode second: the receiver says the outcome, and the broker settles.
'use strict';

const { rhea, say, connect, once, open_sender, send_all, Inbox, close, run } = require('./peer.js');

const { message } = rhea;

run(async () => {
    const connection = connect();
    const queue = process.argv[3];
    const sender = await open_sender(connection, queue);
    await send_all(sender, ['a', 'b', 'c'].map((body) => ({ durable: true, body })));
    const inbox = new Inbox(connection, { source: queue, rcv_settle_mode: 1 });
    for (const [name, outcome] of [['accepted', message.accepted()], ['released', message.released()], ['rejected', message.rejected()]]) {
        const [{ message: got, delivery }] = await inbox.take(1);
        const settled = once(inbox.receiver, 'settled');
        delivery.update(false, outcome.described());
        const context = await settled;
        say({ name, body: got.body, mode: inbox.receiver.remote.attach.rcv_settle_mode, settled: context.delivery.remote_settled });
        delivery.update(true);
    }
    const [left] = await inbox.take(1);
    say({ left: left.message.body });
    await close(connection);
});
