package matrix;

import static matrix.Driver.same;

import io.vertx.amqp.AmqpMessage;
import io.vertx.amqp.AmqpSender;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.qpid.proton.amqp.Symbol;
import org.apache.qpid.proton.amqp.messaging.MessageAnnotations;

/** What decides when a message is delivered: its priority, its time to live, its delivery delay. */
final class Times extends TimeRows {
    Times(String url) {
        super(url);
    }

    @Override
    String priority(String name) {
        List<String> expected = new ArrayList<>();
        try (Peer peer = new Peer(url)) {
            AmqpSender sender = peer.sender(name);
            for (short level = 0; level < LEVELS; level++) {
                Peer.wait(sender.sendWithAck(Peer.text("level " + level).priority(level).build()));
                expected.add(0, "level " + level);
            }
            same(expected, peer.receiver(name).texts(LEVELS), "the order");
        }
        return "";
    }

    @Override
    String expiry(String name) throws InterruptedException {
        try (Peer peer = new Peer(url)) {
            Peer.wait(peer.sender(name).sendWithAck(Peer.text("short").ttl(SHORT_MS).build()));
            peer.send(name, "long");
            Thread.sleep(2 * SHORT_MS);
        }
        same(List.of("long"), Peer.left(url, name), "what is left");
        return "";
    }

    @Override
    String deliveryDelay(String name) {
        try (Peer peer = new Peer(url)) {
            Peer.Inbox inbox = peer.receiver(name);
            long began = System.nanoTime();
            AmqpMessage late = Peer.text("late").build();
            late.unwrap().setMessageAnnotations(
                    new MessageAnnotations(Map.of(Symbol.valueOf("x-opt-delivery-delay"), DELAY_MS)));
            Peer.wait(peer.sender(name).sendWithAck(late));
            peer.send(name, "at once");
            same(List.of("at once", "late"), inbox.texts(2), "what comes");
            same(true, System.nanoTime() - began >= DELAY_MS * 1_000_000, "it comes after its delay");
        }
        return "by x-opt-delivery-delay, set on the message that unwrap returns";
    }
}
