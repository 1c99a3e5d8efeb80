package matrix;

import static matrix.Driver.same;

import java.util.ArrayList;
import java.util.List;

/** What decides when a message is delivered: its priority, its time to live, its delivery delay. */
final class Times extends TimeRows {
    Times(String url) {
        super(url);
    }

    @Override
    String priority(String name) throws Exception {
        List<String> expected = new ArrayList<>();
        try (Camel camel = new Camel(url)) {
            for (int level = 0; level < LEVELS; level++) {
                camel.send("jms:queue:" + name + "?explicitQosEnabled=true&priority=" + level, "level " + level);
                expected.add(0, "level " + level);
            }
            same(expected, camel.listen("jms:queue:" + name).texts(LEVELS), "the order");
        }
        return "by the option priority";
    }

    @Override
    String expiry(String name) throws Exception {
        try (Camel camel = new Camel(url)) {
            camel.send("jms:queue:" + name + "?explicitQosEnabled=true&timeToLive=" + SHORT_MS, "short");
            camel.send("jms:queue:" + name, "long");
            Thread.sleep(2 * SHORT_MS);
        }
        same(List.of("long"), Camel.left(url + NO_LOCAL_EXPIRY, name), "what is left");
        return "by the option timeToLive";
    }

    @Override
    String deliveryDelay(String name) throws Exception {
        try (Camel camel = new Camel(url)) {
            camel.listen("jms:queue:" + name);
            long began = System.nanoTime();
            camel.send("jms:queue:" + name + "?deliveryDelay=" + DELAY_MS, "late");
            camel.send("jms:queue:" + name, "at once");
            same(List.of("at once", "late"), camel.texts(2), "what comes");
            same(true, System.nanoTime() - began >= DELAY_MS * 1_000_000, "it comes after its delay");
        }
        return "by the option deliveryDelay";
    }
}
