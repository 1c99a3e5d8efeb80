// Messages with the defaults of the Service Bus SDK: those of a kind go to the queue of its name.
'use strict';

const kinds = {
    text: (number) => ({ body: 'text ' + number }),
    binary: (number) => ({ body: Buffer.from('binary ' + number) }),
    'id-text': (number) => ({ messageId: 'id ' + number, body: 'text ' + number }),
};

async function default_messages(client) {
    for (const [kind, made] of Object.entries(kinds)) {
        const sender = client.createSender(kind);
        for (const number of [0, 1, 2]) await sender.sendMessages(made(number));
        await sender.close();
    }
}

module.exports = { 'default-messages': default_messages };
