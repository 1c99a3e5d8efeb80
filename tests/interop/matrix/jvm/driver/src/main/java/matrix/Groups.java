package matrix;

import static matrix.Driver.same;

import java.util.List;

/**
 * The messages of the row groups: the first letter of a text is its group. No receiver settles one before all are sent:
 * a group without messages has no receiver.
 */
final class Groups {
    static final List<String> TEXTS = List.of("a1", "b1", "c1", "a2", "b2", "c2", "a3", "a4");
    private static final List<String> FIRST = List.of("a1", "c1", "a2", "c2", "a3");
    private static final List<String> SECOND = List.of("b1", "b2", "a4");

    private Groups() {}

    static String group(String text) {
        return text.substring(0, 1);
    }

    /** The group-sequence of a text: -1 closes its group. */
    static int sequence(String text) {
        return "a3".equals(text) ? -1 : text.charAt(1) - '0';
    }

    /** How many messages a receiver gets, by the first of them. */
    static int count(String first) {
        return (FIRST.get(0).equals(first) ? FIRST : SECOND).size();
    }

    /** Hold two receivers to have the groups undivided, in order, and the closed one at the other receiver then. */
    static void check(List<String> one, List<String> two) {
        boolean isFirst = one.contains(FIRST.get(0));
        same(FIRST, isFirst ? one : two, "what the receiver of the first group gets");
        same(SECOND, isFirst ? two : one, "what the other one gets");
    }
}
