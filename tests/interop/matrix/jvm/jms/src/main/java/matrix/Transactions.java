package matrix;

import static matrix.Driver.same;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.List;

/** Transacted sessions: what is sent and received in one. */
final class Transactions {
    private final String url;

    Transactions(String url) {
        this.url = url;
    }

    /** Show the row; returns how it was done. */
    String transaction(String name) throws JMSException {
        try (Peer peer = new Peer(url, Session.SESSION_TRANSACTED);
                Peer other = new Peer(url)) {
            Queue queue = peer.session.createQueue(name);
            peer.send(queue, "x");
            peer.session.rollback();
            peer.send(queue, "a", "b");
            MessageConsumer watching = other.session.createConsumer(queue);
            same(List.of(), Peer.rest(watching), "what is there before the commit");
            watching.close();
            peer.session.commit();
            MessageConsumer consumer = peer.session.createConsumer(queue);
            same(List.of("a", "b"), Peer.texts(consumer, 2), "what the commit shows");
            peer.session.rollback();
            Message again = Peer.next(consumer);
            same(2, again.getIntProperty("JMSXDeliveryCount"), "JMSXDeliveryCount after a rollback");
            Peer.next(consumer);
            peer.send(queue, "answer");
            peer.session.commit();
            same(List.of("answer"), Peer.texts(consumer, 1), "what is left");
            peer.session.commit();
        }
        return "by sessions with SESSION_TRANSACTED";
    }
}
