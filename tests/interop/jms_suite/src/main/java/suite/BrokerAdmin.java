package suite;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Hashtable;
import java.util.List;
import javax.naming.Context;
import javax.naming.InitialContext;
import javax.naming.NamingException;
import org.objectweb.jtests.jms.admin.Admin;

/** Creates and deletes what the suite asks for: queues by the command line, names of JNDI in a table. */
public final class BrokerAdmin implements Admin {
    /** The URL of the broker. */
    static String url = "";
    /** The words of the command `ambermq`. */
    static List<String> command = List.of();

    private final Hashtable<String, String> names = new Hashtable<>();

    public BrokerAdmin() {
        names.put(Context.INITIAL_CONTEXT_FACTORY, "org.apache.qpid.jms.jndi.JmsInitialContextFactory");
    }

    @Override
    public String getName() {
        return "AmberMQ";
    }

    @Override
    public Context createContext() throws NamingException {
        return new InitialContext(names);
    }

    @Override
    public void createQueue(String name) {
        names.put("queue." + name, name);
        run("queue", "declare", name);
    }

    @Override
    public void deleteQueue(String name) {
        run("queue", "delete", name, "--yes");
    }

    @Override
    public void createTopic(String name) {
        names.put("topic." + name, "/topics/" + name);
    }

    @Override
    public void deleteTopic(String name) {}

    @Override
    public void createConnectionFactory(String name) {
        names.put("connectionfactory." + name, url);
    }

    @Override
    public void createQueueConnectionFactory(String name) {
        createConnectionFactory(name);
    }

    @Override
    public void createTopicConnectionFactory(String name) {
        createConnectionFactory(name);
    }

    @Override
    public void deleteConnectionFactory(String name) {}

    @Override
    public void deleteQueueConnectionFactory(String name) {}

    @Override
    public void deleteTopicConnectionFactory(String name) {}

    @Override
    public void startServer() {}

    @Override
    public void stopServer() {}

    @Override
    public void start() {}

    @Override
    public void stop() {}

    private static void run(String... words) {
        List<String> line = new ArrayList<>(command);
        line.addAll(List.of(words));
        line.addAll(List.of("--url", url));
        try {
            Process process = new ProcessBuilder(line).redirectErrorStream(true).start();
            String told = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (process.waitFor() != 0) {
                throw new IllegalStateException(String.join(" ", words) + ": " + told);
            }
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
