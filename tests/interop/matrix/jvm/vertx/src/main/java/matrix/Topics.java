package matrix;

import static matrix.Driver.same;

import io.vertx.amqp.AmqpReceiverOptions;
import io.vertx.amqp.AmqpSender;
import io.vertx.amqp.AmqpSenderOptions;
import java.util.List;

/** Topics, temporary ones, and subscriptions. */
final class Topics extends TopicRows {
    Topics(String url) {
        super(url);
    }

    private static AmqpReceiverOptions options() {
        return new AmqpReceiverOptions().addCapability("topic");
    }

    @Override
    String topic(String name) {
        try (Peer peer = new Peer(url);
                Peer other = new Peer(url)) {
            other.sendNews(name, "no consumer hears it");
            Peer.Inbox one = peer.receiver(name, options());
            Peer.Inbox two = other.receiver(name, options());
            other.sendNews(name, "news");
            same(List.of("news"), one.texts(1), "what the first gets");
            same(List.of("news"), two.texts(1), "what the second gets");
            one.ends();
        }
        return "by the capability topic";
    }

    @Override
    String temporaryTopic(String name) {
        try (Peer peer = new Peer(url);
                Peer other = new Peer(url)) {
            AmqpSenderOptions dynamic = new AmqpSenderOptions().setDynamic(true).addCapability("temporary-topic");
            AmqpSender sender = Peer.wait(peer.connection.createSender(null, dynamic));
            Peer.Inbox one = peer.receiver(sender.address(), options());
            Peer.Inbox two = other.receiver(sender.address(), options());
            Peer.wait(sender.sendWithAck(Peer.text("news").build()));
            same(List.of("news"), one.texts(1), "what the first gets");
            same(List.of("news"), two.texts(1), "what the second gets");
        }
        return "by a dynamic sender with the capability temporary-topic";
    }

    @Override
    String durableSubscription(String name) {
        try (Peer sender = new Peer(url)) {
            try (Peer peer = new Peer(url, name)) {
                // Closing a durable receiver detaches its link and leaves the subscription.
                Peer.wait(mine(peer, name).receiver.close());
            }
            AmqpSender news =
                    Peer.wait(sender.connection.createSender(name, new AmqpSenderOptions().addCapability("topic")));
            for (String colour : List.of("red", "blue", "red")) {
                sender.sendColoured(news, colour);
            }
            try (Peer peer = new Peer(url, name)) {
                Peer.Inbox again = mine(peer, name);
                same(List.of("red", "red"), again.texts(2), "what has waited");
                again.ends();
            }
        }
        return "with a selector; closing the receiver leaves it";
    }

    private static Peer.Inbox mine(Peer peer, String name) {
        return peer.receiver(
                name, options().setDurable(true).setLinkName("mine").setSelector("colour = 'red'"));
    }

    @Override
    String sharedSubscription(String name) throws Exception {
        shareOne(name, options().setLinkName("ours"));
        shareOne(name + ".durable", options().setLinkName("ours").setDurable(true));
        return "volatile and durable, by the capabilities shared and global";
    }

    private void shareOne(String name, AmqpReceiverOptions options) throws Exception {
        options.addCapability("shared").addCapability("global");
        try (Peer peer = new Peer(url);
                Peer other = new Peer(url)) {
            Peer.Inbox one = peer.receiver(name, options);
            Peer.Inbox two = other.receiver(name, options);
            peer.sendNews(name, Sharing.texts().toArray(String[]::new));
            Sharing.check(one, two);
        }
    }
}
