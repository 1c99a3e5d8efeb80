package matrix;

import static matrix.Driver.same;

import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Credit, drain, and a connection that comes back. */
final class Flows extends FlowRows {
    Flows(String url) {
        super(url);
    }

    @Override
    String credit(String name) throws JMSException {
        try (Peer peer = new Peer(url + "?jms.prefetchPolicy.all=3", Session.CLIENT_ACKNOWLEDGE)) {
            Queue queue = peer.session.createQueue(name);
            peer.send(queue, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9");
            MessageConsumer silent = peer.session.createConsumer(queue);
            // Another session: what one has not taken may hold up the other of its session.
            Session session = peer.connection.createSession(Session.AUTO_ACKNOWLEDGE);
            List<String> got = Peer.rest(session.createConsumer(queue));
            same(7, got.size(), "what is left beside a prefetch of 3");
            got.addAll(Peer.texts(silent, 3));
            Collections.sort(got);
            same(List.of("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"), got, "what both have");
        }
        return "by a prefetch of 3, with another consumer";
    }

    @Override
    String drain(String name) throws JMSException {
        try (Peer peer = new Peer(url + "?jms.prefetchPolicy.all=0")) {
            Queue queue = peer.session.createQueue(name);
            MessageConsumer consumer = peer.session.createConsumer(queue);
            same(List.of(), Peer.rest(consumer), "what an empty queue has");
            peer.send(queue, "a", "b", "c");
            same(List.of("a", "b", "c"), Peer.rest(consumer), "what is there");
            peer.send(queue, "d");
            same(List.of("d"), Peer.rest(consumer), "what comes after a drain");
        }
        return "by receiveNoWait and a prefetch of 0";
    }

    @Override
    String reconnect(String name) throws Exception {
        String failover = "failover:(" + url + ")?failover.reconnectDelay=50&failover.maxReconnectAttempts=200";
        List<String> sent = new ArrayList<>();
        try (Peer peer = new Peer(failover)) {
            Queue queue = peer.session.createQueue(name);
            MessageProducer producer = peer.session.createProducer(queue);
            for (int number = 0; number < 100; number++) {
                if (number == 50) {
                    Driver.restart();
                }
                sent.add("message " + number);
                producer.send(peer.session.createTextMessage("message " + number));
            }
            same(sent, Peer.texts(peer.session.createConsumer(queue), sent.size()), "what comes");
        }
        return "by itself: failover";
    }

    @Override
    String transaction(String name) throws Exception {
        return new Transactions(url).transaction(name);
    }
}
