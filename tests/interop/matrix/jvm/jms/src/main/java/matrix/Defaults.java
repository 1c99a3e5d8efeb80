package matrix;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Messages with the defaults of Qpid JMS: those of a kind go to the queue of its name. */
final class Defaults implements Driver.Rows {
    private static final int COUNT = 3;

    private final String url;

    Defaults(String url) {
        this.url = url;
    }

    @Override
    public Map<String, Driver.Behaviour> behaviours() {
        return Map.of("default-messages", this::defaultMessages);
    }

    private String defaultMessages(String name) throws JMSException {
        try (Peer peer = new Peer(url)) {
            try (MessageProducer producer = producer(peer, "text")) {
                sendTexts(peer, producer);
            }
            try (MessageProducer producer = producer(peer, "binary")) {
                sendBytes(peer, producer);
            }
            try (MessageProducer producer = producer(peer, "volatile-text")) {
                producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
                sendTexts(peer, producer);
            }
            try (MessageProducer producer = producer(peer, "bare-text")) {
                producer.setDisableMessageID(true);
                producer.setDisableMessageTimestamp(true);
                sendTexts(peer, producer);
            }
        }
        return "";
    }

    private static MessageProducer producer(Peer peer, String queue) throws JMSException {
        return peer.session.createProducer(peer.session.createQueue(queue));
    }

    private static void sendTexts(Peer peer, MessageProducer producer) throws JMSException {
        for (int number = 0; number < COUNT; number++) {
            Message message = peer.session.createTextMessage("text " + number);
            producer.send(message);
        }
    }

    private static void sendBytes(Peer peer, MessageProducer producer) throws JMSException {
        for (int number = 0; number < COUNT; number++) {
            BytesMessage message = peer.session.createBytesMessage();
            message.writeBytes(("binary " + number).getBytes(StandardCharsets.UTF_8));
            producer.send(message);
        }
    }
}
