package matrix;

import static matrix.Driver.same;

import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Topics and subscriptions. */
final class Topics extends TopicRows {
    Topics(String url) {
        super(url);
    }

    /**
     * An application that sends to a topic, with further attributes of its channels. By default the connector sends on
     * the anonymous terminus, where a plain address is a queue.
     */
    private Child app(String name, String... attributes) throws IOException {
        Map<String, String> configuration = new HashMap<>(
                Map.of("out.address", name, "out.capabilities", "topic", "out.use-anonymous-sender", "false"));
        for (int place = 0; place < attributes.length; place += 2) {
            configuration.put(attributes[place], attributes[place + 1]);
        }
        return new Child(url, configuration);
    }

    @Override
    String topic(String name) throws IOException {
        try (Child early = app(name)) {
            early.send("no consumer hears it");
        }
        try (Child app = app(
                name,
                "in.address", name,
                "in.capabilities", "topic",
                "other.address", name,
                "other.capabilities", "topic")) {
            app.send("news");
            List<JsonObject> got = app.next(2);
            same(List.of("news"), Child.of("in", got), "what the first gets");
            same(List.of("news"), Child.of("other", got), "what the second gets");
        }
        return "by capabilities=topic; the sender with use-anonymous-sender=false";
    }

    @Override
    String durableSubscription(String name) throws IOException {
        mine(name).close();
        try (Child app = app(name)) {
            for (String colour : List.of("red", "blue", "red")) {
                app.sendColoured(colour);
            }
        }
        try (Child again = mine(name)) {
            same(List.of("red", "red"), again.texts(2), "what has waited");
            same(List.of(), again.rest(), "what else has waited");
        }
        return "with a selector; an application that ends leaves it";
    }

    private Child mine(String name) throws IOException {
        return app(
                name,
                "in.address", name,
                "in.capabilities", "topic",
                "in.durable", "true",
                "in.link-name", "mine",
                "in.container-id", name,
                "in.selector", "colour = 'red'");
    }

    @Override
    String sharedSubscription(String name) throws IOException {
        shareOne(name, "false");
        shareOne(name + ".durable", "true");
        return "volatile and durable, by the capabilities shared and global";
    }

    private void shareOne(String name, String isDurable) throws IOException {
        List<String> sent = Sharing.texts();
        try (Child app = app(name, ours(name, isDurable))) {
            app.send(sent.toArray(String[]::new));
            List<JsonObject> messages = app.rest();
            List<String> got = new ArrayList<>(Child.of("in", messages));
            same(true, !got.isEmpty() && got.size() < sent.size(), "the first has some, and not all");
            got.addAll(Child.of("other", messages));
            Collections.sort(got);
            same(sent, got, "what both have, each message once");
        }
    }

    private static String[] ours(String name, String isDurable) {
        List<String> attributes = new ArrayList<>();
        for (String channel : List.of("in", "other")) {
            attributes.addAll(List.of(channel + ".address", name));
            attributes.addAll(List.of(channel + ".capabilities", "topic,shared,global"));
            attributes.addAll(List.of(channel + ".link-name", "ours"));
            attributes.addAll(List.of(channel + ".durable", isDurable));
        }
        return attributes.toArray(String[]::new);
    }

    @Override
    String temporaryTopic(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("an outgoing channel has no dynamic target");
    }
}
