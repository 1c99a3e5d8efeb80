package matrix;

import java.util.HashMap;
import java.util.Map;

/** Drives Qpid JMS: {@code java matrix.Main URL BEHAVIOUR...}. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        String url = arguments[0];
        Map<String, Driver.Behaviour> known = new HashMap<>(new Queues(url).behaviours());
        known.putAll(new Topics(url).behaviours());
        known.putAll(new Flows(url).behaviours());
        known.putAll(new Transactions(url).behaviours());
        known.putAll(new Times(url).behaviours());
        known.putAll(new Defaults(url).behaviours());
        Driver.run(known, arguments);
    }
}
