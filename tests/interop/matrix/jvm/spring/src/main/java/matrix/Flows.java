package matrix;

import static matrix.Driver.same;

import jakarta.jms.JMSException;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.springframework.jms.JmsException;
import org.springframework.jms.core.JmsTemplate;

/** Credit, drain, and a connection that comes back. */
final class Flows extends FlowRows {
    private static final long PAUSE_MS = 50;

    Flows(String url) {
        super(url);
    }

    @Override
    String credit(String name) throws Exception {
        CountDownLatch free = new CountDownLatch(1);
        try (Broker broker = new Broker(url)) {
            for (int number = 0; number < COUNT; number++) {
                broker.send(name, "message " + number);
            }
            try (Listener busy = new Listener(
                    Broker.plain(url + "?jms.prefetchPolicy.all=0"),
                    name,
                    container -> container.setConcurrentConsumers(3),
                    message -> await(free))) {
                List<String> got = new ArrayList<>(busy.texts(3));
                Thread.sleep(SILENCE_MS);
                same(0, busy.waiting(), "what comes to three busy consumers");
                free.countDown();
                got.addAll(busy.texts(COUNT - 3));
                same((long) COUNT, got.stream().distinct().count(), "all messages");
            }
        }
        return "by three busy consumers of a container, with a prefetch of 0";
    }

    private static void await(CountDownLatch free) {
        try {
            free.await();
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    String drain(String name) throws JMSException {
        try (Broker broker = new Broker(url + "?jms.prefetchPolicy.all=0")) {
            JmsTemplate template = broker.template();
            template.setReceiveTimeout(JmsTemplate.RECEIVE_TIMEOUT_NO_WAIT);
            same(true, template.receive(name) == null, "an empty queue has nothing");
            broker.send(name, "a", "b");
            for (String text : List.of("a", "b")) {
                TextMessage message = (TextMessage) template.receive(name);
                same(text, message == null ? "nothing" : message.getText(), "what is there");
            }
            same(true, template.receive(name) == null, "nothing is left");
        }
        return "by JmsTemplate.receive with RECEIVE_TIMEOUT_NO_WAIT";
    }

    @Override
    String reconnect(String name) throws Exception {
        List<String> sent = new ArrayList<>();
        LinkedHashSet<String> got = new LinkedHashSet<>();
        try (Broker broker = new Broker(url);
                Listener listener = new Listener(Broker.plain(url), name, container -> {})) {
            JmsTemplate template = broker.template();
            for (int number = 0; number < 100; number++) {
                if (number == 50) {
                    Driver.restart();
                }
                sent.add("message " + number);
                sendAgainUntilDone(template, name, "message " + number);
            }
            // What a listener had when its connection was lost comes again.
            while (got.size() < sent.size()) {
                got.addAll(listener.texts(1));
            }
        }
        same(sent, new ArrayList<>(got), "what comes");
        return "by itself: DefaultMessageListenerContainer and CachingConnectionFactory; "
                + "the application repeats a failed send";
    }

    private static void sendAgainUntilDone(JmsTemplate template, String name, String text) throws InterruptedException {
        JmsException failure = null;
        for (long waited = 0; waited < Broker.PATIENCE_MS; waited += PAUSE_MS) {
            try {
                template.convertAndSend(name, text);
                return;
            } catch (JmsException lost) {
                failure = lost;
                Thread.sleep(PAUSE_MS);
            }
        }
        throw failure;
    }

    @Override
    String transaction(String name) throws Exception {
        return new Transactions(url).transaction(name);
    }
}
