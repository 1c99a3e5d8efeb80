package matrix;

import static matrix.Driver.same;

import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What decides when a message is delivered: its priority, its time to live, its delivery delay. */
final class Times extends TimeRows {
    Times(String url) {
        super(url);
    }

    @Override
    String priority(String name) throws IOException {
        List<String> expected = new ArrayList<>();
        try (Child app = new Child(url, Map.of("out.address", name))) {
            for (int level = 0; level < LEVELS; level++) {
                app.send(new JsonObject().put("body", "level " + level).put("priority", level));
                expected.add(0, "level " + level);
            }
        }
        Child.left(url, name, expected);
        return "by OutgoingAmqpMetadata, from 1 to 9; 0 by an AmqpMessage of Vert.x as the payload";
    }

    @Override
    String expiry(String name) throws Exception {
        try (Child app = new Child(url, Map.of("out.address", name))) {
            app.send(new JsonObject().put("body", "short").put("ttl", SHORT_MS));
            app.send("long");
            Thread.sleep(2 * SHORT_MS);
        }
        Child.left(url, name, List.of("long"));
        return "by OutgoingAmqpMetadata";
    }

    @Override
    String deliveryDelay(String name) throws IOException {
        try (Child app = new Child(url, Map.of("in.address", name, "out.address", name))) {
            long began = System.nanoTime();
            app.send(new JsonObject().put("body", "late").put("delay", DELAY_MS));
            app.send("at once");
            same(List.of("at once", "late"), app.texts(2), "what comes");
            same(true, System.nanoTime() - began >= DELAY_MS * 1_000_000, "it comes after its delay");
        }
        return "by x-opt-delivery-delay in OutgoingAmqpMetadata";
    }
}
