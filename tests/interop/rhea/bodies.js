// Every type of body that rhea can write, every section, and every property: sent, received, compared.
'use strict';

const util = require('util');
const { rhea, say, connect, open_sender, send_all, Inbox, close, run } = require('./peer.js');

const { types, message } = rhea;
const uuid = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');

const bodies = {
    'null': null,
    'true': true,
    'false': false,
    'string': 'some text',
    'long string': 'x'.repeat(1000),
    'unicode': 'gr\u00fc\u00dfe \u{1f431}',
    'empty string': '',
    'small number': 7,
    'negative number': -7,
    'large number': 2 ** 40,
    'double': 1.5,
    'ubyte': types.wrap_ubyte(255),
    'ushort': types.wrap_ushort(65535),
    'uint': types.wrap_uint(4294967295),
    'small uint': types.wrap_uint(1),
    'zero uint': types.wrap_uint(0),
    'ulong': types.wrap_ulong(Buffer.from('ffffffffffffffff', 'hex')),
    'byte': types.wrap_byte(-128),
    'short': types.wrap_short(-32768),
    'int': types.wrap_int(-2147483648),
    'long': types.wrap_long(-4294967296),
    'float': types.wrap_float(0.5),
    'char': types.wrap_char(65),
    'timestamp': types.wrap_timestamp(1700000000000),
    'uuid': types.wrap_uuid(uuid),
    'binary': Buffer.from([0, 255, 128]),
    'symbol': types.wrap_symbol('a-symbol'),
    'list': [1, 'two', null, [3]],
    'map': { a: 1, b: { c: [true] } },
    'array': types.wrap_array([1, 2, 3], 0x71),
    'described': types.wrap_described(['x'], 'a:descriptor'),
    'data': message.data_section(Buffer.from('data')),
    'data twice': message.data_sections([Buffer.from('one'), Buffer.from('two')]),
    'sequence': message.sequence_section([1, 'a', null]),
    'sequence twice': message.sequence_sections([[1], [2, 3]]),
};

const full = {
    durable: true,
    priority: 9,
    ttl: 60000,
    message_id: 'an id',
    user_id: Buffer.from('me'),
    to: 'there',
    subject: 'about',
    reply_to: 'back',
    correlation_id: 17,
    content_type: 'text/plain',
    content_encoding: 'none',
    absolute_expiry_time: new Date(4000000000000),
    creation_time: new Date(1700000000000),
    group_id: 'group',
    group_sequence: 3,
    reply_to_group_id: 'other',
    message_annotations: { 'x-opt-kept': 'yes', 'x-opt-number': 1 },
    application_properties: { text: 'a', number: 1, flag: true },
    footer: { 'x-foot': 'f' },
    body: 'full',
};

function expected(value) {
    return message.decode(message.encode({ body: value })).body;
}

run(async () => {
    const connection = connect();
    const queue = process.argv[3];
    const sender = await open_sender(connection, queue);
    const names = Object.keys(bodies);
    // All of one priority, so they come in the order of their names.
    const messages = names.map((name) => ({ durable: true, priority: 9, body: bodies[name] }));
    const outcomes = await send_all(sender, [...messages, full]);
    const inbox = new Inbox(connection, queue);
    const got = await inbox.take(messages.length + 1);
    names.forEach((name, index) => {
        const body = got[index].message.body;
        say({ body: name, outcome: outcomes[index], same: util.isDeepStrictEqual(body, expected(bodies[name])) });
    });
    const last = got[got.length - 1].message;
    // What is left of it.
    say({ field: 'ttl', same: last.ttl > 50000 && last.ttl <= full.ttl });
    for (const field of Object.keys(full).filter((name) => name !== 'ttl')) {
        say({ field, same: util.isDeepStrictEqual(last[field], message.decode(message.encode(full))[field]) });
    }
    got.forEach((each) => each.delivery.accept());
    await close(connection);
});
