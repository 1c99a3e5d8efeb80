package matrix;

import static matrix.Driver.same;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Topics, temporary ones, and subscriptions. */
final class Topics {
    private static final int COUNT = 20;
    /** How long nothing comes from where nothing is. */
    private static final long SILENCE_MS = 500;

    private final String url;

    Topics(String url) {
        this.url = url;
    }

    Map<String, Driver.Behaviour> behaviours() {
        return Map.of(
                "topic", this::topic,
                "temporary-topic", this::temporaryTopic,
                "durable-subscription", this::durableSubscription,
                "shared-subscription", this::sharedSubscription);
    }

    private String topic(String name) throws Exception {
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

    private String temporaryTopic(String name) throws Exception {
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

    private String durableSubscription(String name) throws Exception {
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

    private String sharedSubscription(String name) throws Exception {
        shareOne("jms:topic:" + name, "?subscriptionShared=true&subscriptionName=ours");
        shareOne(
                "jms:topic:" + name + ".durable",
                "?subscriptionShared=true&subscriptionDurable=true&subscriptionName=ours");
        return "volatile and durable, by two contexts without a client id";
    }

    private void shareOne(String topic, String options) throws Exception {
        List<String> sent = new ArrayList<>();
        try (Camel camel = new Camel(url);
                Camel other = new Camel(url)) {
            camel.listen(topic + options);
            other.listen(topic + options);
            for (int number = 0; number < COUNT; number++) {
                sent.add("message " + (char) ('a' + number));
            }
            camel.send(topic, sent.toArray(String[]::new));
            List<String> got = new ArrayList<>(camel.texts(1));
            got.addAll(other.texts(1));
            for (long waited = 0;
                    camel.waiting() + other.waiting() < COUNT - 2 && waited < Camel.PATIENCE_MS;
                    waited += 10) {
                Thread.sleep(10);
            }
            got.addAll(camel.texts(camel.waiting()));
            got.addAll(other.texts(other.waiting()));
            Collections.sort(got);
            same(sent, got, "what both have, each message once");
        }
    }
}
