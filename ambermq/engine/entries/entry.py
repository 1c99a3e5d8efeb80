"""The columns of a queue entry: what is known of it beyond its word. Most entries have none and cost nothing."""

from dataclasses import dataclass

from ambermq.engine.entries.outcome import Outcome

__all__ = ["PLAIN", "Entry", "merge_annotations"]


@dataclass(frozen=True, slots=True)
class Entry:
    """The columns of an entry that was acquired before, or whose message is stored in chunks."""

    count: int = 0
    """Failed deliveries so far: AMQP's delivery-count."""
    excluded: tuple[int, ...] = ()
    """Consumers that set undeliverable-here, oldest first."""
    annotations: tuple[tuple[bytes, bytes], ...] = ()
    """Message annotations that outcomes have added: pairs of encoded key and encoded value, sorted by key."""
    chunks: tuple[int, ...] = ()
    """Offsets of the chunk records. They hold the message up to its last part, which is in the publish record."""

    def modified(self, outcome: Outcome, consumer: int, *, exclusions_max: int, annotations_bytes_max: int) -> "Entry":
        """Return the entry after a `modified` outcome from `consumer`."""
        excluded = self.excluded
        if outcome.undeliverable_here and consumer not in excluded:
            excluded = (*excluded, consumer)[-exclusions_max:]
        annotations = merge_annotations(self.annotations, outcome.annotations, bytes_max=annotations_bytes_max)
        return Entry(self.count + outcome.delivery_failed, excluded, annotations, self.chunks)


PLAIN = Entry()


def merge_annotations(
    old: tuple[tuple[bytes, bytes], ...], new: tuple[tuple[bytes, bytes], ...], *, bytes_max: int
) -> tuple[tuple[bytes, bytes], ...]:
    """Return the union; for a key in both the new value wins. Return only `old` if the union exceeds `bytes_max`."""
    if not new:
        return old
    merged = tuple(sorted({**dict(old), **dict(new)}.items()))
    return merged if sum(len(key) + len(value) for key, value in merged) <= bytes_max else old
