"""Counts of the messages of a queue. Those of the hot path are fields of the queue."""

from typing import final

from msgspec import Struct, field
from msgspec.structs import replace

__all__ = ["Counters"]


@final
class Counters(Struct, frozen=True, omit_defaults=True):
    """Counts of messages since the queue was declared. Snapshots have all counts of the first release."""

    published: int = field(default_factory=int)
    acquired: int = field(default_factory=int)
    accepted: int = field(default_factory=int)
    rejected: int = field(default_factory=int)
    released: int = field(default_factory=int)
    """Released, and modified without delivery-failed."""
    failed: int = field(default_factory=int)
    """Modified with delivery-failed, and given back because their consumer ended."""
    purged: int = field(default_factory=int)
    damaged: int = field(default_factory=int)
    discarded: int = 0
    """Discarded by the broker itself."""
    dead_lettered: int = 0
    """Moved to the dead-letter target by the broker itself."""
    moved: int = 0
    """Moved to another queue by a person."""
    delayed: int = 0
    """Returned after a redelivery delay. A message may be delayed more than once."""
    duplicates: int = 0
    """Accepted and not stored, because the queue had their ids already."""

    def plus(self, name: str, count: int) -> "Counters":
        """Return these counters with `count` added to one of them."""
        return replace(self, **{name: getattr(self, name) + count})
