// PLAIN with the right password, and with a wrong one.
'use strict';

const { say, connect, once, close, run } = require('./peer.js');

run(async () => {
    const good = connect({ username: 'alice', password: 'secret' });
    await once(good, 'connection_open', 'connection_error');
    say({ login: 'good' });
    await close(good);
    const bad = connect({ username: 'alice', password: 'wrong' });
    // The broker has hung up by the time rhea says its goodbye.
    bad.on('disconnected', () => {});
    const { connection } = await once(bad, 'connection_error');
    say({ login: 'bad', condition: connection.get_error().condition });
});
