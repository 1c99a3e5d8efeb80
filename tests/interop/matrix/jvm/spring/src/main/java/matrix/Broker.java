package matrix;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.core.JmsTemplate;

/** A cached connection to the broker, and the templates that use it. */
final class Broker implements AutoCloseable {
    /** How long a message that must come may take. */
    static final long PATIENCE_MS = 20_000;

    final CachingConnectionFactory connections;

    Broker(String url) {
        connections = new CachingConnectionFactory(new JmsConnectionFactory(url));
        // A cached consumer would keep a prefetch of messages between two calls of a template.
        connections.setCacheConsumers(false);
    }

    /** A template for queues, which waits for what it receives. */
    JmsTemplate template() {
        JmsTemplate template = new JmsTemplate(connections);
        template.setReceiveTimeout(PATIENCE_MS);
        return template;
    }

    /** A template for topics. */
    JmsTemplate topics() {
        JmsTemplate template = template();
        template.setPubSubDomain(true);
        return template;
    }

    /** Send texts to a queue, each of which the broker has accepted when this returns. */
    void send(String queue, String... texts) {
        JmsTemplate template = template();
        for (String text : texts) {
            template.convertAndSend(queue, text);
        }
    }

    /** Send a text of a colour, for selectors. */
    static void sendColoured(JmsTemplate template, String to, String colour) {
        template.convertAndSend(to, colour, message -> {
            message.setStringProperty("colour", colour);
            return message;
        });
    }

    /** Take what a queue has, on a connection of its own. */
    static List<String> left(String url, String queue) throws JMSException {
        List<String> texts = new ArrayList<>();
        try (Broker broker = new Broker(url)) {
            JmsTemplate template = broker.template();
            template.setReceiveTimeout(JmsTemplate.RECEIVE_TIMEOUT_NO_WAIT);
            for (var message = template.receive(queue); message != null; message = template.receive(queue)) {
                texts.add(((TextMessage) message).getText());
            }
        }
        return texts;
    }

    /** A connection factory for a listener container, which caches what it needs by itself. */
    static ConnectionFactory plain(String url) {
        return new JmsConnectionFactory(url);
    }

    @Override
    public void close() {
        connections.destroy();
    }
}
