package matrix;

import static matrix.Driver.same;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.springframework.jms.core.JmsTemplate;

/** What decides when a message is delivered: its priority, its time to live, its delivery delay. */
final class Times {
    private static final int LEVELS = 10;
    private static final long SHORT_MS = 300;
    private static final long DELAY_MS = 1000;
    /** Qpid JMS would else drop by itself what has expired. */
    private static final String NO_LOCAL_EXPIRY = "?jms.localMessageExpiry=false";

    private final String url;

    Times(String url) {
        this.url = url;
    }

    Map<String, Driver.Behaviour> behaviours() {
        return Map.of("priority", this::priority, "expiry", this::expiry, "delivery-delay", this::deliveryDelay);
    }

    private String priority(String name) throws Exception {
        List<String> expected = new ArrayList<>();
        try (Broker broker = new Broker(url)) {
            JmsTemplate template = broker.template();
            template.setExplicitQosEnabled(true);
            for (int level = 0; level < LEVELS; level++) {
                template.setPriority(level);
                template.convertAndSend(name, "level " + level);
                expected.add(0, "level " + level);
            }
        }
        try (Listener listener = new Listener(Broker.plain(url), name, container -> {})) {
            same(expected, listener.texts(LEVELS), "the order");
        }
        return "by JmsTemplate.setPriority";
    }

    private String expiry(String name) throws Exception {
        try (Broker broker = new Broker(url)) {
            JmsTemplate template = broker.template();
            template.setExplicitQosEnabled(true);
            template.setTimeToLive(SHORT_MS);
            template.convertAndSend(name, "short");
            broker.send(name, "long");
            Thread.sleep(2 * SHORT_MS);
        }
        same(List.of("long"), Broker.left(url + NO_LOCAL_EXPIRY, name), "what is left");
        return "by JmsTemplate.setTimeToLive";
    }

    private String deliveryDelay(String name) throws Exception {
        try (Broker broker = new Broker(url);
                Listener listener = new Listener(Broker.plain(url), name, container -> {})) {
            long began = System.nanoTime();
            JmsTemplate template = broker.template();
            template.setDeliveryDelay(DELAY_MS);
            template.convertAndSend(name, "late");
            broker.send(name, "at once");
            same(List.of("at once", "late"), listener.texts(2), "what comes");
            same(true, System.nanoTime() - began >= DELAY_MS * 1_000_000, "it comes after its delay");
        }
        return "by JmsTemplate.setDeliveryDelay";
    }
}
