package matrix;

import static matrix.Driver.same;

import io.vertx.amqp.AmqpMessage;
import io.vertx.amqp.AmqpReceiverOptions;
import io.vertx.amqp.AmqpSender;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.json.JsonObject;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Queues: sending, receiving, outcomes, selectors, requests, the anonymous relay. */
final class Queues {
    private static final int COUNT = 10;

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
                Map.entry("browse", Driver.notOffered("AmqpReceiverOptions has no distribution mode")),
                Map.entry("selector", this::selector),
                Map.entry("temporary-queue", this::temporaryQueue),
                Map.entry("anonymous-relay", this::anonymousRelay),
                Map.entry("large-message", this::largeMessage));
    }

    private String send(String name) {
        try (Peer peer = new Peer(url)) {
            for (int number = 0; number < COUNT; number++) {
                peer.send(name, "message " + number);
            }
        }
        return "by sendWithAck";
    }

    private String receive(String name) {
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

    private String accepted(String name) {
        try (Peer peer = new Peer(url)) {
            peer.send(name, "a");
            same(List.of("a"), peer.receiver(name).texts(1), "what comes");
        }
        same(List.of(), Peer.left(url, name), "what is left");
        return "";
    }

    private String rejected(String name) {
        try (Peer peer = new Peer(url)) {
            peer.send(name, "a", "b");
            Peer.Inbox inbox = peer.receiver(name);
            inbox.next().rejected();
            same("b", inbox.next().bodyAsString(), "what comes next");
        }
        same(List.of("b"), Peer.left(url, name), "what is left");
        return "";
    }

    private String released(String name) {
        same(0, seenAgain(name, AmqpMessage::released), "delivery-count");
        return "";
    }

    private String modified(String name) {
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

    private String lostLink(String name) {
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

    private String selector(String name) {
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

    private String temporaryQueue(String name) {
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

    private String anonymousRelay(String name) {
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

    private String largeMessage(String name) {
        byte[] body = new byte[3 << 20];
        for (int place = 0; place < body.length; place++) {
            body[place] = (byte) (place * 31 >> 3);
        }
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
}
