package matrix;

import static matrix.Driver.same;

import java.util.List;

/** Topics, temporary ones, and subscriptions. */
final class Topics extends TopicRows {
    Topics(String url) {
        super(url);
    }

    @Override
    String topic(String name) throws Exception {
        String topic = "jms:topic:" + name;
        try (Camel camel = new Camel(url);
                Camel other = new Camel(url)) {
            camel.send(topic, "no consumer hears it");
            camel.listen(topic);
            other.listen(topic);
            camel.send(topic, "news");
            same(List.of("news"), camel.texts(1), "what the first gets");
            same(List.of("news"), other.texts(1), "what the second gets");
            same(0, camel.waiting(), "what else the first gets");
        }
        return "";
    }

    @Override
    String temporaryTopic(String name) throws Exception {
        String topic = "jms:temp-topic:" + name;
        // The topic lives as long as its connection, and only that one may consume from it.
        try (Camel camel = new Camel(url, true)) {
            camel.listen(topic);
            camel.listen(topic);
            camel.send(topic, "news");
            same(List.of("news", "news"), camel.texts(2), "what both routes get");
        }
        return "by jms:temp-topic";
    }

    @Override
    String durableSubscription(String name) throws Exception {
        String topic = "jms:topic:" + name;
        String mine = topic + "?clientId=" + name + "&durableSubscriptionName=mine&selector=RAW(colour = 'red')";
        new Camel(url).listen(mine).close();
        try (Camel camel = new Camel(url)) {
            for (String colour : List.of("red", "blue", "red")) {
                camel.producer.sendBodyAndHeader(topic, colour, "colour", colour);
            }
            camel.listen(mine);
            same(List.of("red", "red"), camel.texts(2), "what has waited");
            Thread.sleep(SILENCE_MS);
            same(0, camel.waiting(), "what else has waited");
        }
        return "with a selector";
    }

    @Override
    String sharedSubscription(String name) throws Exception {
        shareOne("jms:topic:" + name, "?subscriptionShared=true&subscriptionName=ours");
        shareOne(
                "jms:topic:" + name + ".durable",
                "?subscriptionShared=true&subscriptionDurable=true&subscriptionName=ours");
        return "volatile and durable, by two contexts without a client id";
    }

    private void shareOne(String topic, String options) throws Exception {
        try (Camel camel = new Camel(url);
                Camel other = new Camel(url)) {
            camel.listen(topic + options);
            other.listen(topic + options);
            camel.send(topic, Sharing.texts().toArray(String[]::new));
            Sharing.check(camel, other);
        }
    }
}
