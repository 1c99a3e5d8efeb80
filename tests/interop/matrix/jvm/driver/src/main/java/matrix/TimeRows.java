package matrix;

import java.util.Map;

/** What decides when a message is delivered: its priority, its time to live, its delivery delay. */
abstract class TimeRows implements Driver.Rows {
    static final int LEVELS = 10;
    static final long SHORT_MS = 300;
    static final long DELAY_MS = 1000;
    /** An option of Qpid JMS, which would else drop by itself what has expired. */
    static final String NO_LOCAL_EXPIRY = "?jms.localMessageExpiry=false";

    final String url;

    TimeRows(String url) {
        this.url = url;
    }

    @Override
    public final Map<String, Driver.Behaviour> behaviours() {
        return Map.ofEntries(
                Map.entry("priority", this::priority),
                Map.entry("expiry", this::expiry),
                Map.entry("delivery-delay", this::deliveryDelay));
    }

    abstract String priority(String name) throws Exception;

    abstract String expiry(String name) throws Exception;

    abstract String deliveryDelay(String name) throws Exception;
}
