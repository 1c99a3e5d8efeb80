package matrix;

import static matrix.Driver.same;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Queues: sending, receiving, outcomes, browsing, selectors, temporary ones, the anonymous relay. */
final class Queues {
    private static final int COUNT = 10;
    private static final String ACK_TYPE = "JMS_AMQP_ACK_TYPE";
    private static final String BY_ACK_TYPE = "by the property " + ACK_TYPE + " of an acknowledged message";
    private static final int REJECTED = 2;
    private static final int RELEASED = 3;
    private static final int MODIFIED_FAILED = 4;

    private final String url;

    Queues(String url) {
        this.url = url;
    }

    Map<String, Driver.Behaviour> behaviours() {
        return Map.ofEntries(
                Map.entry("send", this::send),
                Map.entry("receive", this::receive),
                Map.entry("accepted", this::accepted),
                Map.entry("rejected", this::rejected),
                Map.entry("released", this::released),
                Map.entry("modified", this::modified),
                Map.entry("lost-link", this::lostLink),
                Map.entry("browse", this::browse),
                Map.entry("selector", this::selector),
                Map.entry("temporary-queue", this::temporaryQueue),
                Map.entry("anonymous-relay", this::anonymousRelay),
                Map.entry("large-message", this::largeMessage));
    }

    private String send(String name) throws JMSException {
        try (Peer peer = new Peer(url)) {
            for (int number = 0; number < COUNT; number++) {
                peer.send(peer.session.createQueue(name), "message " + number);
            }
        }
        return "";
    }

    private String receive(String name) throws JMSException {
        try (Peer peer = new Peer(url)) {
            Queue queue = peer.session.createQueue(name);
            List<String> ids = new ArrayList<>();
            try (MessageProducer producer = peer.session.createProducer(queue)) {
                for (int number = 0; number < COUNT; number++) {
                    TextMessage message = peer.session.createTextMessage("message " + number);
                    message.setJMSType("subject");
                    message.setIntProperty("number", number);
                    message.setJMSCorrelationID("correlation " + number);
                    producer.send(message, jakarta.jms.DeliveryMode.PERSISTENT, 7, 0);
                    ids.add(message.getJMSMessageID());
                }
            }
            MessageConsumer consumer = peer.session.createConsumer(queue);
            for (int number = 0; number < COUNT; number++) {
                TextMessage message = (TextMessage) Peer.next(consumer);
                same("message " + number, message.getText(), "body");
                same(ids.get(number), message.getJMSMessageID(), "message-id");
                same("subject", message.getJMSType(), "subject");
                same(number, message.getIntProperty("number"), "application property");
                same("correlation " + number, message.getJMSCorrelationID(), "correlation-id");
                same(7, message.getJMSPriority(), "priority");
            }
            same(List.of(), Peer.rest(consumer), "what is left");
        }
        return "";
    }

    private String accepted(String name) throws JMSException {
        try (Peer peer = new Peer(url, Session.CLIENT_ACKNOWLEDGE)) {
            peer.send(peer.session.createQueue(name), "a");
            Peer.next(peer.session.createConsumer(peer.session.createQueue(name))).acknowledge();
        }
        same(List.of(), left(name), "what is left");
        return "";
    }

    private String rejected(String name) throws JMSException {
        try (Peer peer = new Peer(url, Session.CLIENT_ACKNOWLEDGE)) {
            peer.send(peer.session.createQueue(name), "a", "b");
            MessageConsumer consumer = peer.session.createConsumer(peer.session.createQueue(name));
            end(Peer.next(consumer), REJECTED);
            same(List.of("b"), Peer.texts(consumer, 1), "what comes next");
        }
        same(List.of("b"), left(name), "what is left");
        return BY_ACK_TYPE;
    }

    private String released(String name) throws JMSException {
        same(List.of(1, false), seenAgain(name, RELEASED), "JMSXDeliveryCount and JMSRedelivered");
        return BY_ACK_TYPE;
    }

    private String modified(String name) throws JMSException {
        same(List.of(2, true), seenAgain(name, MODIFIED_FAILED), "JMSXDeliveryCount and JMSRedelivered");
        return BY_ACK_TYPE + "; JMSXDeliveryCount is delivery-count plus one";
    }

