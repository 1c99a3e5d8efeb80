package matrix;

import io.quarkus.runtime.QuarkusApplication;
import io.smallrye.reactive.messaging.MutinyEmitter;
import io.smallrye.reactive.messaging.amqp.IncomingAmqpMetadata;
import io.smallrye.reactive.messaging.amqp.OutgoingAmqpMetadata;
import io.smallrye.reactive.messaging.providers.extension.HealthCenter;
import io.vertx.amqp.AmqpMessage;
import io.vertx.core.json.JsonObject;
import jakarta.inject.Inject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import org.eclipse.microprofile.config.inject.ConfigProperty;
import org.eclipse.microprofile.reactive.messaging.Channel;
import org.eclipse.microprofile.reactive.messaging.Incoming;
import org.eclipse.microprofile.reactive.messaging.Message;

/**
 * The application: it sends each line of its standard input, a message in JSON, to the channel {@code out}, and prints
 * what comes from the channels {@code in} and {@code other}. Its lines begin with {@code ready}, {@code accepted} or
 * {@code got}.
 */
public final class App implements QuarkusApplication {
    /** What the application does with a message. */
    enum Outcome {
        ACK,
        /** The first message is nacked, the others are acknowledged. */
        NACK_FIRST,
        /** No message is acknowledged, and the next one comes all the same. */
        HOLD,
    }

    private static final int DEFAULT_PRIORITY = 4;

    @Inject
    @Channel("out")
    MutinyEmitter<Object> out;

    @Inject
    HealthCenter health;

    @Inject
    @ConfigProperty(name = "outcome", defaultValue = "ACK")
    Outcome outcome;

    private final AtomicInteger count = new AtomicInteger();

    @Override
    public int run(String... arguments) throws Exception {
        // A channel has started when its link is attached.
        while (!health.getStartup().isOk() || !health.getReadiness().isOk()) {
            Thread.sleep(10);
        }
        say("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.sendMessageAndAwait(message(new JsonObject(line)));
            say("accepted");
        }
        return 0;
    }

    private static Message<Object> message(JsonObject told) {
        if (told.containsKey("group") || Integer.valueOf(0).equals(told.getInteger("priority"))) {
            return Message.of(beyondMetadata(told));
        }
        var metadata = OutgoingAmqpMetadata.builder().withDurable(true);
        if (told.containsKey("address")) {
            metadata.withAddress(told.getString("address"));
        }
        if (told.containsKey("id")) {
            metadata.withMessageId(told.getString("id"))
                    .withCorrelationId(told.getString("correlation"))
                    .withSubject(told.getString("subject"));
        }
        if (told.containsKey("properties")) {
            metadata.withApplicationProperties(told.getJsonObject("properties"));
        }
        if (told.containsKey("priority")) {
            metadata.withPriority(told.getInteger("priority").shortValue());
        }
        if (told.containsKey("ttl")) {
            metadata.withTtl(told.getLong("ttl"));
        }
        if (told.containsKey("delay")) {
            metadata.withMessageAnnotations("x-opt-delivery-delay", told.getLong("delay"));
        }
        Object body = told.containsKey("body") ? told.getString("body") : Driver.large();
        return Message.of(body).addMetadata(metadata.build());
    }

    /**
     * A message of Vert.x, a payload that the connector sends as it is. From metadata it does not send the priority 0,
     * and it sends 0 instead of a negative group-sequence.
     */
    private static AmqpMessage beyondMetadata(JsonObject told) {
        AmqpMessage message = AmqpMessage.create()
                .durable(true)
                .priority(told.getInteger("priority", DEFAULT_PRIORITY).shortValue())
                .groupId(told.getString("group"))
                .withBody(told.getString("body"))
                .build();
        message.unwrap().setGroupSequence(Integer.toUnsignedLong(told.getInteger("sequence", 0)));
        return message;
    }

    @Incoming("in")
    CompletionStage<Void> in(Message<Object> message) {
        return take("in", message);
    }

    @Incoming("other")
    CompletionStage<Void> other(Message<Object> message) {
        return take("other", message);
    }

    private CompletionStage<Void> take(String channel, Message<Object> message) {
        IncomingAmqpMetadata metadata = message.getMetadata(IncomingAmqpMetadata.class).orElseThrow();
        Object body = message.getPayload();
        say("got " + new JsonObject()
                .put("channel", channel)
                .put("body", body instanceof byte[] bytes ? "large " + Arrays.equals(bytes, Driver.large()) : body.toString())
                .put("id", metadata.getId())
                .put("correlation", metadata.getCorrelationId())
                .put("subject", metadata.getSubject())
                .put("properties", metadata.getProperties())
                .put("priority", (int) metadata.getPriority())
                .put("deliveries", metadata.getDeliveryCount())
                .encode());
        boolean isFirst = count.getAndIncrement() == 0;
        return switch (outcome) {
            case ACK -> message.ack();
            case NACK_FIRST -> isFirst ? message.nack(new IllegalStateException("the first one fails")) : message.ack();
            case HOLD -> CompletableFuture.completedFuture(null);
        };
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
