package matrix;

import static matrix.Driver.same;

import java.util.ArrayList;
import java.util.List;
import org.springframework.jms.core.JmsTemplate;

/** What decides when a message is delivered: its priority, its time to live, its delivery delay. */
final class Times extends TimeRows {
    Times(String url) {
        super(url);
    }

    @Override
    String priority(String name) throws Exception {
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

    @Override
    String expiry(String name) throws Exception {
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

    @Override
    String deliveryDelay(String name) throws Exception {
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
