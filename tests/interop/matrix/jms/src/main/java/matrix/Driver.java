package matrix;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Map;

/**
 * Does what it is asked for with Qpid JMS, and says one line of JSON a behaviour: {@code java matrix.Driver URL
 * BEHAVIOUR...}.
 */
public final class Driver {
    /** A behaviour: it throws where something is not as it must be, and returns how it was done, or nothing. */
    interface Behaviour {
        String show(String queue) throws Exception;
    }

    private Driver() {}

    public static void main(String[] arguments) {
        String url = arguments[0];
        Map<String, Behaviour> known = new java.util.HashMap<>(new Queues(url).behaviours());
        known.putAll(new Topics(url).behaviours());
        known.putAll(new Flows(url).behaviours());
        known.putAll(new Transactions(url).behaviours());
        known.putAll(new Defaults(url).behaviours());
        for (String name : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            show(name, known.get(name));
        }
        System.exit(0);
    }

    private static void show(String name, Behaviour behaviour) {
        if (behaviour == null) {
            say(name, "failed", "the driver does not know it");
            return;
        }
        try {
            say(name, "passed", behaviour.show(name));
        } catch (Exception | AssertionError wrong) {
            say(name, "failed", String.valueOf(wrong));
        }
    }

    private static void say(String name, String verdict, String detail) {
        System.out.printf("{\"behaviour\": \"%s\", \"verdict\": \"%s\", \"detail\": \"%s\"}%n", name, verdict, quoted(detail));
        System.out.flush();
    }

    private static String quoted(String text) {
        return text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ");
    }

    /** Have the broker killed and started again; returns when it is back. */
    static void restart() throws Exception {
        System.out.println("restart");
        System.out.flush();
        new BufferedReader(new InputStreamReader(System.in)).readLine();
    }

    /** Hold two values to be the same. */
    static void same(Object expected, Object found, String what) {
        if (!expected.equals(found)) {
            throw new AssertionError(what + ": expected " + expected + ", found " + found);
        }
    }
}
