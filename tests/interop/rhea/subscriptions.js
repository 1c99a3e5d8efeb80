// Subscriptions, selectors and temporary nodes: rhea's view of each.
'use strict';

const { rhea, say, connect, once, open_sender, send_all, Inbox, close, run } = require('./peer.js');

const filter = rhea.filter.selector("colour = 'red'");
const durable = { name: 'mine', source: { address: '/topics/news.#', durable: 2, expiry_policy: 'never', filter } };

async function as_me() {
    const connection = connect({ container_id: 'me' });
    await once(connection, 'connection_open');
    return connection;
}

function bodies(got) {
    return got.map((each) => each.message.body);
}

run(async () => {
    const connection = connect();
    const first = await as_me();
    const inbox = new Inbox(first, durable);
    const { source } = (await once(inbox.receiver, 'receiver_open')).receiver;
    say({ durable: source.durable, expiry: source.expiry_policy, filters: Object.keys(source.filter) });
    const detached = once(inbox.receiver, 'receiver_close');
    inbox.receiver.detach();
    await detached;
    await close(first);

    const sender = await open_sender(connection, '/topics/news.eu');
    const message = (body, colour) => ({ body, durable: true, application_properties: { colour } });
    say({ outcomes: await send_all(sender, [message('1', 'red'), message('2', 'blue'), message('3', 'red')]) });

    const again = await as_me();
    const kept = new Inbox(again, durable);
    say({ kept: bodies(await kept.take(2)) });
    const closed = once(kept.receiver, 'receiver_close');
    kept.receiver.close();
    await closed;
    say({ outcomes: await send_all(sender, [message('4', 'red')]) });

    const answers = new Inbox(connection, { source: { dynamic: true } });
    const { address } = (await once(answers.receiver, 'receiver_open')).receiver.source;
    const anonymous = await open_sender(again, { target: {} });
    say({ outcomes: await send_all(anonymous, [{ to: address, body: 'answer' }]) });
    say({ answers: bodies(await answers.take(1)) });

    const queue = process.argv[3];
    const reds = new Inbox(connection, { source: { address: queue, filter } });
    const all = await open_sender(connection, queue);
    await send_all(all, [message('a', 'blue'), message('b', 'red')]);
    say({ selected: bodies(await reds.take(1)) });
    await close(again);
    await close(connection);
});
