package matrix;

import io.quarkus.runtime.Quarkus;
import io.quarkus.runtime.annotations.QuarkusMain;
import java.util.Arrays;
import java.util.List;

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
        Driver.run(arguments, new Queues(url), new Topics(url), new Flows(url), new Times(url));
    }
}
