// A token as the Service Bus SDK for Node.js puts it: replied to by the name of a link that has no target address.
'use strict';

const { say, connect, once, open_sender, close, run } = require('./peer.js');

run(async () => {
    const connection = connect();
    const queue = process.argv[3];
    const receiver = connection.open_receiver({ name: 'cbs-mine', source: { address: '$cbs' } });
    await once(receiver, 'receiver_open', 'receiver_error');
    const sender = await open_sender(connection, { target: { address: '$cbs' } });
    const answered = once(receiver, 'message');
    const application_properties = { operation: 'put-token', type: 'servicebus.windows.net:sastoken', name: 'sb://here/' + queue };
    sender.send({ message_id: 'one', reply_to: 'cbs-mine', to: '$cbs', body: 'SharedAccessSignature', application_properties });
    const { message } = await answered;
    say({ answers: message.correlation_id, status: message.application_properties['status-code'] });
    for (const beside of ['$management', '$DeadLetterQueue']) {
        const refused = connection.open_receiver(`${queue}/${beside}`);
        say({ beside, condition: (await once(refused, 'receiver_error')).receiver.error.condition });
    }
    await close(connection);
});
