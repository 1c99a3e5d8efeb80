// Messages with the defaults of rhea: those of a kind go to the queue of its name.
'use strict';

const { rhea, connected, send, close } = require('./actor.js');

const kinds = {
    text: (number) => ({ body: 'text ' + number }),
    binary: (number) => ({ body: Buffer.from('binary ' + number) }),
    data: (number) => ({ body: rhea.message.data_section(Buffer.from('binary ' + number)) }),
    'durable-text': (number) => ({ durable: true, body: 'text ' + number }),
    'durable-binary': (number) => ({ durable: true, body: Buffer.from('binary ' + number) }),
    'id-text': (number) => ({ durable: true, message_id: 'id ' + number, body: 'text ' + number }),
};

async function default_messages(url) {
    const connection = await connected(url);
    for (const [kind, made] of Object.entries(kinds)) await send(connection, kind, ...[0, 1, 2].map(made));
    await close(connection);
}

module.exports = { 'default-messages': default_messages };
