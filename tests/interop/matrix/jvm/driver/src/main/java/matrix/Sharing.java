package matrix;

import static matrix.Driver.same;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** What two receivers of one subscription must get: each message once, and each receiver some. */
final class Sharing {
    private static final int COUNT = 20;
    private static final long PATIENCE_MS = 20_000;

    /** What a receiver got. */
    interface Inbox {
        /** Take so many messages; returns their texts. */
        List<String> texts(int count) throws Exception;

        /** What has come and was not taken. */
        int waiting();
    }

    private Sharing() {}

    /** The texts to send, in alphabetical order. */
    static List<String> texts() {
        List<String> texts = new ArrayList<>();
        for (int number = 0; number < COUNT; number++) {
            texts.add("message " + (char) ('a' + number));
        }
        return texts;
    }

    /** Hold two receivers to have all texts together. */
    static void check(Inbox one, Inbox two) throws Exception {
        List<String> got = new ArrayList<>(one.texts(1));
        got.addAll(two.texts(1));
        for (long waited = 0; one.waiting() + two.waiting() < COUNT - 2 && waited < PATIENCE_MS; waited += 10) {
            Thread.sleep(10);
        }
        got.addAll(one.texts(one.waiting()));
        got.addAll(two.texts(two.waiting()));
        Collections.sort(got);
        same(texts(), got, "what both have, each message once");
    }
}
