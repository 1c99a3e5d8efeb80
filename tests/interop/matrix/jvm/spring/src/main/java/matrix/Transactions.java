package matrix;

import static matrix.Driver.same;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.Message;
import jakarta.jms.TextMessage;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.springframework.jms.connection.JmsTransactionManager;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.transaction.support.TransactionTemplate;

/** JmsTransactionManager, and listeners whose session is transacted. */
final class Transactions {
    private final String url;

    Transactions(String url) {
        this.url = url;
    }

    /** Show the row; returns how it was done. */
    String transaction(String name) throws Exception {
        manage(name + ".managed");
        try (Broker broker = new Broker(url)) {
            listen(name + ".transacted", broker, Broker.plain(url), container -> container.setSessionTransacted(true));
            JmsTransactionManager manager = new JmsTransactionManager(broker.connections);
            listen(name + ".manager", broker, broker.connections, container -> {
                container.setSessionTransacted(true);
                container.setTransactionManager(manager);
            });
        }
        return "by JmsTransactionManager with JmsTemplate, and listeners with sessionTransacted, with it and without";
    }

    /** Send and receive in transactions of the manager. */
    private void manage(String name) throws Exception {
        try (Broker broker = new Broker(url)) {
            JmsTemplate template = broker.template();
            TransactionTemplate transactions = new TransactionTemplate(new JmsTransactionManager(broker.connections));
            transactions.executeWithoutResult(status -> {
                template.convertAndSend(name, "x");
                status.setRollbackOnly();
            });
            List<String> before = transactions.execute(status -> {
                template.convertAndSend(name, "a");
                return left(name);
            });
            same(List.of(), before, "what is there before the commit");
            transactions.executeWithoutResult(status -> {
                same("a", template.receiveAndConvert(name), "what the commit shows");
                template.convertAndSend(name, "answer");
                status.setRollbackOnly();
            });
            Message again = transactions.execute(status -> template.receive(name));
            same("a", again == null ? "nothing" : again.getBody(String.class), "what the rollback gives back");
            same(2, again.getIntProperty("JMSXDeliveryCount"), "JMSXDeliveryCount after a rollback");
        }
        same(List.of(), left(name), "what is left");
    }

    /** A listener that answers in its transaction, and fails the first time. */
    private void listen(
            String name,
            Broker broker,
            ConnectionFactory connections,
            Consumer<DefaultMessageListenerContainer> options)
            throws Exception {
        // A template with the connection factory of the container takes part in the listener's transaction.
        JmsTemplate answers = new JmsTemplate(connections);
        AtomicInteger count = new AtomicInteger();
        broker.send(name, "a", "b");
        try (Listener listener = new Listener(connections, name, options, message -> {
            answers.convertAndSend(name + ".answers", "answer " + ((TextMessage) message).getText());
            if (count.getAndIncrement() == 0) {
                throw new IllegalStateException("the first time it fails");
            }
        })) {
            same("a", listener.next().getBody(String.class), "what comes first");
            for (String text : List.of("a", "b")) {
                Message message = listener.next();
                same(text, message.getBody(String.class), "what comes after a rollback");
                same("a".equals(text) ? 2 : 1, message.getIntProperty("JMSXDeliveryCount"), "JMSXDeliveryCount");
            }
        }
        same(List.of("answer a", "answer b"), left(name + ".answers"), "the answers");
        same(List.of(), left(name), "what is left");
    }

    private List<String> left(String name) {
        try {
            return Broker.left(url, name);
        } catch (jakarta.jms.JMSException failure) {
            throw new IllegalStateException(failure);
        }
    }
}