    /** End a message, and take it again; returns how often it was delivered, and whether that was not the first. */
    private List<Object> seenAgain(String name, int outcome) throws JMSException {
        try (Peer peer = new Peer(url, Session.CLIENT_ACKNOWLEDGE)) {
            peer.send(peer.session.createQueue(name), "a");
            MessageConsumer consumer = peer.session.createConsumer(peer.session.createQueue(name));
            end(Peer.next(consumer), outcome);
            Message again = Peer.next(consumer);
            List<Object> seen = List.of(again.getIntProperty("JMSXDeliveryCount"), again.getJMSRedelivered());
            again.acknowledge();
            return seen;
        }
    }

    private static void end(Message message, int outcome) throws JMSException {
        // What was received may not be changed before its properties are cleared.
        message.clearProperties();
        message.setIntProperty(ACK_TYPE, outcome);
        message.acknowledge();
    }

    private String lostLink(String name) throws JMSException {
        try (Peer peer = new Peer(url, Session.CLIENT_ACKNOWLEDGE)) {
            peer.send(peer.session.createQueue(name), "a");
            Peer.next(peer.session.createConsumer(peer.session.createQueue(name)));
        }
        try (Peer peer = new Peer(url)) {
            Message again = Peer.next(peer.session.createConsumer(peer.session.createQueue(name)));
            same(true, again.getJMSRedelivered(), "JMSRedelivered");
        }
        return "";
    }

    private String browse(String name) throws JMSException {
        try (Peer peer = new Peer(url)) {
            Queue queue = peer.session.createQueue(name);
            peer.send(queue, "a", "b", "c");
            List<String> shown = new ArrayList<>();
            try (QueueBrowser browser = peer.session.createBrowser(queue)) {
                for (Object message : Collections.list(browser.getEnumeration())) {
                    shown.add(((TextMessage) message).getText());
                }
            }
            same(List.of("a", "b", "c"), shown, "what is shown");
        }
        same(List.of("a", "b", "c"), left(name), "what is left");
        return "";
    }

    private String selector(String name) throws JMSException {
        try (Peer peer = new Peer(url)) {
            Queue queue = peer.session.createQueue(name);
            for (String colour : List.of("blue", "red", "blue", "red")) {
                peer.sendColoured(queue, colour);
            }
            MessageConsumer reds = peer.session.createConsumer(queue, "colour = 'red' AND JMSPriority < 9");
            same(List.of("red", "red"), Peer.texts(reds, 2), "what is selected");
            same(List.of(), Peer.rest(reds), "what else is selected");
        }
        same(List.of("blue", "blue"), left(name), "what is left");
        return "";
    }

    private String temporaryQueue(String name) throws JMSException {
        try (Peer peer = new Peer(url);
                Peer other = new Peer(url)) {
            TemporaryQueue answers = peer.session.createTemporaryQueue();
            MessageConsumer consumer = peer.session.createConsumer(answers);
            Message request = peer.session.createTextMessage("question");
            request.setJMSReplyTo(answers);
            try (MessageProducer producer = peer.session.createProducer(peer.session.createQueue(name))) {
                producer.send(request);
            }
            Message asked = Peer.next(other.session.createConsumer(other.session.createQueue(name)));
            other.send(asked.getJMSReplyTo(), "answer");
            same(List.of("answer"), Peer.texts(consumer, 1), "what comes");
            consumer.close();
            answers.delete();
        }
        return "by the reply-to of a request";
    }

    private String anonymousRelay(String name) throws JMSException {
        try (Peer peer = new Peer(url);
                MessageProducer producer = peer.session.createProducer(null)) {
            for (String each : List.of("one", "two")) {
                producer.send(peer.session.createQueue(name + "." + each), peer.session.createTextMessage(each));
            }
        }
        same(List.of("one"), left(name + ".one"), "what the first has");
        same(List.of("two"), left(name + ".two"), "what the second has");
        return "";
    }

    private String largeMessage(String name) throws JMSException {
        byte[] body = new byte[3 << 20];
        for (int place = 0; place < body.length; place++) {
            body[place] = (byte) (place * 31 >> 3);
        }
        try (Peer peer = new Peer(url)) {
            Queue queue = peer.session.createQueue(name);
            BytesMessage message = peer.session.createBytesMessage();
            message.writeBytes(body);
            try (MessageProducer producer = peer.session.createProducer(queue)) {
                producer.send(message);
            }
            byte[] found = Peer.next(peer.session.createConsumer(queue)).getBody(byte[].class);
            same(true, Arrays.equals(body, found), "the same bytes");
        }
        return "";
    }

    /** Take what a queue has, on a connection of its own. */
    private List<String> left(String name) throws JMSException {
        try (Peer peer = new Peer(url)) {
            return Peer.rest(peer.session.createConsumer(peer.session.createQueue(name)));
        }
    }
}
