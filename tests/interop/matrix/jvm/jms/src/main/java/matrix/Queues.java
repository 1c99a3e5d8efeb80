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

/** Queues: sending, receiving, outcomes, browsing, selectors, temporary ones, the anonymous relay. */
final class Queues extends QueueRows {
    private static final String BY_ACK_TYPE = "by the property " + AckType.PROPERTY + " of an acknowledged message";

    Queues(String url) {
        super(url);
    }

    @Override
    String send(String name) throws JMSException {
        try (Peer peer = new Peer(url)) {
            for (int number = 0; number < COUNT; number++) {
                peer.send(peer.session.createQueue(name), "message " + number);
            }
        }
        return "";
    }

    @Override
    String receive(String name) throws JMSException {
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

    @Override
    String accepted(String name) throws JMSException {
        try (Peer peer = new Peer(url, Session.CLIENT_ACKNOWLEDGE)) {
            peer.send(peer.session.createQueue(name), "a");
            Peer.next(peer.session.createConsumer(peer.session.createQueue(name))).acknowledge();
        }
        same(List.of(), left(name), "what is left");
        return "";
    }

    @Override
    String rejected(String name) throws JMSException {
        try (Peer peer = new Peer(url, Session.CLIENT_ACKNOWLEDGE)) {
            peer.send(peer.session.createQueue(name), "a", "b");
            MessageConsumer consumer = peer.session.createConsumer(peer.session.createQueue(name));
            end(Peer.next(consumer), AckType.REJECTED);
            same(List.of("b"), Peer.texts(consumer, 1), "what comes next");
        }
        same(List.of("b"), left(name), "what is left");
        return BY_ACK_TYPE;
    }

    @Override
    String released(String name) throws JMSException {
        same(List.of(1, false), seenAgain(name, AckType.RELEASED), "JMSXDeliveryCount and JMSRedelivered");
        return BY_ACK_TYPE;
    }

    @Override
    String modified(String name) throws JMSException {
        same(List.of(2, true), seenAgain(name, AckType.MODIFIED_FAILED), "JMSXDeliveryCount and JMSRedelivered");
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
        message.setIntProperty(AckType.PROPERTY, outcome);
        message.acknowledge();
    }

    @Override
    String lostLink(String name) throws JMSException {
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

    @Override
    String browse(String name) throws JMSException {
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

    @Override
    String selector(String name) throws JMSException {
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

    @Override
    String temporaryQueue(String name) throws JMSException {
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

    @Override
    String anonymousRelay(String name) throws JMSException {
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

    @Override
    String groups(String name) throws JMSException {
        try (Peer peer = new Peer(url)) {
            Queue queue = peer.session.createQueue(name);
            MessageConsumer one = peer.session.createConsumer(queue);
            Session session = peer.connection.createSession(Session.AUTO_ACKNOWLEDGE);
            MessageConsumer two = session.createConsumer(queue);
            try (MessageProducer producer = peer.session.createProducer(queue)) {
                for (String text : Groups.TEXTS) {
                    Message message = peer.session.createTextMessage(text);
                    message.setStringProperty("JMSXGroupID", Groups.group(text));
                    message.setIntProperty("JMSXGroupSeq", Groups.sequence(text));
                    producer.send(message);
                }
            }
            Groups.check(Peer.rest(one), Peer.rest(two));
        }
        return "by JMSXGroupID and JMSXGroupSeq";
    }

    @Override
    String largeMessage(String name) throws JMSException {
        byte[] body = Driver.large();
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
