package matrix;

import static matrix.Driver.same;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;

/** A connection that comes back. */
final class Flows extends FlowRows {
    Flows(String url) {
        super(url);
    }

    @Override
    String reconnect(String name) throws Exception {
        List<String> sent = new ArrayList<>();
        LinkedHashSet<String> got = new LinkedHashSet<>();
        try (Child app = new Child(url, Map.of("in.address", name, "out.address", name))) {
            for (int number = 0; number < 100; number++) {
                if (number == 50) {
                    Driver.restart();
                }
                sent.add("message " + number);
                app.send("message " + number);
            }
            // What the application had when its connection was lost comes again.
            while (got.size() < sent.size()) {
                got.addAll(app.texts(1));
            }
        }
        same(sent, new ArrayList<>(got), "what comes");
        return "by itself: the connector reconnects, and repeats a failed send";
    }

    @Override
    String credit(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("no attribute sets the credit of an incoming channel");
    }

    @Override
    String drain(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("an incoming channel has no drain");
    }

    @Override
    String transaction(String name) throws Driver.NotOffered {
        throw new Driver.NotOffered("no link to a coordinator");
    }
}
