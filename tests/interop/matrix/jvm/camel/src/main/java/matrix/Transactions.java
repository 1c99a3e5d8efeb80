package matrix;

import static matrix.Driver.same;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.spring.spi.SpringTransactionPolicy;
import org.springframework.jms.connection.JmsTransactionManager;

/** Routes that receive and send in one transaction. */
final class Transactions {
    private final String url;

    Transactions(String url) {
        this.url = url;
    }

    /** Show the row; returns how it was done. */
    String transaction(String name) throws Exception {
        try (Camel camel = new Camel(url, true)) {
            AtomicInteger count = new AtomicInteger();
            show(camel, name + ".local", new RouteBuilder() {
                @Override
                public void configure() {
                    from("jms:queue:" + name + ".local?transacted=true&lazyCreateTransactionManager=false")
                            .errorHandler(noErrorHandler())
                            .process(camel.noting())
                            .to("jms:queue:" + name + ".local.answers")
                            .process(exchange -> failOnce(count));
                }
            });
        }
        try (Camel camel = new Camel(url, true)) {
            JmsTransactionManager manager = new JmsTransactionManager(camel.connections);
            camel.component.setTransactionManager(manager);
            camel.context.getRegistry().bind("required", new SpringTransactionPolicy(manager));
            AtomicInteger count = new AtomicInteger();
            show(camel, name + ".managed", new RouteBuilder() {
                @Override
                public void configure() {
                    from("jms:queue:" + name + ".managed?transacted=true")
                            .transacted("required")
                            .process(camel.noting())
                            .to("jms:queue:" + name + ".managed.answers")
                            .process(exchange -> failOnce(count));
                }
            });
        }
        return "by routes with transacted=true, and by transacted() with a JmsTransactionManager";
    }

    /** Start a route that fails the first time; it gets its message again, and one answer to each stays. */
    private void show(Camel camel, String name, RouteBuilder route) throws Exception {
        camel.send("jms:queue:" + name, "a", "b");
        camel.with(route);
        same("a", camel.next().text(), "what comes first");
        for (String text : List.of("a", "b")) {
            Camel.Got got = camel.next();
            same(text, got.text(), "what comes after a rollback");
            same("a".equals(text) ? 2 : 1, got.message().getIntProperty("JMSXDeliveryCount"), "JMSXDeliveryCount");
        }
        camel.context.stop();
        same(List.of("a", "b"), Camel.left(url, name + ".answers"), "the answers");
        same(List.of(), Camel.left(url, name), "what is left");
    }

    private static void failOnce(AtomicInteger count) {
        if (count.getAndIncrement() == 0) {
            throw new IllegalStateException("the first time it fails");
        }
    }
}
