package matrix;

import io.vertx.amqp.AmqpClient;
import io.vertx.amqp.AmqpClientOptions;
import io.vertx.amqp.AmqpConnection;
import io.vertx.amqp.AmqpMessage;
import io.vertx.amqp.AmqpMessageBuilder;
import io.vertx.amqp.AmqpReceiver;
import io.vertx.amqp.AmqpReceiverOptions;
import io.vertx.amqp.AmqpSender;
import io.vertx.amqp.AmqpSenderOptions;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.json.JsonObject;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A connection, and the few things that all behaviours do with it. */
final class Peer implements AutoCloseable {
    /** How long a message that must come may take. */
    static final long PATIENCE_MS = 20_000;
    /** How long nothing comes from where nothing is: no call of the client ends when a queue is empty. */
    static final long SILENCE_MS = 500;
    /** The text of the message that a driver sends last: what came before it is all that there was. */
    private static final String LAST = "the last one";

    private static final Vertx VERTX = Vertx.vertx();

    final AmqpConnection connection;
    private final AmqpClient client;

    Peer(String url) {
        this(url, null);
    }

    /** Connect, as a container of that name. */
    Peer(String url, String container) {
        URI place = URI.create(url);
        AmqpClientOptions options = new AmqpClientOptions().setHost(place.getHost()).setPort(place.getPort());
        if (container != null) {
            options.setContainerId(container);
        }
        client = AmqpClient.create(VERTX, options);
        connection = wait(client.connect());
    }

    /** Wait for what the client does; a failure is thrown. */
    static <T> T wait(Future<T> future) {
        try {
            return future.toCompletionStage().toCompletableFuture().get(PATIENCE_MS, TimeUnit.MILLISECONDS);
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    /** Return a durable message with a text. */
    static AmqpMessageBuilder text(String text) {
        return AmqpMessage.create().durable(true).withBody(text);
    }

    AmqpSender sender(String address) {
        return wait(connection.createSender(address));
    }

    /** Send texts, each of which the broker has accepted when this returns. */
    void send(String address, String... texts) {
        AmqpSender sender = sender(address);
        for (String text : texts) {
            wait(sender.sendWithAck(text(text).build()));
        }
        wait(sender.close());
    }

    /** Send texts to a topic. */
    void sendNews(String address, String... texts) {
        AmqpSender sender = wait(connection.createSender(address, new AmqpSenderOptions().addCapability("topic")));
        for (String text : texts) {
            wait(sender.sendWithAck(text(text).build()));
        }
        wait(sender.close());
    }

    /** Send a text of a colour, for selectors. */
    void sendColoured(AmqpSender sender, String colour) {
        JsonObject properties = new JsonObject().put("colour", colour);
        wait(sender.sendWithAck(text(colour).applicationProperties(properties).build()));
    }

    /** Receive; the behaviour acknowledges each message. */
    Inbox receiver(String address) {
        return receiver(address, new AmqpReceiverOptions());
    }

    Inbox receiver(String address, AmqpReceiverOptions options) {
        return new Inbox(wait(connection.createReceiver(address, options.setAutoAcknowledgement(false))));
    }

    /** Take what a queue has, on a connection of its own. */
    static List<String> left(String url, String address) {
        try (Peer peer = new Peer(url)) {
            peer.send(address, LAST);
            Inbox inbox = peer.receiver(address);
            List<String> texts = new ArrayList<>();
            for (String text = inbox.text(); !LAST.equals(text); text = inbox.text()) {
                texts.add(text);
            }
            return texts;
        }
    }

    @Override
    public void close() {
        wait(client.close());
    }

    /** A receiver, and what it got. */
    static final class Inbox implements Sharing.Inbox {
        final AmqpReceiver receiver;
        private final BlockingQueue<AmqpMessage> got = new LinkedBlockingQueue<>();

        Inbox(AmqpReceiver receiver) {
            this.receiver = receiver;
            receiver.handler(got::add);
        }

        /** A receiver that gets what is fetched, and no more. */
        static Inbox paused(AmqpReceiver receiver) {
            return new Inbox(receiver.pause());
        }

        /** Take the next message, which must come. */
        AmqpMessage next() {
            AmqpMessage message = poll(PATIENCE_MS);
            if (message == null) {
                throw new AssertionError("nothing came within " + PATIENCE_MS + " ms");
            }
            return message;
        }

        private AmqpMessage poll(long patienceMs) {
            try {
                return got.poll(patienceMs, TimeUnit.MILLISECONDS);
            } catch (InterruptedException ended) {
                throw new IllegalStateException(ended);
            }
        }

        /** Take and accept so many messages; returns their texts. */
        @Override
        public List<String> texts(int count) {
            List<String> texts = new ArrayList<>();
            while (texts.size() < count) {
                texts.add(text());
            }
            return texts;
        }

        /** Take and accept the next message; returns its text. */
        String text() {
            return next().accepted().bodyAsString();
        }

        /** Hold that nothing else comes. */
        void ends() {
            AmqpMessage message = poll(SILENCE_MS);
            Driver.same("nothing", message == null ? "nothing" : message.bodyAsString(), "what else comes");
        }

        /** What has come and was not taken. */
        @Override
        public int waiting() {
            return got.size();
        }
    }
}
