package matrix;

import java.util.Map;

/** The rows about topics, temporary ones, and subscriptions. */
abstract class TopicRows implements Driver.Rows {
    /** How long nothing comes from where nothing is. */
    static final long SILENCE_MS = 500;

    final String url;

    TopicRows(String url) {
        this.url = url;
    }

    @Override
    public final Map<String, Driver.Behaviour> behaviours() {
        return Map.ofEntries(
                Map.entry("topic", this::topic),
                Map.entry("temporary-topic", this::temporaryTopic),
                Map.entry("durable-subscription", this::durableSubscription),
                Map.entry("shared-subscription", this::sharedSubscription));
    }

    abstract String topic(String name) throws Exception;

    abstract String temporaryTopic(String name) throws Exception;

    abstract String durableSubscription(String name) throws Exception;

    abstract String sharedSubscription(String name) throws Exception;
}
