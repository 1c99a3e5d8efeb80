"""The outcomes of a delivery, as the log stores them in a record's `aux`."""

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["ACCEPTED", "LOCK_EXPIRED", "MODIFIED_FAILED", "REJECTED", "RELEASED", "Outcome", "OutcomeKind"]


class OutcomeKind(IntEnum):
    """AMQP 1.0 part 3, section 3.4. The numbers are on disk and never change meaning."""

    ACCEPTED = 1
    REJECTED = 2
    RELEASED = 3
    MODIFIED = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run of deliveries, as the consumer set it."""

    kind: OutcomeKind
    delivery_failed: bool = False
    """modified: the delivery counts as an attempt."""
    undeliverable_here: bool = False
    """modified: the message never goes to this consumer again."""
    annotations: tuple[tuple[bytes, bytes], ...] = ()
    """modified: message annotations to merge, as pairs of encoded key and encoded value."""
    condition: str = ""
    """rejected: the condition of the consumer's error."""
    description: str = ""
    """rejected: the description of the consumer's error; modified: why the broker has ended the delivery."""

    @property
    def text_bytes(self) -> int:
        """The size of its texts and annotations, which its receiver chooses."""
        size = len(self.condition) + len(self.description)
        return size + sum([len(key) + len(value) for key, value in self.annotations])

    @property
    def returns(self) -> bool:
        """Whether the messages return to their queue."""
        return self.kind >= OutcomeKind.RELEASED


ACCEPTED = Outcome(OutcomeKind.ACCEPTED)
RELEASED = Outcome(OutcomeKind.RELEASED)
REJECTED = Outcome(OutcomeKind.REJECTED)
MODIFIED_FAILED = Outcome(OutcomeKind.MODIFIED, delivery_failed=True)
LOCK_EXPIRED = Outcome(OutcomeKind.MODIFIED, delivery_failed=True, description="lock expired")
"""The outcome by which the broker ends a delivery whose lock has expired."""
