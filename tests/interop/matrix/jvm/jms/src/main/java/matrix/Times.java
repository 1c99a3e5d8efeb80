package matrix;

import static matrix.Driver.same;

import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import java.util.ArrayList;
import java.util.List;

/** What decides when a message is delivered: its priority, its time to live, its delivery delay. */
final class Times extends TimeRows {
    Times(String url) {
        super(url);
    }

    @Override
    String priority(String name) throws JMSException {
        List<String> expected = new ArrayList<>();
        try (Peer peer = new Peer(url)) {
            Queue queue = peer.session.createQueue(name);
            try (MessageProducer producer = peer.session.createProducer(queue)) {
                for (int level = 0; level < LEVELS; level++) {
                    producer.send(peer.session.createTextMessage("level " + level), DeliveryMode.PERSISTENT, level, 0);
                    expected.add(0, "level " + level);
                }
            }
            same(expected, Peer.texts(peer.session.createConsumer(queue), LEVELS), "the order");
        }
        return "";
    }

    @Override
    String expiry(String name) throws Exception {
        try (Peer peer = new Peer(url + NO_LOCAL_EXPIRY)) {
            Queue queue = peer.session.createQueue(name);
            try (MessageProducer producer = peer.session.createProducer(queue)) {
                producer.setTimeToLive(SHORT_MS);
                producer.send(peer.session.createTextMessage("short"));
            }
            peer.send(queue, "long");
            Thread.sleep(2 * SHORT_MS);
            MessageConsumer consumer = peer.session.createConsumer(queue);
            same(List.of("long"), Peer.texts(consumer, 1), "what comes");
            same(List.of(), Peer.rest(consumer), "what is left");
        }
        return "";
    }

    @Override
    String deliveryDelay(String name) throws JMSException {
        try (Peer peer = new Peer(url)) {
            Queue queue = peer.session.createQueue(name);
            MessageConsumer consumer = peer.session.createConsumer(queue);
            long began = System.nanoTime();
            try (MessageProducer producer = peer.session.createProducer(queue)) {
                producer.setDeliveryDelay(DELAY_MS);
                producer.send(peer.session.createTextMessage("late"));
            }
            peer.send(queue, "at once");
            same(List.of("at once", "late"), Peer.texts(consumer, 2), "what comes");
            same(true, System.nanoTime() - began >= DELAY_MS * 1_000_000, "it comes after its delay");
        }
        return "";
    }
}
