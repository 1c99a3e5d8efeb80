package matrix;

import static matrix.Driver.same;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.camel.builder.RouteBuilder;

/** Credit, drain, and a connection that comes back. */
final class Flows extends FlowRows {
    Flows(String url) {
        super(url);
    }

    @Override
    String credit(String name) throws Exception {
        CountDownLatch free = new CountDownLatch(1);
        try (Camel camel = new Camel(url + "?jms.prefetchPolicy.all=0")) {
            for (int number = 0; number < COUNT; number++) {
                camel.send("jms:queue:" + name, "message " + number);
            }
            camel.listen("jms:queue:" + name + "?concurrentConsumers=3", exchange -> free.await());
            List<String> got = new ArrayList<>(camel.texts(3));
            Thread.sleep(SILENCE_MS);
            same(0, camel.waiting(), "what comes to three busy consumers");
            free.countDown();
            got.addAll(camel.texts(COUNT - 3));
            same((long) COUNT, got.stream().distinct().count(), "all messages");
        }
        return "by three busy consumers of a route, with a prefetch of 0";
    }

    @Override
    String drain(String name) throws Exception {
        try (Camel camel = new Camel(url + "?jms.prefetchPolicy.all=0")) {
            same(List.of(), camel.rest("jms:queue:" + name), "what an empty queue has");
            camel.send("jms:queue:" + name, "a", "b", "c");
            same(List.of("a", "b", "c"), camel.rest("jms:queue:" + name), "what is there");
        }
        return "by ConsumerTemplate.receiveBodyNoWait";
    }

    @Override
    String reconnect(String name) throws Exception {
        List<String> sent = new ArrayList<>();
        LinkedHashSet<String> got = new LinkedHashSet<>();
        try (Camel camel = new Camel(url)) {
            camel.with(new RouteBuilder() {
                @Override
                public void configure() {
                    errorHandler(defaultErrorHandler().maximumRedeliveries(200).redeliveryDelay(50));
                    from("direct:sending").to("jms:queue:" + name);
                }
            });
            camel.listen("jms:queue:" + name);
            for (int number = 0; number < 100; number++) {
                if (number == 50) {
                    Driver.restart();
                }
                sent.add("message " + number);
                camel.send("direct:sending", "message " + number);
            }
            // What a route had when its connection was lost comes again.
            while (got.size() < sent.size()) {
                got.add(camel.next().text());
            }
        }
        same(sent, new ArrayList<>(got), "what comes");
        return "by itself: the consumer of the route; the error handler repeats a failed send";
    }

    @Override
    String transaction(String name) throws Exception {
        return new Transactions(url).transaction(name);
    }
}
