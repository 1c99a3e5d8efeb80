package matrix;

import static matrix.Driver.same;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.adapter.MessageListenerAdapter;

/** Queues: sending, receiving, outcomes, browsing, selectors, requests, the anonymous relay. */
final class Queues extends QueueRows {
    private static final String BY_ACK_TYPE =
            "by CLIENT_ACKNOWLEDGE, and the property " + AckType.PROPERTY + " that the listener sets";

    Queues(String url) {
        super(url);
    }

    @Override
    String send(String name) {
        try (Broker broker = new Broker(url)) {
            for (int number = 0; number < COUNT; number++) {
                broker.send(name, "message " + number);
            }
        }
        return "by JmsTemplate";
    }

    @Override
    String receive(String name) throws Exception {
        List<String> ids = new ArrayList<>();
        try (Broker broker = new Broker(url)) {
            for (int number = 0; number < COUNT; number++) {
                int own = number;
                broker.template().convertAndSend(name, "message " + number, message -> {
                    message.setJMSType("subject");
                    message.setIntProperty("number", own);
                    message.setJMSCorrelationID("correlation " + own);
                    return message;
                });
            }
            try (Listener listener = new Listener(Broker.plain(url), name, container -> {})) {
                for (int number = 0; number < COUNT; number++) {
                    TextMessage message = (TextMessage) listener.next();
                    same("message " + number, message.getText(), "body");
                    same("subject", message.getJMSType(), "subject");
                    same(number, message.getIntProperty("number"), "application property");
                    same("correlation " + number, message.getJMSCorrelationID(), "correlation-id");
                    ids.add(message.getJMSMessageID());
                }
            }
            same((long) COUNT, ids.stream().distinct().count(), "message-ids");
        }
        same(List.of(), Broker.left(url, name), "what is left");
        return "by JmsTemplate and DefaultMessageListenerContainer";
    }

    @Override
    String accepted(String name) throws JMSException {
        try (Broker broker = new Broker(url)) {
            broker.send(name, "a");
            same("a", broker.template().receiveAndConvert(name), "what comes");
        }
        same(List.of(), Broker.left(url, name), "what is left");
        return "";
    }

    @Override
    String rejected(String name) throws Exception {
        try (Broker broker = new Broker(url)) {
            broker.send(name, "a", "b");
        }
        try (Listener listener = acknowledging(name, AckType.REJECTED)) {
            same(List.of("a", "b"), listener.texts(2), "what comes");
        }
        same(List.of(), Broker.left(url, name), "what is left");
        return BY_ACK_TYPE;
    }

    @Override
    String released(String name) throws Exception {
        same(List.of(1, false), seenAgain(name, AckType.RELEASED), "JMSXDeliveryCount and JMSRedelivered");
        return BY_ACK_TYPE;
    }

    @Override
    String modified(String name) throws Exception {
        same(List.of(2, true), seenAgain(name, AckType.MODIFIED_FAILED), "JMSXDeliveryCount and JMSRedelivered");
        return BY_ACK_TYPE + "; JMSXDeliveryCount is delivery-count plus one";
    }

    /** End a message, and take it again; returns how often it was delivered, and whether that was not the first. */
    private List<Object> seenAgain(String name, int outcome) throws Exception {
        try (Broker broker = new Broker(url)) {
            broker.send(name, "a");
        }
        List<Object> seen = new ArrayList<>();
        try (Listener listener = acknowledging(name, outcome)) {
            listener.next();
            Message again = listener.next();
            seen.add(again.getIntProperty("JMSXDeliveryCount"));
            seen.add(again.getJMSRedelivered());
        }
        same(List.of(), Broker.left(url, name), "what is left");
        return seen;
    }

    /** A listener that ends its first message by an outcome, and accepts all others. */
    private Listener acknowledging(String name, int outcome) {
        AtomicInteger count = new AtomicInteger();
        return new Listener(
                Broker.plain(url),
                name,
                container -> container.setSessionAcknowledgeMode(Session.CLIENT_ACKNOWLEDGE),
                message -> {
                    if (count.getAndIncrement() == 0) {
                        // What was received may not be changed before its properties are cleared.
                        message.clearProperties();
                        message.setIntProperty(AckType.PROPERTY, outcome);
                    }
                });
    }

    @Override
    String lostLink(String name) throws JMSException {
        try (Broker broker = new Broker(url)) {
            broker.send(name, "a");
            JmsTemplate silent = broker.template();
            silent.setSessionAcknowledgeMode(Session.CLIENT_ACKNOWLEDGE);
            silent.execute(
                    session -> session.createConsumer(session.createQueue(name)).receive(Broker.PATIENCE_MS), true);
        }
        try (Broker broker = new Broker(url)) {
            Message again = broker.template().receive(name);
            same(true, again != null && again.getJMSRedelivered(), "it comes again, with JMSRedelivered");
        }
        return "by a session that a SessionCallback leaves without an acknowledgement";
    }

