package matrix;

import io.quarkus.runtime.Quarkus;
import io.quarkus.runtime.annotations.QuarkusMain;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Drives Quarkus Messaging: the arguments are {@code URL BEHAVIOUR...}; with {@code app} it is the application. */
@QuarkusMain
public final class Main {
    private Main() {}

    public static void main(String... arguments) {
        if (List.of("app").equals(Arrays.asList(arguments))) {
            Quarkus.run(App.class);
            return;
        }
        String url = arguments[0];
        Map<String, Driver.Behaviour> known = new HashMap<>(new Queues(url).behaviours());
        known.putAll(new Topics(url).behaviours());
        known.putAll(new Flows(url).behaviours());
        Driver.run(known, arguments);
    }
}
