package matrix;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.Message;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.camel.ConsumerTemplate;
import org.apache.camel.Processor;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.jms.JmsComponent;
import org.apache.camel.component.jms.JmsConsumer;
import org.apache.camel.component.jms.JmsMessage;
import org.apache.camel.impl.DefaultCamelContext;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.listener.DefaultMessageListenerContainer;

/** A Camel context with the component `jms`, and the messages that its routes got. */
final class Camel implements AutoCloseable, Sharing.Inbox {
    /** How long a message that must come may take. */
    static final long PATIENCE_MS = 20_000;

    /** A message that a route got. */
    record Got(String text, Message message) {}

    final DefaultCamelContext context = new DefaultCamelContext();
    final JmsComponent component = new JmsComponent();
    final CachingConnectionFactory connections;
    final ProducerTemplate producer;
    private final ConsumerTemplate consumer;
    private final BlockingQueue<Got> got = new LinkedBlockingQueue<>();

    /** Routes have a connection each, as their containers cache what they need; templates share a cached one. */
    Camel(String url) throws Exception {
        this(url, false);
    }

    /** With one connection factory a route and what it sends can share a session. */
    Camel(String url, boolean isShared) throws Exception {
        connections = new CachingConnectionFactory(new JmsConnectionFactory(url));
        connections.setCacheConsumers(false);
        ConnectionFactory listening = isShared ? connections : new JmsConnectionFactory(url);
        component.setConnectionFactory(connections);
        component.getConfiguration().setListenerConnectionFactory(listening);
        component.getConfiguration().setRecoveryInterval(100);
        component.getConfiguration().setReceiveTimeout(200);
        context.addComponent("jms", component);
        context.getShutdownStrategy().setTimeout(10);
        context.start();
        producer = context.createProducerTemplate();
        consumer = context.createConsumerTemplate();
    }

    /** Start routes. */
    Camel with(RouteBuilder routes) throws Exception {
        context.addRoutes(routes);
        return this;
    }

    /** Start a route that notes what it gets, and wait until it has its consumer. */
    Camel listen(String uri) throws Exception {
        return listen(uri, exchange -> {});
    }

    /** Start a route that notes what it gets, and does a step with it. */
    Camel listen(String uri, Processor step) throws Exception {
        String id = "route " + context.getRoutes().size();
        with(new RouteBuilder() {
            @Override
            public void configure() {
                from(uri).routeId(id).process(noting()).process(step);
            }
        });
        ready(id);
        return this;
    }

    /** Return a step that notes messages, for {@link #next}. */
    Processor noting() {
        return exchange -> got.add(new Got(
                exchange.getMessage().getBody(String.class), exchange.getMessage(JmsMessage.class).getJmsMessage()));
    }

    private void ready(String id) throws Exception {
        JmsConsumer consumer = (JmsConsumer) context.getRoute(id).getConsumer();
        var container = (DefaultMessageListenerContainer) consumer.getListenerContainer();
        for (long waited = 0; !container.isRegisteredWithDestination() && waited < PATIENCE_MS; waited += 10) {
            Thread.sleep(10);
        }
    }

    /** Send texts, each of which the broker has accepted when this returns. */
    void send(String uri, String... texts) {
        for (String text : texts) {
            producer.sendBody(uri, text);
        }
    }

    /** Take the next message, which must come. */
    Got next() throws InterruptedException {
        Got next = got.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
        if (next == null) {
            throw new AssertionError("nothing came within " + PATIENCE_MS + " ms");
        }
        return next;
    }

    /** Take so many messages; returns their texts. */
    @Override
    public List<String> texts(int count) throws InterruptedException {
        List<String> texts = new ArrayList<>();
        while (texts.size() < count) {
            texts.add(next().text());
        }
        return texts;
    }

    /** What has come and was not taken. */
    @Override
    public int waiting() {
        return got.size();
    }

    /** Take what is there. */
    List<String> rest(String uri) {
        List<String> texts = new ArrayList<>();
        for (String text = take(uri); text != null; text = take(uri)) {
            texts.add(text);
        }
        return texts;
    }

    private String take(String uri) {
        return consumer.receiveBodyNoWait(uri, String.class);
    }

    /** Take what a queue has, in a context of its own. */
    static List<String> left(String url, String queue) throws Exception {
        try (Camel camel = new Camel(url)) {
            return camel.rest("jms:queue:" + queue);
        }
    }

    @Override
    public void close() {
        context.stop();
        connections.destroy();
    }
}
