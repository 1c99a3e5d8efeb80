package matrix;

import io.vertx.core.json.JsonObject;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The application as a child process, with a configuration of its own. */
final class Child implements AutoCloseable {
    /** How long what must come may take. */
    static final long PATIENCE_MS = 40_000;
    /** How long nothing comes from where nothing is. */
    private static final long SILENCE_MS = 1000;

    private static final String GOT = "got ";

    private final Process process;
    private final PrintStream input;
    private final BlockingQueue<JsonObject> got = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> said = new LinkedBlockingQueue<>();

    /** Start it; returns when its channels are ready. Keys of the configuration are {@code in.address} and so on. */
    Child(String url, Map<String, String> configuration) throws IOException {
        URI place = URI.create(url);
        List<String> command = new ArrayList<>(List.of("java"));
        command.add("-Damqp-host=" + place.getHost());
        command.add("-Damqp-port=" + place.getPort());
        configuration.forEach((key, value) -> command.add("-D" + property(key) + "=" + value));
        String jar = System.getProperty("java.class.path").split(File.pathSeparator)[0];
        command.addAll(List.of("-jar", jar, "app"));
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        input = new PrintStream(process.getOutputStream(), true);
        Thread reading = new Thread(this::read);
        reading.setDaemon(true);
        reading.start();
        Driver.same("ready", next(said, PATIENCE_MS), "what the application says first");
    }

    private static String property(String key) {
        if (!key.contains(".")) {
            return key;
        }
        return "mp.messaging." + (key.startsWith("out.") ? "outgoing." : "incoming.") + key;
    }

    private void read() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith(GOT)) {
                    got.add(new JsonObject(line.substring(GOT.length())));
                } else {
                    said.add(line);
                }
            }
        } catch (IOException closed) {
            // The process has ended.
        }
    }

    private static <T> T next(BlockingQueue<T> queue, long patienceMs) {
        try {
            return queue.poll(patienceMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException ended) {
            throw new IllegalStateException(ended);
        }
    }

    /** Send texts, each of which the broker has accepted when this returns. */
    void send(String... texts) {
        for (String text : texts) {
            send(new JsonObject().put("body", text));
        }
    }

    /** Send a message; the broker has accepted it when this returns. */
    void send(JsonObject message) {
        input.println(message.encode());
        Driver.same("accepted", String.valueOf(next(said, PATIENCE_MS)), "what comes of a message");
    }

    /** Send a text of a colour, for selectors. */
    void sendColoured(String colour) {
        send(new JsonObject().put("body", colour).put("properties", new JsonObject().put("colour", colour)));
    }

    /** Return the next message that came, which must come. */
    JsonObject next() {
        JsonObject message = next(got, PATIENCE_MS);
        if (message == null) {
            throw new AssertionError("nothing came within " + PATIENCE_MS + " ms");
        }
        return message;
    }

    /** Return so many messages, which must come. */
    List<JsonObject> next(int count) {
        List<JsonObject> messages = new ArrayList<>();
        while (messages.size() < count) {
            messages.add(next());
        }
        return messages;
    }

    /** Return the texts of so many messages. */
    List<String> texts(int count) {
        return new ArrayList<>(next(count).stream().map(message -> message.getString("body")).toList());
    }

    /** Return what comes until nothing does. */
    List<JsonObject> rest() {
        List<JsonObject> messages = new ArrayList<>();
        for (JsonObject next = next(got, SILENCE_MS); next != null; next = next(got, SILENCE_MS)) {
            messages.add(next);
        }
        return messages;
    }

    /** Return the texts of messages that came from a channel. */
    static List<String> of(String channel, List<JsonObject> messages) {
        return messages.stream()
                .filter(message -> channel.equals(message.getString("channel")))
                .map(message -> message.getString("body"))
                .toList();
    }

    /** Hold a queue to have these texts, by an application of its own. */
    static void left(String url, String queue, List<String> expected) throws IOException {
        try (Child app = new Child(url, Map.of("in.address", queue))) {
            List<String> texts = app.texts(expected.size());
            texts.addAll(of("in", app.rest()));
            Driver.same(expected, texts, "what is left");
        }
    }

    /** End it as a crash would. */
    void kill() {
        process.destroyForcibly();
        wait(process);
    }

    /** End it as its operator would; what it has not acknowledged goes back. */
    @Override
    public void close() {
        input.close();
        wait(process);
    }

    private static void wait(Process process) {
        try {
            if (!process.waitFor(PATIENCE_MS, TimeUnit.MILLISECONDS)) {
                process.destroyForcibly();
                throw new AssertionError("the application did not end within " + PATIENCE_MS + " ms");
            }
        } catch (InterruptedException ended) {
            throw new IllegalStateException(ended);
        }
    }
}
