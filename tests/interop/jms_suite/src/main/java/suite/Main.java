package suite;

import java.util.List;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.Failure;
import org.objectweb.jtests.jms.conform.connection.ConnectionTest;
import org.objectweb.jtests.jms.conform.connection.TopicConnectionTest;
import org.objectweb.jtests.jms.conform.message.MessageBodyTest;
import org.objectweb.jtests.jms.conform.message.MessageDefaultTest;
import org.objectweb.jtests.jms.conform.message.MessageTypeTest;
import org.objectweb.jtests.jms.conform.message.headers.MessageHeaderTest;
import org.objectweb.jtests.jms.conform.message.properties.JMSXPropertyTest;
import org.objectweb.jtests.jms.conform.message.properties.MessagePropertyConversionTest;
import org.objectweb.jtests.jms.conform.message.properties.MessagePropertyTest;
import org.objectweb.jtests.jms.conform.queue.QueueBrowserTest;
import org.objectweb.jtests.jms.conform.queue.TemporaryQueueTest;
import org.objectweb.jtests.jms.conform.selector.SelectorSyntaxTest;
import org.objectweb.jtests.jms.conform.selector.SelectorTest;
import org.objectweb.jtests.jms.conform.session.QueueSessionTest;
import org.objectweb.jtests.jms.conform.session.SessionTest;
import org.objectweb.jtests.jms.conform.session.TopicSessionTest;
import org.objectweb.jtests.jms.conform.session.UnifiedSessionTest;
import org.objectweb.jtests.jms.conform.topic.TemporaryTopicTest;

/** Runs the suite: the URL of the broker, then the words of the command `ambermq`. */
public final class Main {
    private static final Class<?>[] TESTS = {
        ConnectionTest.class, TopicConnectionTest.class, MessageHeaderTest.class, MessageBodyTest.class,
        MessageDefaultTest.class, MessageTypeTest.class, JMSXPropertyTest.class, MessagePropertyConversionTest.class,
        MessagePropertyTest.class, QueueBrowserTest.class, TemporaryQueueTest.class, SelectorSyntaxTest.class,
        SelectorTest.class, QueueSessionTest.class, SessionTest.class, TopicSessionTest.class,
        UnifiedSessionTest.class, TemporaryTopicTest.class,
    };

    private Main() {}

    public static void main(String[] words) {
        BrokerAdmin.url = words[0];
        BrokerAdmin.command = List.of(words).subList(1, words.length);
        Result result = JUnitCore.runClasses(TESTS);
        for (Failure failure : result.getFailures()) {
            System.out.println("failed: " + failure.getTestHeader() + ": " + failure.getMessage());
        }
        int failed = result.getFailureCount();
        System.out.println("passed " + (result.getRunCount() - failed) + ", failed " + failed);
        // Threads of connections that a failed test left open do not hold the process.
        System.exit(failed == 0 && result.getRunCount() > 0 ? 0 : 1);
    }
}
