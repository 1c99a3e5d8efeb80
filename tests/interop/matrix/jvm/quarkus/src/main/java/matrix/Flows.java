package matrix;

import static matrix.Driver.same;

import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;

/** When messages are delivered, and a connection that comes back. */
final class Flows {
    private static final int LEVELS = 10;
    private static final long SHORT_MS = 300;
    private static final long DELAY_MS = 1000;

    private final String url;

    Flows(String url) {
        this.url = url;
    }

    Map<String, Driver.Behaviour> behaviours() {
        return Map.of(
                "credit", Driver.notOffered("no attribute sets the credit of an incoming channel"),
                "drain", Driver.notOffered("an incoming channel has no drain"),
                "transaction", Driver.notOffered("no link to a coordinator"),
                "priority", this::priority,
                "expiry", this::expiry,
                "delivery-delay", this::deliveryDelay,
                "reconnect", this::reconnect);
    }

    private String priority(String name) throws IOException {
        List<String> expected = new ArrayList<>();
        try (Child app = new Child(url, Map.of("out.address", name))) {
            // The connector does not send the priority 0: such a message would have the default, 4.
            for (int level = 1; level < LEVELS; level++) {
                app.send(new JsonObject().put("body", "level " + level).put("priority", level));
                expected.add(0, "level " + level);
            }
        }
        Child.left(url, name, expected);
        return "by OutgoingAmqpMetadata, from 1 to 9: the connector does not send the priority 0";
    }

    private String expiry(String name) throws Exception {
        try (Child app = new Child(url, Map.of("out.address", name))) {
            app.send(new JsonObject().put("body", "short").put("ttl", SHORT_MS));
            app.send("long");
            Thread.sleep(2 * SHORT_MS);
        }
        Child.left(url, name, List.of("long"));
        return "by OutgoingAmqpMetadata";
    }

    private String deliveryDelay(String name) throws IOException {
        try (Child app = new Child(url, Map.of("in.address", name, "out.address", name))) {
            long began = System.nanoTime();
            app.send(new JsonObject().put("body", "late").put("delay", DELAY_MS));
            app.send("at once");
            same(List.of("at once", "late"), app.texts(2), "what comes");
            same(true, System.nanoTime() - began >= DELAY_MS * 1_000_000, "it comes after its delay");
        }
        return "by x-opt-delivery-delay in OutgoingAmqpMetadata";
    }

    private String reconnect(String name) throws Exception {
        List<String> sent = new ArrayList<>();
        LinkedHashSet<String> got = new LinkedHashSet<>();
        try (Child app = new Child(url, Map.of("in.address", name, "out.address", name))) {
            for (int number = 0; number < 100; number++) {
                if (number == 50) {
                    Driver.restart();
                }
                sent.add("message " + number);
                app.send("message " + number);
            }
            // What the application had when its connection was lost comes again.
            while (got.size() < sent.size()) {
                got.addAll(app.texts(1));
            }
        }
        same(sent, new ArrayList<>(got), "what comes");
        return "by itself: the connector reconnects, and repeats a failed send";
    }
}
