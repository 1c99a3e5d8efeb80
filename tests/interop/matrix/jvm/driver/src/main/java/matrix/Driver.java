package matrix;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** Shows the behaviours that it is asked for, and says one line of JSON a behaviour. */
public final class Driver {
    /** A behaviour: it throws where something is not as it must be, and returns how it was done, or nothing. */
    public interface Behaviour {
        String show(String queue) throws Exception;
    }

    /** Some rows of the matrix, as a client shows them. */
    public interface Rows {
        Map<String, Behaviour> behaviours();
    }

    /** Thrown by a behaviour that the client's own interface cannot express; the message is the reason. */
    public static final class NotOffered extends Exception {
        public NotOffered(String why) {
            super(why);
        }
    }

    private Driver() {}

    /** Show the behaviours that are named behind the URL in the arguments, and end the process. */
    public static void run(String[] arguments, Rows... rows) {
        Map<String, Behaviour> known = new HashMap<>();
        for (Rows some : rows) {
            known.putAll(some.behaviours());
        }
        for (String name : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            show(name, known.get(name));
        }
        // What a failed behaviour has left open ends with the process.
        System.exit(0);
    }

    /** The bytes of a large body. */
    public static byte[] large() {
        byte[] body = new byte[3 << 20];
        for (int place = 0; place < body.length; place++) {
            body[place] = (byte) (place * 31 >> 3);
        }
        return body;
    }

    private static void show(String name, Behaviour behaviour) {
        if (behaviour == null) {
            say(name, "failed", "the driver does not know it");
            return;
        }
        try {
            say(name, "passed", behaviour.show(name));
        } catch (NotOffered why) {
            say(name, "not offered", why.getMessage());
        } catch (Exception | AssertionError wrong) {
            say(name, "failed", String.valueOf(wrong));
        }
    }

    private static void say(String name, String verdict, String detail) {
        String line = "{\"behaviour\": \"%s\", \"verdict\": \"%s\", \"detail\": \"%s\"}%n";
        System.out.printf(line, name, verdict, quoted(detail));
        System.out.flush();
    }

    private static String quoted(String text) {
        return text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ");
    }

    /** Have the broker killed and started again; returns when it is back. */
    public static void restart() throws Exception {
        System.out.println("restart");
        System.out.flush();
        new BufferedReader(new InputStreamReader(System.in)).readLine();
    }

    /** Hold two values to be the same. */
    public static void same(Object expected, Object found, String what) {
        if (!expected.equals(found)) {
            throw new AssertionError(what + ": expected " + expected + ", found " + found);
        }
    }
}
