package matrix;

/** The property of Qpid JMS that says how an acknowledgement ends a message, and its values. */
final class AckType {
    static final String PROPERTY = "JMS_AMQP_ACK_TYPE";
    static final int REJECTED = 2;
    static final int RELEASED = 3;
    static final int MODIFIED_FAILED = 4;

    private AckType() {}
}
