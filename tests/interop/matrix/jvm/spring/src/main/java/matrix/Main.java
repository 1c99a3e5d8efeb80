package matrix;

/** Drives Spring JMS above Qpid JMS: {@code java matrix.Main URL BEHAVIOUR...}. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        String url = arguments[0];
        Driver.run(arguments, new Queues(url), new Topics(url), new Flows(url), new Times(url));
    }
}
