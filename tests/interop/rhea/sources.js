// Browsing a queue, now and as it was, and the events of the log: rhea's view of each.
'use strict';

const { rhea, say, connect, once, open_sender, send_all, close, run } = require('./peer.js');

const at = (offset) => ({ 'ambermq:at': rhea.types.wrap_described(rhea.types.wrap_ulong(offset), 'ambermq:at') });

// Everything that a source shows, until the drain is answered.
async function browse(connection, source, credit) {
    const receiver = connection.open_receiver({ source, credit_window: 0, autoaccept: false });
    const got = [];
    receiver.on('message', (context) => got.push(context.message));
    await once(receiver, 'receiver_open', 'receiver_error');
    const filter = receiver.remote.attach.source.filter;
    const drained = once(receiver, 'receiver_drained');
    receiver.add_credit(credit || 10000);
    receiver.drain_credit();
    await drained;
    const closed = once(receiver, 'receiver_close');
    receiver.close();
    await closed;
    return { got, filter };
}

run(async () => {
    const connection = connect();
    const queue = process.argv[3];
    const address = '/queues/' + queue;
    const sender = await open_sender(connection, queue);
    await send_all(sender, ['a', 'b'].map((body) => ({ durable: true, body })));
    const now = await browse(connection, { address, distribution_mode: 'copy' });
    say({ step: 'now', got: now.got.map((each) => each.body) });
    const events = (await browse(connection, { address: '/log', filter: at(0) })).got;
    const published = events.filter((each) => each.subject === 'published' && each.application_properties.queue === queue);
    say({ step: 'log', count: published.reduce((sum, each) => sum + each.application_properties.count, 0) });
    const first = published[0].application_properties.offset;
    const then = await browse(connection, { address, distribution_mode: 'copy', filter: at(first) });
    say({ step: 'then', got: then.got.map((each) => each.body), echoed: Object.keys(then.filter) });
    const inbox = connection.open_receiver({ source: { address, distribution_mode: 'copy', filter: at(2 ** 40) } });
    say({ step: 'future', condition: (await once(inbox, 'receiver_error')).receiver.error.condition });
    await close(connection);
});
