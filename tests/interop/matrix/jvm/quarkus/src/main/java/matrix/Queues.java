package matrix;

import static matrix.Driver.same;

import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Queues: sending, receiving, outcomes, selectors, the anonymous relay. */
final class Queues extends QueueRows {
    Queues(String url) {
        super(url);
    }

    /** An application that sends to a queue and receives from it, with further attributes of its channels. */
    private Child app(String name, String... attributes) throws IOException {
        Map<String, String> configuration = new HashMap<>(Map.of("in.address", name, "out.address", name));
        for (int place = 0; place < attributes.length; place += 2) {
            configuration.put(attributes[place], attributes[place + 1]);
        }
        return new Child(url, configuration);
    }

    @Override
    String send(String name) throws IOException {
        try (Child app = new Child(url, Map.of("out.address", name))) {
            for (int number = 0; number < COUNT; number++) {
                app.send("message " + number);
            }
        }
        return "by an Emitter";
    }

    @Override
    String receive(String name) throws IOException {
        try (Child app = app(name)) {
            for (int number = 0; number < COUNT; number++) {
                app.send(new JsonObject()
                        .put("body", "message " + number)
                        .put("id", "id " + number)
                        .put("correlation", "correlation " + number)
                        .put("subject", "subject")
                        .put("priority", 7)
                        .put("properties", new JsonObject().put("number", number)));
            }
            for (int number = 0; number < COUNT; number++) {
                JsonObject got = app.next();
                same("message " + number, got.getString("body"), "body");
                same("id " + number, got.getString("id"), "message-id");
                same("correlation " + number, got.getString("correlation"), "correlation-id");
                same("subject", got.getString("subject"), "subject");
                same(7, got.getInteger("priority"), "priority");
                same(number, got.getJsonObject("properties").getInteger("number"), "application property");
            }
        }
        Child.left(url, name, List.of());
        return "by a method with @Incoming";
    }

    @Override
    String accepted(String name) throws IOException {
        try (Child app = app(name)) {
            app.send("a");
            same(List.of("a"), app.texts(1), "what comes");
        }
        Child.left(url, name, List.of());
        return "by ack";
    }

    @Override
    String rejected(String name) throws IOException {
        try (Child app = app(name, "in.failure-strategy", "reject", "outcome", "NACK_FIRST")) {
            app.send("a", "b");
            same(List.of("a", "b"), app.texts(2), "what comes");
        }
        Child.left(url, name, List.of());
        return "by nack and the failure-strategy reject";
    }

    @Override
    String released(String name) throws IOException {
        same(0, seenAgain(name, "release"), "delivery-count");
        return "by nack and the failure-strategy release";
    }

    @Override
    String modified(String name) throws IOException {
        same(1, seenAgain(name, "modified-failed"), "delivery-count");
        return "by nack and the failure-strategy modified-failed";
    }

    /** Nack a message, and take it again; returns its delivery-count. */
    private int seenAgain(String name, String strategy) throws IOException {
        try (Child app = app(name, "in.failure-strategy", strategy, "outcome", "NACK_FIRST")) {
            app.send("a");
            app.next();
            return app.next().getInteger("deliveries");
        }
    }

    @Override
    String lostLink(String name) throws IOException {
        Child holding = app(name, "outcome", "HOLD");
        holding.send("a");
        holding.next();
        holding.kill();
        try (Child app = app(name)) {
            same(1, app.next().getInteger("deliveries"), "delivery-count");
        }
        return "by an application that is killed";
    }

    @Override
    String selector(String name) throws IOException {
        try (Child app = app(name, "in.selector", "colour = 'red' AND JMSPriority < 9")) {
            for (String colour : List.of("blue", "red", "blue", "red")) {
                app.sendColoured(colour);
            }
            same(List.of("red", "red"), app.texts(2), "what is selected");
            same(List.of(), app.rest(), "what else is selected");
        }
        Child.left(url, name, List.of("blue", "blue"));
        return "by the attribute selector";
    }

    @Override
    String anonymousRelay(String name) throws IOException {
        Map<String, String> channels = Map.of(
                "in.address", name + ".one", "other.address", name + ".two", "out.use-anonymous-sender", "true");
        try (Child app = new Child(url, channels)) {
            for (String each : List.of("one", "two")) {
                app.send(new JsonObject().put("body", each).put("address", name + "." + each));
            }
            List<JsonObject> got = app.next(2);
            same(List.of("one"), Child.of("in", got), "what the first has");
            same(List.of("two"), Child.of("other", got), "what the second has");
        }
        return "by use-anonymous-sender";
    }

    @Override
    String groups(String name) throws IOException {
        try (Child app = app(name, "other.address", name, "outcome", "HOLD")) {
            for (String text : Groups.TEXTS) {
                app.send(new JsonObject()
                        .put("body", text)
                        .put("group", Groups.group(text))
                        .put("sequence", Groups.sequence(text)));
            }
            List<JsonObject> got = app.next(Groups.TEXTS.size());
            Groups.check(Child.of("in", got), Child.of("other", got));
        }
        return "by an AmqpMessage of Vert.x as the payload: OutgoingAmqpMetadata.withGroupSequence(-1) sends 0";
    }

    @Override
    String largeMessage(String name) throws IOException {
        try (Child app = app(name)) {
            app.send(new JsonObject());
            same(List.of("large true"), app.texts(1), "the same bytes");
        }
        return "";
    }

    @Override
    String browse(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("an incoming channel has no distribution mode");
    }

    @Override
    String temporaryQueue(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("an incoming channel has no dynamic source");
    }
}
