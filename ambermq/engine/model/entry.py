"""What is known of a queue entry beyond its word. Most entries never have any of it and pay nothing."""

from dataclasses import dataclass

from ambermq.engine.model.outcome import Outcome

__all__ = ["PLAIN", "Entry", "merge_annotations"]


@dataclass(frozen=True, slots=True)
class Entry:
    """The columns of an entry that was acquired once, or whose message is stored in chunks."""

    count: int = 0
    """Failed deliveries so far: AMQP's delivery-count."""
    excluded: tuple[int, ...] = ()
    """Consumers that said undeliverable-here, oldest first."""
    annotations: tuple[tuple[bytes, bytes], ...] = ()
    """Message annotations that outcomes have added: pairs of encoded key and encoded value, sorted by key."""
    chunks: tuple[int, ...] = ()
    """Offsets of the chunk records that hold the message before its publish record's own body."""

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
    """Return both, the new value where a key is in both; the old ones alone where that would exceed `bytes_max`."""
    if not new:
        return old
    merged = tuple(sorted({**dict(old), **dict(new)}.items()))
    return merged if sum(len(key) + len(value) for key, value in merged) <= bytes_max else old
