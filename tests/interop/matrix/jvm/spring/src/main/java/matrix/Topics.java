package matrix;

import static matrix.Driver.same;

import jakarta.jms.TemporaryTopic;
import java.util.List;
import java.util.function.Consumer;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.springframework.jms.connection.SingleConnectionFactory;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;

/** Topics, temporary ones, and subscriptions. */
final class Topics extends TopicRows {
    private static final Consumer<DefaultMessageListenerContainer> TOPIC = container -> container.setPubSubDomain(true);

    Topics(String url) {
        super(url);
    }

    @Override
    String topic(String name) throws Exception {
        try (Broker broker = new Broker(url)) {
            broker.topics().convertAndSend(name, "no consumer hears it");
            try (Listener one = new Listener(Broker.plain(url), name, TOPIC).ready();
                    Listener two = new Listener(Broker.plain(url), name, TOPIC).ready()) {
                broker.topics().convertAndSend(name, "news");
                same(List.of("news"), one.texts(1), "what the first gets");
                same(List.of("news"), two.texts(1), "what the second gets");
                same(0, one.waiting(), "what else the first gets");
            }
        }
        return "";
    }

    @Override
    String temporaryTopic(String name) throws Exception {
        // The topic lives as long as its connection, and only that one may consume from it.
        SingleConnectionFactory connections = new SingleConnectionFactory(new JmsConnectionFactory(url));
        try (Broker broker = new Broker(url)) {
            TemporaryTopic topic =
                    new JmsTemplate(connections).execute(session -> session.createTemporaryTopic(), true);
            Consumer<DefaultMessageListenerContainer> there = container -> container.setDestination(topic);
            try (Listener one = new Listener(connections, name, there).ready();
                    Listener two = new Listener(connections, name, there).ready()) {
                broker.topics().convertAndSend(topic.getTopicName(), "news");
                same(List.of("news"), one.texts(1), "what the first gets");
                same(List.of("news"), two.texts(1), "what the second gets");
            }
        } finally {
            connections.destroy();
        }
        return "by a SingleConnectionFactory";
    }

    @Override
    String durableSubscription(String name) throws Exception {
        try (Broker broker = new Broker(url)) {
            mine(name).close();
            for (String colour : List.of("red", "blue", "red")) {
                Broker.sendColoured(broker.topics(), name, colour);
            }
            try (Listener again = mine(name)) {
                same(List.of("red", "red"), again.texts(2), "what has waited");
                Thread.sleep(SILENCE_MS);
                same(0, again.waiting(), "what else has waited");
            }
            unsubscribe(name, "mine");
            Broker.sendColoured(broker.topics(), name, "red");
            try (Listener fresh = mine(name)) {
                Thread.sleep(SILENCE_MS);
                same(0, fresh.waiting(), "what an ended subscription has kept");
            }
        }
        return "with a selector; unsubscribe in a SessionCallback ends it";
    }

    private Listener mine(String name) throws InterruptedException {
        return new Listener(Broker.plain(url), name, container -> {
                    container.setClientId(name);
                    container.setSubscriptionDurable(true);
                    container.setSubscriptionName("mine");
                    container.setMessageSelector("colour = 'red'");
                })
                .ready();
    }

    private void unsubscribe(String client, String subscription) {
        SingleConnectionFactory connections = new SingleConnectionFactory(new JmsConnectionFactory(url));
        connections.setClientId(client);
        new JmsTemplate(connections).execute(session -> {
            session.unsubscribe(subscription);
            return null;
        });
        connections.destroy();
    }

    @Override
    String sharedSubscription(String name) throws Exception {
        shareOne(name, false);
        shareOne(name + ".durable", true);
        return "volatile and durable, by two containers without a client id";
    }

    private void shareOne(String name, boolean isDurable) throws Exception {
        Consumer<DefaultMessageListenerContainer> ours = container -> {
            container.setSubscriptionShared(true);
            container.setSubscriptionDurable(isDurable);
            container.setSubscriptionName("ours");
        };
        try (Broker broker = new Broker(url);
                Listener one = new Listener(Broker.plain(url), name, ours).ready();
                Listener two = new Listener(Broker.plain(url), name, ours).ready()) {
            Sharing.texts().forEach(text -> broker.topics().convertAndSend(name, text));
            Sharing.check(one, two);
        }
    }
}
