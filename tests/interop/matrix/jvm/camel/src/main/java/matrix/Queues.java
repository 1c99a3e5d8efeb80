package matrix;

import static matrix.Driver.same;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.camel.Exchange;
import org.apache.camel.Processor;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.jms.JmsMessage;
import org.apache.camel.spi.BrowsableEndpoint;

/** Queues: sending, receiving, outcomes, browsing, selectors, requests. */
final class Queues extends QueueRows {
    private static final String BY_ACK_TYPE =
            "by CLIENT_ACKNOWLEDGE, and the property " + AckType.PROPERTY + " that the route sets";

    Queues(String url) {
        super(url);
    }

    @Override
    String send(String name) throws Exception {
        try (Camel camel = new Camel(url)) {
            for (int number = 0; number < COUNT; number++) {
                camel.send("jms:queue:" + name, "message " + number);
            }
        }
        return "";
    }

    @Override
    String receive(String name) throws Exception {
        try (Camel camel = new Camel(url)) {
            for (int number = 0; number < COUNT; number++) {
                camel.producer.sendBodyAndHeaders(
                        "jms:queue:" + name,
                        "message " + number,
                        Map.of("JMSType", "subject", "number", number, "JMSCorrelationID", "correlation " + number));
            }
            camel.listen("jms:queue:" + name);
            for (int number = 0; number < COUNT; number++) {
                Camel.Got got = camel.next();
                same("message " + number, got.text(), "body");
                same("subject", got.message().getJMSType(), "subject");
                same(number, got.message().getIntProperty("number"), "application property");
                same("correlation " + number, got.message().getJMSCorrelationID(), "correlation-id");
                same(true, got.message().getJMSMessageID() != null, "it has a message-id");
            }
        }
        same(List.of(), Camel.left(url, name), "what is left");
        return "by a route";
    }

    @Override
    String accepted(String name) throws Exception {
        try (Camel camel = new Camel(url)) {
            camel.send("jms:queue:" + name, "a");
            same(List.of("a"), camel.listen("jms:queue:" + name).texts(1), "what comes");
        }
        same(List.of(), Camel.left(url, name), "what is left");
        return "";
    }

    @Override
    String rejected(String name) throws Exception {
        try (Camel camel = new Camel(url)) {
            camel.send("jms:queue:" + name, "a", "b");
            camel.listen(acknowledged(name), ending(AckType.REJECTED));
            same(List.of("a", "b"), camel.texts(2), "what comes");
        }
        same(List.of(), Camel.left(url, name), "what is left");
        return BY_ACK_TYPE;
    }

    @Override
    String released(String name) throws Exception {
        same(List.of(1, false), seenAgain(name, ending(AckType.RELEASED)), "JMSXDeliveryCount and JMSRedelivered");
        return BY_ACK_TYPE;
    }

    @Override
    String modified(String name) throws Exception {
        same(List.of(2, true), seenAgain(name, ending(AckType.MODIFIED_FAILED)), "JMSXDeliveryCount and JMSRedelivered");
        return BY_ACK_TYPE + "; JMSXDeliveryCount is delivery-count plus one";
    }

    @Override
    String lostLink(String name) throws Exception {
        Processor losing = first(exchange -> exchange.getMessage(JmsMessage.class).getJmsSession().close());
        // Qpid JMS modifies the message before it ends its session: in between it may be sent once more.
        same(true, seenAgain(name, losing).get(1), "JMSRedelivered");
        return "by a session that the route closes";
    }

    /** Do a step with a message, and take it again; returns JMSXDeliveryCount and JMSRedelivered. */
    private List<Object> seenAgain(String name, Processor step) throws Exception {
        List<Object> seen;
        try (Camel camel = new Camel(url)) {
            camel.send("jms:queue:" + name, "a");
            camel.listen(acknowledged(name), step);
            camel.next();
            Message again = camel.next().message();
            seen = List.of(again.getIntProperty("JMSXDeliveryCount"), again.getJMSRedelivered());
        }
        same(List.of(), Camel.left(url, name), "what is left");
        return seen;
    }

