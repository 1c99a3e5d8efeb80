package matrix;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;

/** A connection with one session, and the few things that all behaviours do with it. */
final class Peer implements AutoCloseable {
    /** How long a message that must come may take. */
    static final long PATIENCE_MS = 20_000;

    final Connection connection;
    final Session session;

    Peer(String url) throws JMSException {
        this(url, null, Session.AUTO_ACKNOWLEDGE);
    }

    Peer(String url, int mode) throws JMSException {
        this(url, null, mode);
    }

    Peer(String url, String client, int mode) throws JMSException {
        connection = new JmsConnectionFactory(url).createConnection();
        if (client != null) {
            connection.setClientID(client);
        }
        connection.start();
        session = connection.createSession(mode);
    }

    /** Send texts, each of which the broker has accepted when this returns. */
    void send(Destination to, String... texts) throws JMSException {
        try (MessageProducer producer = session.createProducer(to)) {
            for (String text : texts) {
                producer.send(session.createTextMessage(text));
            }
        }
    }

    /** Send a text of a colour, for selectors. */
    void sendColoured(Destination to, String colour) throws JMSException {
        Message message = session.createTextMessage(colour);
        message.setStringProperty("colour", colour);
        try (MessageProducer producer = session.createProducer(to)) {
            producer.send(message);
        }
    }

    /** Take the next message, which must come. */
    static Message next(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(PATIENCE_MS);
        if (message == null) {
            throw new AssertionError("nothing came within " + PATIENCE_MS + " ms");
        }
        return message;
    }

    /** Take so many messages; returns their texts. */
    static List<String> texts(MessageConsumer consumer, int count) throws JMSException {
        List<String> texts = new ArrayList<>();
        while (texts.size() < count) {
            texts.add(((TextMessage) next(consumer)).getText());
        }
        return texts;
    }

    /** Take what is there, until a drain says that nothing is left; returns the texts. */
    static List<String> rest(MessageConsumer consumer) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Message message = consumer.receiveNoWait(); message != null; message = consumer.receiveNoWait()) {
            texts.add(((TextMessage) message).getText());
        }
        return texts;
    }

    @Override
    public void close() throws JMSException {
        connection.close();
    }
}
