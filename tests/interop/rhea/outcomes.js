// Every outcome that rhea can give: what comes next, and how often it was delivered before.
'use strict';

const { rhea, say, connect, once, open_sender, send_all, Inbox, close, run } = require('./peer.js');

run(async () => {
    const connection = connect();
    const queue = process.argv[3];
    const sender = await open_sender(connection, queue);
    await send_all(sender, ['a', 'b', 'c'].map((body) => ({ durable: true, body })));
    const first = new Inbox(connection, { source: queue, name: 'first' });
    const steps = [
        ['release', (delivery) => delivery.release()],
        ['failed', (delivery) => delivery.modified({ delivery_failed: true, message_annotations: { 'x-opt-why': 'it failed' } })],
        ['modified', (delivery) => delivery.modified({ delivery_failed: false })],
        ['reject', (delivery) => delivery.reject({ condition: 'app:bad', description: 'not this one' })],
        ['not here', (delivery) => delivery.modified({ undeliverable_here: true })],
        ['accept', (delivery) => delivery.accept()],
    ];
    for (const [step, act] of steps) {
        const [{ message, delivery }] = await first.take(1);
        say({ step, body: message.body, count: message.delivery_count || 0, annotations: message.message_annotations || null });
        act(delivery);
    }
    const second = new Inbox(connection, { source: queue, name: 'second' });
    const [{ message }] = await second.take(1);
    say({ step: 'elsewhere', body: message.body, count: message.delivery_count || 0 });
    const detached = once(second.receiver, 'receiver_close');
    second.receiver.close();
    await detached;
    const [again] = await new Inbox(connection, { source: queue, name: 'third' }).take(1);
    say({ step: 'after a loss', body: again.message.body, count: again.message.delivery_count || 0 });
    again.delivery.accept();
    await close(connection);
});