    @Override
    String browse(String name) throws JMSException {
        try (Broker broker = new Broker(url)) {
            broker.send(name, "a", "b", "c");
            List<String> shown = broker.template().browse(name, (session, browser) -> {
                List<String> texts = new ArrayList<>();
                for (Object message : Collections.list(browser.getEnumeration())) {
                    texts.add(((TextMessage) message).getText());
                }
                return texts;
            });
            same(List.of("a", "b", "c"), shown, "what is shown");
        }
        same(List.of("a", "b", "c"), Broker.left(url, name), "what is left");
        return "";
    }

    @Override
    String selector(String name) throws Exception {
        try (Broker broker = new Broker(url)) {
            for (String colour : List.of("blue", "red", "blue", "red")) {
                Broker.sendColoured(broker.template(), name, colour);
            }
            String reds = "colour = 'red' AND JMSPriority < 9";
            same("red", broker.template().receiveSelectedAndConvert(name, reds), "what is selected");
            try (Listener listener =
                    new Listener(Broker.plain(url), name, container -> container.setMessageSelector(reds))) {
                same(List.of("red"), listener.texts(1), "what a listener selects");
            }
        }
        same(List.of("blue", "blue"), Broker.left(url, name), "what is left");
        return "";
    }

    /** A listener's method: its result is the answer. */
    public static final class Answering {
        public String handleMessage(String question) {
            return "answer to " + question;
        }
    }

    @Override
    String temporaryQueue(String name) throws Exception {
        try (Broker broker = new Broker(url);
                Listener listener = new Listener(
                        Broker.plain(url),
                        name,
                        container -> container.setMessageListener(new MessageListenerAdapter(new Answering())))) {
            Message answer =
                    broker.template().sendAndReceive(name, session -> session.createTextMessage("question"));
            same("answer to question", answer == null ? "nothing" : answer.getBody(String.class), "what comes");
        }
        return "by sendAndReceive and a MessageListenerAdapter";
    }

    @Override
    String anonymousRelay(String name) throws JMSException {
        try (Broker broker = new Broker(url)) {
            broker.template().execute((session, producer) -> {
                for (String each : List.of("one", "two")) {
                    producer.send(session.createQueue(name + "." + each), session.createTextMessage(each));
                }
                return null;
            });
        }
        same(List.of("one"), Broker.left(url, name + ".one"), "what the first has");
        same(List.of("two"), Broker.left(url, name + ".two"), "what the second has");
        return "by a ProducerCallback; JmsTemplate.send has a producer for each destination";
    }

    @Override
    String groups(String name) throws Exception {
        CountDownLatch sent = new CountDownLatch(1);
        try (Broker broker = new Broker(url);
                Listener one = waiting(name, sent);
                Listener two = waiting(name, sent)) {
            for (String each : Groups.TEXTS) {
                broker.template().convertAndSend(name, each, message -> {
                    message.setStringProperty("JMSXGroupID", Groups.group(each));
                    message.setIntProperty("JMSXGroupSeq", Groups.sequence(each));
                    return message;
                });
            }
            sent.countDown();
            List<String> first = one.texts(1);
            first.addAll(one.texts(Groups.count(first.get(0)) - 1));
            Groups.check(first, two.texts(Groups.TEXTS.size() - first.size()));
        }
        return "by JMSXGroupID and JMSXGroupSeq, which a MessagePostProcessor sets";
    }

    /** A listener that is done with a message when all are sent. */
    private Listener waiting(String name, CountDownLatch sent) throws InterruptedException {
        Consumer<DefaultMessageListenerContainer> options =
                container -> container.setSessionAcknowledgeMode(Session.CLIENT_ACKNOWLEDGE);
        Listener listener = new Listener(Broker.plain(url), name, options, message -> {
            try {
                sent.await();
            } catch (InterruptedException ended) {
                throw new IllegalStateException(ended);
            }
        });
        return listener.ready();
    }

    @Override
    String largeMessage(String name) throws JMSException {
        byte[] body = Driver.large();
        try (Broker broker = new Broker(url)) {
            broker.template().convertAndSend(name, body);
            BytesMessage found = (BytesMessage) broker.template().receive(name);
            same(true, found != null && Arrays.equals(body, found.getBody(byte[].class)), "the same bytes");
        }
        return "";
    }
}
