package matrix;

import static matrix.Driver.same;

import io.vertx.amqp.AmqpReceiver;
import io.vertx.amqp.AmqpReceiverOptions;
import java.util.ArrayList;
import java.util.List;

/** Credit, and a connection that comes back. */
final class Flows extends FlowRows {
    private static final long PAUSE_MS = 50;

    Flows(String url) {
        super(url);
    }

    @Override
    String credit(String name) {
        try (Peer peer = new Peer(url)) {
            List<String> sent = new ArrayList<>();
            for (int number = 0; number < COUNT; number++) {
                sent.add("message " + number);
            }
            peer.send(name, sent.toArray(String[]::new));
            AmqpReceiverOptions options =
                    new AmqpReceiverOptions().setMaxBufferedMessages(3).setAutoAcknowledgement(false);
            AmqpReceiver receiver = Peer.wait(peer.connection.createReceiver(name, options));
            Peer.Inbox inbox = Peer.Inbox.paused(receiver);
            // A paused receiver buffers what it has credit for: the rest of the queue is for another one.
            Peer.Inbox other = peer.receiver(name);
            same(sent.subList(3, COUNT), other.texts(COUNT - 3), "what is left beside a buffer of 3");
            other.ends();
            receiver.fetch(3);
            same(sent.subList(0, 3), inbox.texts(3), "what credit for three brings");
            Peer.wait(other.receiver.close());
            peer.send(name, "more");
            receiver.resume();
            same(List.of("more"), inbox.texts(1), "what more credit brings");
        }
        return "by setMaxBufferedMessages, pause and fetch";
    }

    @Override
    String reconnect(String name) throws Exception {
        List<String> sent = new ArrayList<>();
        Peer peer = new Peer(url);
        for (int number = 0; number < 100; number++) {
            if (number == 50) {
                Driver.restart();
                peer = again();
            }
            sent.add("message " + number);
            peer.send(name, "message " + number);
        }
        same(sent, peer.receiver(name).texts(sent.size()), "what comes");
        peer.close();
        return "the application connects again: the client does not reconnect";
    }

    private Peer again() throws InterruptedException {
        IllegalStateException failure = null;
        for (long waited = 0; waited < Peer.PATIENCE_MS; waited += PAUSE_MS) {
            try {
                return new Peer(url);
            } catch (IllegalStateException refused) {
                failure = refused;
                Thread.sleep(PAUSE_MS);
            }
        }
        throw failure;
    }

    @Override
    String drain(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("AmqpReceiver has no drain");
    }

    @Override
    String transaction(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("no link to a coordinator");
    }
}
