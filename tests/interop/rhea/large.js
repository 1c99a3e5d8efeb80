// Messages of many frames, both ways, between small ones; and one that is too large.
'use strict';

const { say, connect, once, open_sender, send_all, Inbox, close, run } = require('./peer.js');

run(async () => {
    const connection = connect({ max_frame_size: 8192 });
    const queue = process.argv[3];
    const sender = await open_sender(connection, queue);
    const sizes = [10, 8192, 100000, 3 * 1024 * 1024, 10];
    const bodies = sizes.map((size, index) => Buffer.alloc(size, index + 1));
    say({ outcomes: await send_all(sender, bodies.map((body) => ({ durable: true, body }))) });
    const inbox = new Inbox(connection, queue);
    const got = await inbox.take(sizes.length);
    say({ same: got.map((each, index) => Buffer.compare(each.message.body, bodies[index]) === 0) });
    got.forEach((each) => each.delivery.accept());
    const refused = once(sender, 'sender_error');
    sender.send({ body: Buffer.alloc(16 * 1024 * 1024 + 1) });
    say({ condition: (await refused).sender.error.condition });
    const other = await open_sender(connection, queue);
    say({ outcomes: await send_all(other, [{ body: 'goes on' }]) });
    await close(connection);
});