    private static String acknowledged(String name) {
        return "jms:queue:" + name + "?acknowledgementModeName=CLIENT_ACKNOWLEDGE";
    }

    /** A step that ends its first message by an outcome. */
    private static Processor ending(int outcome) {
        return first(exchange -> end(exchange, outcome));
    }

    private static Processor first(Processor step) {
        AtomicInteger count = new AtomicInteger();
        return exchange -> {
            if (count.getAndIncrement() == 0) {
                step.process(exchange);
            }
        };
    }

    private static void end(Exchange exchange, int outcome) throws JMSException {
        Message message = exchange.getMessage(JmsMessage.class).getJmsMessage();
        // What was received may not be changed before its properties are cleared.
        message.clearProperties();
        message.setIntProperty(AckType.PROPERTY, outcome);
    }

    @Override
    String browse(String name) throws Exception {
        try (Camel camel = new Camel(url)) {
            camel.send("jms:queue:" + name, "a", "b", "c");
            BrowsableEndpoint queue = camel.context.getEndpoint("jms:queue:" + name, BrowsableEndpoint.class);
            List<String> shown = queue.getExchanges().stream()
                    .map(exchange -> exchange.getMessage().getBody(String.class))
                    .toList();
            same(List.of("a", "b", "c"), shown, "what is shown");
        }
        same(List.of("a", "b", "c"), Camel.left(url, name), "what is left");
        return "by BrowsableEndpoint";
    }

    @Override
    String selector(String name) throws Exception {
        try (Camel camel = new Camel(url)) {
            for (String colour : List.of("blue", "red", "blue", "red")) {
                camel.producer.sendBodyAndHeader("jms:queue:" + name, colour, "colour", colour);
            }
            camel.listen("jms:queue:" + name + "?selector=RAW(colour = 'red' AND JMSPriority < 9)");
            same(List.of("red", "red"), camel.texts(2), "what is selected");
        }
        same(List.of("blue", "blue"), Camel.left(url, name), "what is left");
        return "";
    }

    @Override
    String temporaryQueue(String name) throws Exception {
        try (Camel camel = new Camel(url)) {
            camel.with(new RouteBuilder() {
                @Override
                public void configure() {
                    from("jms:queue:" + name).process(exchange -> exchange.getMessage().setBody(
                            "answer to " + exchange.getMessage().getBody(String.class)));
                }
            });
            String answer = camel.producer.requestBody("jms:queue:" + name, (Object) "question", String.class);
            same("answer to question", answer, "what comes");
        }
        return "by requestBody and an InOut route";
    }

    @Override
    String groups(String name) throws Exception {
        CountDownLatch sent = new CountDownLatch(1);
        try (Camel camel = new Camel(url);
                Camel other = new Camel(url)) {
            camel.listen(acknowledged(name), exchange -> sent.await());
            other.listen(acknowledged(name), exchange -> sent.await());
            for (String text : Groups.TEXTS) {
                camel.producer.sendBodyAndHeaders(
                        "jms:queue:" + name,
                        text,
                        Map.of("JMSXGroupID", Groups.group(text), "JMSXGroupSeq", Groups.sequence(text)));
            }
            sent.countDown();
            List<String> first = camel.texts(1);
            first.addAll(camel.texts(Groups.count(first.get(0)) - 1));
            Groups.check(first, other.texts(Groups.TEXTS.size() - first.size()));
        }
        return "by the headers JMSXGroupID and JMSXGroupSeq";
    }

    @Override
    String largeMessage(String name) throws Exception {
        byte[] body = Driver.large();
        try (Camel camel = new Camel(url)) {
            camel.producer.sendBody("jms:queue:" + name, body);
            byte[] found = camel.listen("jms:queue:" + name).next().message().getBody(byte[].class);
            same(true, Arrays.equals(body, found), "the same bytes");
        }
        return "";
    }

    @Override
    String anonymousRelay(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("each message has a producer for its destination");
    }
}
