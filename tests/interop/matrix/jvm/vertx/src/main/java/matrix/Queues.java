package matrix;

import static matrix.Driver.same;

import io.vertx.amqp.AmqpMessage;
import io.vertx.amqp.AmqpReceiverOptions;
import io.vertx.amqp.AmqpSender;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.json.JsonObject;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/** Queues: sending, receiving, outcomes, selectors, requests, the anonymous relay. */
final class Queues extends QueueRows {
    Queues(String url) {
        super(url);
    }

    @Override
    String send(String name) {
        try (Peer peer = new Peer(url)) {
            for (int number = 0; number < COUNT; number++) {
                peer.send(name, "message " + number);
            }
        }
        return "by sendWithAck";
    }

    @Override
    String receive(String name) {
        try (Peer peer = new Peer(url)) {
            AmqpSender sender = peer.sender(name);
            for (int number = 0; number < COUNT; number++) {
                Peer.wait(sender.sendWithAck(Peer.text("message " + number)
                        .id("id " + number)
                        .correlationId("correlation " + number)
                        .subject("subject")
                        .priority((short) 7)
                        .applicationProperties(new JsonObject().put("number", number))
                        .build()));
            }
            Peer.Inbox inbox = peer.receiver(name);
            for (int number = 0; number < COUNT; number++) {
                AmqpMessage message = inbox.next().accepted();
                same("message " + number, message.bodyAsString(), "body");
                same("id " + number, message.id(), "message-id");
                same("correlation " + number, message.correlationId(), "correlation-id");
                same("subject", message.subject(), "subject");
                same(number, message.applicationProperties().getInteger("number"), "application property");
                same(7, message.priority(), "priority");
                same(true, message.isDurable(), "durable");
            }
            inbox.ends();
        }
        return "";
    }

    @Override
    String accepted(String name) {
        try (Peer peer = new Peer(url)) {
            peer.send(name, "a");
            same(List.of("a"), peer.receiver(name).texts(1), "what comes");
        }
        same(List.of(), Peer.left(url, name), "what is left");
        return "";
    }

    @Override
    String rejected(String name) {
        try (Peer peer = new Peer(url)) {
            peer.send(name, "a", "b");
            Peer.Inbox inbox = peer.receiver(name);
            inbox.next().rejected();
            same("b", inbox.next().bodyAsString(), "what comes next");
        }
        same(List.of("b"), Peer.left(url, name), "what is left");
        return "";
    }

    @Override
    String released(String name) {
        same(0, seenAgain(name, AmqpMessage::released), "delivery-count");
        return "";
    }

    @Override
    String modified(String name) {
        same(1, seenAgain(name, message -> message.modified(true, false)), "delivery-count");
        return "";
    }

    /** End a message, and take it again; returns its delivery-count. */
    private int seenAgain(String name, Consumer<AmqpMessage> ending) {
        try (Peer peer = new Peer(url)) {
            peer.send(name, "a");
            Peer.Inbox inbox = peer.receiver(name);
            ending.accept(inbox.next());
            return inbox.next().accepted().deliveryCount();
        }
    }

    @Override
    String lostLink(String name) {
        try (Peer peer = new Peer(url)) {
            peer.send(name, "a");
            Peer.Inbox inbox = peer.receiver(name);
            inbox.next();
            Peer.wait(inbox.receiver.close());
            AmqpMessage again = peer.receiver(name).next().accepted();
            same(1, again.deliveryCount(), "delivery-count");
        }
        return "";
    }

    @Override
    String selector(String name) {
        try (Peer peer = new Peer(url)) {
            AmqpSender sender = peer.sender(name);
            for (String colour : List.of("blue", "red", "blue", "red")) {
                peer.sendColoured(sender, colour);
            }
            AmqpReceiverOptions options = new AmqpReceiverOptions().setSelector("colour = 'red' AND JMSPriority < 9");
            Peer.Inbox reds = peer.receiver(name, options);
            same(List.of("red", "red"), reds.texts(2), "what is selected");
            reds.ends();
        }
        same(List.of("blue", "blue"), Peer.left(url, name), "what is left");
        return "";
    }

    @Override
    String temporaryQueue(String name) {
        try (Peer peer = new Peer(url);
                Peer other = new Peer(url)) {
            Peer.Inbox answers = new Peer.Inbox(Peer.wait(peer.connection.createDynamicReceiver()));
            AmqpMessage request =
                    Peer.text("question").replyTo(answers.receiver.address()).id("1").build();
            Peer.wait(peer.sender(name).sendWithAck(request));
            AmqpMessage asked = other.receiver(name).next().accepted();
            AmqpMessage answer =
                    Peer.text("answer").address(asked.replyTo()).correlationId(asked.id()).build();
            Peer.wait(Peer.wait(other.connection.createAnonymousSender()).sendWithAck(answer));
            AmqpMessage got = answers.next();
            same(List.of("answer", "1"), List.of(got.bodyAsString(), got.correlationId()), "what comes");
        }
        return "by the reply-to of a request, answered by an anonymous sender";
    }

    @Override
    String anonymousRelay(String name) {
        try (Peer peer = new Peer(url)) {
            AmqpSender sender = Peer.wait(peer.connection.createAnonymousSender());
            for (String each : List.of("one", "two")) {
                Peer.wait(sender.sendWithAck(Peer.text(each).address(name + "." + each).build()));
            }
        }
        same(List.of("one"), Peer.left(url, name + ".one"), "what the first has");
        same(List.of("two"), Peer.left(url, name + ".two"), "what the second has");
        return "";
    }

    @Override
    String groups(String name) {
        try (Peer peer = new Peer(url)) {
            Peer.Inbox one = peer.receiver(name);
            Peer.Inbox two = peer.receiver(name);
            AmqpSender sender = peer.sender(name);
            for (String text : Groups.TEXTS) {
                AmqpMessage message = Peer.text(text).groupId(Groups.group(text)).build();
                message.unwrap().setGroupSequence(Integer.toUnsignedLong(Groups.sequence(text)));
                Peer.wait(sender.sendWithAck(message));
            }
            List<String> first = one.texts(1);
            first.addAll(one.texts(Groups.count(first.get(0)) - 1));
            Groups.check(first, two.texts(Groups.TEXTS.size() - first.size()));
        }
        return "by groupId, and the group-sequence set on the message that unwrap returns";
    }

    @Override
    String largeMessage(String name) {
        byte[] body = Driver.large();
        try (Peer peer = new Peer(url)) {
            AmqpMessage message = AmqpMessage.create()
                    .durable(true)
                    .withBufferAsBody(Buffer.buffer(body))
                    .build();
            Peer.wait(peer.sender(name).sendWithAck(message));
            AmqpMessage got = peer.receiver(name).next().accepted();
            same(true, Arrays.equals(body, got.bodyAsBinary().getBytes()), "the same bytes");
        }
        return "";
    }

    @Override
    String browse(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("AmqpReceiverOptions has no distribution mode");
    }
}
