"""Transactions: what a peer posts and settles in one, and the command that ends it.

A transaction is volatile until it ends. Its posts and outcomes are held in memory, so a broker that stops leaves
nothing of it. Its commit is one batch of the log: it is there as a whole, or not at all.

AMQP 1.0, part 4.
"""

from typing import Any, Final, final

from msgspec import Struct

from ambermq.engine.commands.messages import Publish
from ambermq.engine.entries.outcome import ACCEPTED, Outcome

__all__ = [
    "COMMITTED",
    "ROLLBACK",
    "TIMEOUT",
    "BeginTransaction",
    "Discharge",
    "Post",
    "Retirement",
    "TidyQueues",
    "Transaction",
]

COMMITTED: Final = "committed"
"""The answer to a discharge that has committed its transaction."""
ROLLBACK: Final = "amqp:transaction:rollback"
"""The condition of a transaction that cannot be committed."""
TIMEOUT: Final = "amqp:transaction:timeout"
"""The condition of a transaction that took too long."""


@final
class Post(Struct):
    """A run of messages that a transaction publishes to the queues of its route."""

    queues: tuple[int, ...]
    messages: Publish
    time_us: int
    """When they came, in elapsed time: their times to live begin then."""
    reserving: tuple[int, ...] = ()
    """The queues in which room is kept for them."""
    keys: tuple[tuple[tuple[int, ...], bytes], ...] = ()
    """The keys of the messages for queues that keep last values: queues, and packed keys."""

    def join(self, other: "Post") -> bool:
        """Append the next run if it is alike; return whether it did."""
        ours, theirs = self.messages, other.messages
        if (
            other.queues != self.queues
            or not ours.upload is theirs.upload is None
            or theirs.producer != ours.producer
            or theirs.durable is not ours.durable
            or bool(theirs.ttl_ms) is not bool(ours.ttl_ms)
            or bool(theirs.time_ms) is not bool(ours.time_ms)
            or (theirs.delay_ms, theirs.priority) != (ours.delay_ms, ours.priority)
            or ((ours.ttl_ms or ours.delay_ms) and other.time_us != self.time_us)
            or other.reserving != self.reserving
            or [queues for queues, _ in other.keys] != [queues for queues, _ in self.keys]
        ):
            return False
        pairs = zip(self.keys, other.keys, strict=True)
        self.keys = tuple([(queues, first + second) for (queues, first), (_, second) in pairs])
        ours.add(theirs)
        return True


class Retirement(Struct):
    """The outcome of one delivery, said in a transaction."""

    outcome: Outcome
    is_settled: bool
    """Whether the receiver has settled it: then a rollback returns the message to its queue."""


@final
class Transaction(Struct, eq=False):
    """One transaction of a connection."""

    id: bytes
    posts: list[Post] = []
    retirements: dict[tuple[int, int], Retirement] = {}
    """The outcomes by consumer and word."""
    count: int = 0
    """The messages of its posts, once for each queue."""
    size: int = 0
    """The bytes of its posts."""
    head_bytes: int = 0
    """The bytes of the records of its posts, without the messages."""
    outcome_bytes: int = 0
    """The bytes of the texts and annotations of its outcomes."""
    refusal: str = ""
    """Why it cannot be committed; empty if it can."""
    end: str = ""
    """The condition by which the broker has ended it; empty while it is open."""

    def doom(self, refusal: str) -> None:
        """Note why it cannot be committed, unless it cannot already."""
        self.refusal = self.refusal or refusal

    def retire(self, consumer: int, word: int, outcome: Outcome, *, is_settled: bool) -> None:
        """Note the outcome of a delivery; a later one takes its place."""
        known = self.retirements.get((consumer, word))
        if outcome is not ACCEPTED:
            self.outcome_bytes += outcome.text_bytes
        if known is None:
            self.retirements[consumer, word] = Retirement(outcome, is_settled)
        else:
            self.outcome_bytes -= known.outcome.text_bytes
            known.outcome, known.is_settled = outcome, known.is_settled or is_settled


@final
class BeginTransaction(Struct):
    """A client opens a transaction; its time begins."""

    transaction: Transaction


@final
class Discharge(Struct):
    """Commit a transaction, or roll it back. A commit that cannot be is refused."""

    key: Any
    transaction: Transaction
    fails: bool = False
    """Whether it is rolled back."""


@final
class TidyQueues(Struct):
    """Trim and end queues after a commit, whose decision makes the command itself."""

    trimmed: tuple[int, ...]
    """The queues whose oldest messages are discarded if they are above their maximum."""
    emptied: tuple[int, ...]
    """The queues that end if the commit has settled their last message."""
