// Refused links, a deleted name, many links, logins: rhea's view of each.
'use strict';

const { say, connect, once, open_sender, send_all, Inbox, close, run } = require('./peer.js');

run(async () => {
    const connection = connect();
    const queue = process.argv[3];
    const { properties, max_frame_size, channel_max } = (await once(connection, 'connection_open')).connection;
    say({ product: properties.product, max_frame_size, channel_max });
    const sender = connection.open_sender('/no/such');
    say({ sender: (await once(sender, 'sender_error')).sender.error.condition });
    const receiver = connection.open_receiver('$unknown');
    say({ receiver: (await once(receiver, 'receiver_error')).receiver.error.condition });
    const dynamic = connection.open_receiver({ source: { dynamic: true } });
    const made = (await once(dynamic, 'receiver_open')).receiver.source;
    say({ dynamic: made.dynamic, address: made.address.replace(/[0-9]+$/, 'N') });
    for (let round = 0; round < 3; round++) {
        const again = await open_sender(connection, { target: queue, name: 'again' });
        say({ outcomes: await send_all(again, [{ body: round }]) });
        const closed = once(again, 'sender_close');
        again.close();
        await closed;
    }
    const session = connection.create_session();
    session.open();
    const elsewhere = session.open_sender(queue);
    await once(elsewhere, 'sendable');
    say({ outcomes: await send_all(elsewhere, [{ body: 3 }]) });
    const ended = once(session, 'session_close');
    session.close();
    await ended;
    const inbox = new Inbox(connection, queue);
    say({ got: (await inbox.take(4)).map((each) => each.message.body) });
    await close(connection);
});
