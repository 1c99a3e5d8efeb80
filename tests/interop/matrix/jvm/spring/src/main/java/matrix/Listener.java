package matrix;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.SessionAwareMessageListener;

/** A message listener container, and the messages that its listener got. */
final class Listener implements AutoCloseable, Sharing.Inbox, SessionAwareMessageListener<Message> {
    /** What the listener does with a message; a failure is the container's to treat. */
    interface Step {
        void take(Message message) throws JMSException;
    }

    final DefaultMessageListenerContainer container = new DefaultMessageListenerContainer();
    private final BlockingQueue<Message> got = new LinkedBlockingQueue<>();
    private final Step step;

    Listener(ConnectionFactory connections, String destination, Consumer<DefaultMessageListenerContainer> options) {
        this(connections, destination, options, message -> {});
    }

    Listener(
            ConnectionFactory connections,
            String destination,
            Consumer<DefaultMessageListenerContainer> options,
            Step step) {
        this.step = step;
        container.setConnectionFactory(connections);
        container.setDestinationName(destination);
        container.setMessageListener(this);
        container.setErrorHandler(failure -> {});
        container.setRecoveryInterval(100);
        options.accept(container);
        container.afterPropertiesSet();
        container.start();
    }

    /** Wait until the container has its consumer, as what is sent to a topic before that does not arrive. */
    Listener ready() throws InterruptedException {
        for (long waited = 0; !container.isRegisteredWithDestination() && waited < Broker.PATIENCE_MS; waited += 10) {
            Thread.sleep(10);
        }
        return this;
    }

    @Override
    public void onMessage(Message message, Session session) throws JMSException {
        got.add(message);
        step.take(message);
    }

    /** Take the next message, which must come. */
    Message next() throws InterruptedException {
        Message message = got.poll(Broker.PATIENCE_MS, TimeUnit.MILLISECONDS);
        if (message == null) {
            throw new AssertionError("nothing came within " + Broker.PATIENCE_MS + " ms");
        }
        return message;
    }

    /** Take so many messages; returns their texts. */
    @Override
    public List<String> texts(int count) throws InterruptedException, JMSException {
        List<String> texts = new ArrayList<>();
        while (texts.size() < count) {
            texts.add(((TextMessage) next()).getText());
        }
        return texts;
    }

    /** What has come and was not taken. */
    @Override
    public int waiting() {
        return got.size();
    }

    /** End the listener; what it was at is done, and what it did not take goes back. */
    @Override
    public void close() {
        container.shutdown();
    }
}
