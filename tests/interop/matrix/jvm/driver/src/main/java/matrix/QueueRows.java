package matrix;

import java.util.Map;

/** The rows about queues: sending, receiving, outcomes, browsing, selectors, groups. */
abstract class QueueRows implements Driver.Rows {
    static final int COUNT = 10;

    final String url;

    QueueRows(String url) {
        this.url = url;
    }

    @Override
    public final Map<String, Driver.Behaviour> behaviours() {
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
                Map.entry("groups", this::groups),
                Map.entry("large-message", this::largeMessage));
    }

    abstract String send(String name) throws Exception;

    abstract String receive(String name) throws Exception;

    abstract String accepted(String name) throws Exception;

    abstract String rejected(String name) throws Exception;

    abstract String released(String name) throws Exception;

    abstract String modified(String name) throws Exception;

    abstract String lostLink(String name) throws Exception;

    abstract String browse(String name) throws Exception;

    abstract String selector(String name) throws Exception;

    abstract String temporaryQueue(String name) throws Exception;

    abstract String anonymousRelay(String name) throws Exception;

    abstract String groups(String name) throws Exception;

    abstract String largeMessage(String name) throws Exception;
}
