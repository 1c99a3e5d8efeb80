"""The limits of open transactions, the room that they keep, and their age."""

from ambermq.engine.commands import TIMEOUT, Post, Publish, Transaction
from ambermq.engine.config import EngineConfig
from ambermq.engine.transactions.open_transactions import OpenTransactions


def post(*bodies: bytes, queues: tuple[int, ...] = (1,), ttl_ms: int = 0, time_us: int = 0) -> Post:
    """A run of messages to queues."""
    messages = Publish("link", 9, 0, list(bodies), [0] * len(bodies), sum(map(len, bodies)), ttl_ms=ttl_ms)
    return Post(queues, messages, time_us, queues)


def opened(**limits: int) -> tuple[OpenTransactions, Transaction]:
    """A transaction that is begun."""
    some, one = OpenTransactions(EngineConfig(**limits), batch_bytes_max=1 << 20), Transaction(b"1")
    some.begin(one, 1000)
    return some, one


def test_neighbours_that_are_alike_are_one_post() -> None:
    """A different queue, or time of a time to live, begins another one."""
    some, one = opened()
    for each in (
        post(b"a"),
        post(b"b"),
        post(b"c", queues=(2,)),
        post(b"d", ttl_ms=5),
        post(b"e", ttl_ms=5, time_us=1),
    ):
        assert some.add(one, each) == ""
    assert [each.messages.bodies for each in one.posts] == [[b"a", b"b"], [b"c"], [b"d"], [b"e"]]
    assert (one.count, one.size, some.size) == (5, 5, 5)


def test_each_limit_is_kept() -> None:
    """The refusal names it, and nothing of the post is held."""
    for limits, text in (
        ({"transaction_messages_max": 3}, "transaction_messages_max"),
        ({"transaction_bytes_max": 3}, "transaction_bytes_max"),
        ({"transactions_bytes_max": 3}, "transactions_bytes_max"),
    ):
        some, one = opened(**limits)
        assert some.add(one, post(b"a", b"b")) == ""
        assert text in some.add(one, post(b"c", b"d"))
        assert (one.count, one.size) == (2, 2)
        assert some.kept is not None
        assert some.kept.counts == {1: 2}


def test_a_message_counts_once_for_each_queue() -> None:
    """So a commit has a limited number of changes."""
    some, one = opened(transaction_messages_max=5)
    assert some.add(one, post(b"a", b"b", queues=(1, 2))) == ""
    assert "transaction_messages_max" in some.add(one, post(b"c", queues=(1, 2)))


def test_the_heads_fit_into_a_part_of_a_batch() -> None:
    """Whatever the limit of messages says."""
    some, one = (
        OpenTransactions(EngineConfig(transaction_messages_max=1 << 30), batch_bytes_max=8192),
        Transaction(b"1"),
    )
    some.begin(one, 0)
    while not (why := some.add(one, post(b"a"))):
        pass
    assert "2048 bytes of heads" in why
    assert one.head_bytes <= 2048


def test_an_end_gives_everything_back() -> None:
    """And a second end changes nothing."""
    some, one = opened()
    some.add(one, post(b"a", b"b"))
    some.end(one)
    some.end(one)
    assert (some.size, some.count, some.kept) == (0, 0, None)
    assert some.add(one, post(b"c")) == "the transaction was open for more than 60000 ms (transaction_ms_max)"


def test_the_oldest_one_is_late_first() -> None:
    """At its age, not before."""
    some, one = opened(transaction_ms_max=1)
    other = Transaction(b"2")
    some.begin(other, 1500)
    assert some.next_us == 2000
    assert some.take_late(1999) is None
    assert some.take_late(2000) is one
    assert one.end == TIMEOUT
    some.end(one)
    assert some.take_late(2400) is None
    assert not other.end


def test_views_are_not_kept() -> None:
    """They would keep the chunks of their reads."""
    some, one = opened()
    some.add(one, post(memoryview(b"abc")[1:]))  # type: ignore[arg-type]
    assert [type(body) for body in one.posts[0].messages.bodies] == [bytes]
