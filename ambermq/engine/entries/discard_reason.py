"""The reasons for which the broker discards a message by itself."""

from enum import IntEnum

__all__ = ["DiscardReason"]


class DiscardReason(IntEnum):
    """Why a message left its queue without an outcome of a consumer; the values are on the disk."""

    LENGTH = 1
    """A newer message needed its room."""
    DELIVERY_COUNT = 2
    """Its deliveries have failed as often as its queue allows."""

    @property
    def text(self) -> str:
        """Return the reason as people and programs read it."""
        return self.name.lower().replace("_", "-")
