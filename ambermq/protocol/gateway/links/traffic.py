"""The messages that passed the links of a virtual host since the start of the broker.

Rule 1. Links count a run of messages at once. Counting makes no call for a single message.
Rule 2. The numbers are not in the log. The counters of a queue are: they survive a restart.
"""

from typing import final

from ambermq.engine.entries.outcome import Outcome, OutcomeKind

__all__ = ["Traffic"]


@final
class Traffic:
    """Counts of messages and of their bytes."""

    __slots__ = (
        *("bytes_in", "bytes_out", "messages_accepted", "messages_failed", "messages_in", "messages_out"),
        *("messages_redelivered", "messages_refused", "messages_rejected", "messages_released", "messages_unroutable"),
        *("messages_cut_through", "outcomes_late", "transactions_committed", "transactions_rolled_back"),
    )

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = 0
        """Received from producers, malformed messages included."""
        self.messages_out = self.bytes_out = 0
        """Sent to consumers; a message that is sent again counts again."""
        self.messages_redelivered = 0
        """Those of them that had failed before."""
        self.messages_cut_through = 0
        """Those of them whose delivery began before their last piece had arrived, and is complete."""
        self.messages_accepted = self.messages_rejected = self.messages_released = self.messages_failed = 0
        """The outcomes of consumers; `failed` is modified with delivery-failed, `released` any other return."""
        self.outcomes_late = 0
        """Outcomes of consumers that came after the end of the lock, and changed nothing."""
        self.messages_refused = 0
        """Messages of producers that the broker rejected."""
        self.transactions_committed = self.transactions_rolled_back = 0
        """Transactions of clients that have ended."""
        self.messages_unroutable = 0
        """Messages of producers that no queue took, and that were released to them."""

    def count_outcome(self, outcome: Outcome, count: int) -> None:
        """Count the deliveries of an outcome of a consumer."""
        if outcome.kind is OutcomeKind.ACCEPTED:
            self.messages_accepted += count
        elif outcome.kind is OutcomeKind.REJECTED:
            self.messages_rejected += count
        elif outcome.delivery_failed:
            self.messages_failed += count
        else:
            self.messages_released += count
