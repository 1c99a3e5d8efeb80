"""The columns of a queue entry: what is known of it beyond its word. Most entries have none and cost nothing."""

from typing import final

from msgspec import Struct, field
from msgspec.structs import replace

from ambermq.engine.entries.marks import Marks, SetAsideFor
from ambermq.engine.entries.outcome import Outcome
from ambermq.engine.entries.priority import PRIORITY_DEFAULT

__all__ = ["PLAIN", "Entry", "merge_annotations"]


def _nothing() -> tuple[()]:
    return ()


@final
class Entry(Struct, frozen=True, omit_defaults=True):
    """The columns of an entry that was acquired or moved before, or whose message has other than the usual properties.

    Snapshots have the columns of the first release in every entry, and others where they are not empty.
    """

    count: int = field(default_factory=int)
    """Failed deliveries so far: AMQP's delivery-count."""
    excluded: tuple[int, ...] = field(default_factory=_nothing)
    """Consumers that set undeliverable-here, oldest first."""
    annotations: tuple[tuple[bytes, bytes], ...] = field(default_factory=_nothing)
    """Message annotations that outcomes have added: pairs of encoded key and encoded value, sorted by key."""
    chunks: tuple[int, ...] = field(default_factory=_nothing)
    """Offsets of the chunk records. They hold the message up to its last part, which is in the publish record."""
    origin: int = 0
    """The offset of the publish record, if the message has come from another queue; 0: the entry's own offset."""
    marks: Marks | None = None
    """What dead letters and redrives have left on the message."""
    set_aside_for: SetAsideFor | None = None
    """Why it is set aside; None if it is not."""
    expires_us: int = 0
    """When it expires by its own time to live, in elapsed time; 0: it does not. Only a delivery has it here: on a queue
    it is in `expiries`, but older snapshots have it here."""
    due_us: int = 0
    """When its redelivery is due, in elapsed time; 0: it is not delayed. That of a scheduled message is in its queue's
    `dues`; older snapshots have it here."""
    priority: int = PRIORITY_DEFAULT
    attempt: int = 0
    """The deliveries that have ended with its return, while its queue had locks."""
    group: int = 0
    """The code of its group (group.py); 0: it has none."""
    returned: bool = False
    """Whether it was acquired before, if no other column says so."""

    @property
    def was_acquired(self) -> bool:
        """Return whether a consumer may have acquired the message before the one that holds it."""
        return bool(self.count or self.returned or self.attempt or self.annotations or self.origin)

    @property
    def added(self) -> tuple[tuple[bytes, bytes], ...]:
        """Return the message annotations that deliveries have besides the producer's, as `annotations`."""
        if self.marks is None:
            return self.annotations
        return tuple(sorted({**dict(self.annotations), **dict(self.marks.annotations)}.items()))

    def modified(self, outcome: Outcome, consumer: int, *, exclusions_max: int, annotations_bytes_max: int) -> "Entry":
        """Return the entry after a `modified` outcome from `consumer`."""
        excluded = self.excluded
        if outcome.undeliverable_here and consumer not in excluded:
            excluded = (*excluded, consumer)[-exclusions_max:]
        annotations = merge_annotations(self.annotations, outcome.annotations, bytes_max=annotations_bytes_max)
        return replace(self, count=self.count + outcome.delivery_failed, excluded=excluded, annotations=annotations)


PLAIN = Entry()


def merge_annotations(
    old: tuple[tuple[bytes, bytes], ...], new: tuple[tuple[bytes, bytes], ...], *, bytes_max: int
) -> tuple[tuple[bytes, bytes], ...]:
    """Return the union; for a key in both the new value wins. Return only `old` if the union exceeds `bytes_max`."""
    if not new:
        return old
    merged = tuple(sorted({**dict(old), **dict(new)}.items()))
    return merged if sum(len(key) + len(value) for key, value in merged) <= bytes_max else old
