"""The reasons for which the broker ends, sets aside or moves a message by itself, and those of moves by a person."""

from enum import IntEnum

__all__ = ["DiscardReason", "MoveReason"]


class DiscardReason(IntEnum):
    """Why a message left its queue without an outcome of a consumer; the values are on the disk."""

    LENGTH = 1
    """A newer message needed its room."""
    DELIVERY_COUNT = 2
    """Its deliveries have failed as often as its queue allows."""
    EXPIRED = 3
    """Its time to live is over."""
    REJECTED = 4
    """A consumer rejected it."""
    LOOP = 5
    """Its dead letters would go on for ever."""
    REPLACED = 6
    """A newer message has the same key."""
    PURGED = 16
    """A person removed it."""
    CANCELLED = 17
    """A person cancelled its scheduled delivery."""
    EDITED = 24
    """A person sent an edited copy of it to a queue in its place."""

    @property
    def text(self) -> str:
        """Return the reason as people and programs read it."""
        return self.name.lower().replace("_", "-")


class MoveReason(IntEnum):
    """Why a message came to another queue; the values are on the disk. The first four are those of dead letters."""

    LENGTH = 1
    DELIVERY_COUNT = 2
    EXPIRED = 3
    REJECTED = 4
    REDRIVEN = 16
    """A person sent it back to the queue that it came from."""
    MOVED = 17
    """A person moved it."""
    COPIED = 18
    """A person copied it; the message stays where it was."""
    DUE = 32
    """The time that it was scheduled for has come; it is on the same queue."""

    @property
    def is_dead_letter(self) -> bool:
        """Return whether the broker moved the message by itself."""
        return self < MoveReason.REDRIVEN

    @property
    def text(self) -> str:
        """Return the reason as people and programs read it."""
        return self.name.lower().replace("_", "-")
