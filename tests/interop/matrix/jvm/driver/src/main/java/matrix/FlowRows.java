package matrix;

import java.util.Map;

/** The rows about credit, drain, transactions, and a connection that comes back. */
abstract class FlowRows implements Driver.Rows {
    static final int COUNT = 10;
    /** How long nothing comes from where nothing is. */
    static final long SILENCE_MS = 500;

    final String url;

    FlowRows(String url) {
        this.url = url;
    }

    @Override
    public final Map<String, Driver.Behaviour> behaviours() {
        return Map.ofEntries(
                Map.entry("credit", this::credit),
                Map.entry("drain", this::drain),
                Map.entry("transaction", this::transaction),
                Map.entry("reconnect", this::reconnect));
    }

    abstract String credit(String name) throws Exception;

    abstract String drain(String name) throws Exception;

    abstract String transaction(String name) throws Exception;

    abstract String reconnect(String name) throws Exception;
}
