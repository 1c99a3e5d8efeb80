package matrix;

import static matrix.Driver.same;

import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.Topic;
import java.util.Collections;
import java.util.List;

/** Topics, temporary ones, and the subscriptions that JMS knows. */
final class Topics extends TopicRows {
    Topics(String url) {
        super(url);
    }

    @Override
    String topic(String name) throws JMSException {
        try (Peer peer = new Peer(url);
                Peer other = new Peer(url)) {
            Topic topic = peer.session.createTopic(name);
            other.send(topic, "no consumer hears it");
            MessageConsumer one = peer.session.createConsumer(topic);
            MessageConsumer two = other.session.createConsumer(topic);
            other.send(topic, "news");
            same(List.of("news"), Peer.texts(one, 1), "what the first gets");
            same(List.of("news"), Peer.texts(two, 1), "what the second gets");
            same(List.of(), Peer.rest(one), "what else the first gets");
        }
        return "";
    }

    @Override
    String temporaryTopic(String name) throws JMSException {
        try (Peer peer = new Peer(url);
                Peer other = new Peer(url)) {
            TemporaryTopic topic = peer.session.createTemporaryTopic();
            MessageConsumer one = peer.session.createConsumer(topic);
            MessageConsumer two = peer.session.createConsumer(topic);
            other.send(other.session.createTopic(topic.getTopicName()), "news");
            same(List.of("news"), Peer.texts(one, 1), "what the first gets");
            same(List.of("news"), Peer.texts(two, 1), "what the second gets");
            one.close();
            two.close();
            topic.delete();
        }
        return "";
    }

    @Override
    String durableSubscription(String name) throws JMSException {
        try (Peer sender = new Peer(url)) {
            Topic topic = sender.session.createTopic(name);
            try (Peer peer = mine(name)) {
                peer.session.createDurableSubscriber(topic, "mine", "colour = 'red'", false);
            }
            for (String colour : List.of("red", "blue", "red")) {
                sender.sendColoured(topic, colour);
            }
            try (Peer peer = mine(name)) {
                MessageConsumer again = peer.session.createDurableSubscriber(topic, "mine", "colour = 'red'", false);
                same(List.of("red", "red"), Peer.texts(again, 2), "what has waited");
                same(List.of(), Peer.rest(again), "what else has waited");
                again.close();
                peer.session.unsubscribe("mine");
            }
            sender.sendColoured(topic, "red");
            try (Peer peer = mine(name)) {
                MessageConsumer fresh = peer.session.createDurableSubscriber(topic, "mine", "colour = 'red'", false);
                same(List.of(), Peer.rest(fresh), "what an ended subscription has kept");
            }
        }
        return "with a selector; unsubscribe ends it";
    }

    private Peer mine(String name) throws JMSException {
        return new Peer(url, name, Session.AUTO_ACKNOWLEDGE);
    }

    @Override
    String sharedSubscription(String name) throws JMSException {
        for (boolean isDurable : List.of(false, true)) {
            for (boolean isGlobal : List.of(false, true)) {
                shareOne(name + (isDurable ? ".durable" : "") + (isGlobal ? ".global" : ""), isDurable, isGlobal);
            }
        }
        return "volatile and durable, with a client id and without";
    }

    private void shareOne(String name, boolean isDurable, boolean isGlobal) throws JMSException {
        // JMS lets a client id be used once at a time: with one, both receivers are of the same connection.
        try (Peer first = isGlobal ? new Peer(url) : mine(name);
                Peer second = isGlobal ? new Peer(url) : null) {
            Topic topic = first.session.createTopic(name);
            MessageConsumer one = receiver(first, topic, isDurable);
            MessageConsumer two = receiver(isGlobal ? second : first, topic, isDurable);
            List<String> sent = Sharing.texts();
            first.send(topic, sent.toArray(String[]::new));
            List<String> got = Peer.rest(one);
            same(true, !got.isEmpty() && got.size() < sent.size(), "the first has some, and not all");
            got.addAll(Peer.rest(two));
            Collections.sort(got);
            same(sent, got, "what both have, each message once");
            one.close();
            two.close();
            if (isDurable) {
                first.session.unsubscribe("ours");
            }
        }
    }

    private static MessageConsumer receiver(Peer peer, Topic topic, boolean isDurable) throws JMSException {
        return isDurable
                ? peer.session.createSharedDurableConsumer(topic, "ours")
                : peer.session.createSharedConsumer(topic, "ours");
    }
}
