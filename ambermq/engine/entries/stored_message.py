"""A large message in the log: the records that hold its pieces. It is never whole in memory."""

from typing import final

from msgspec import Struct

__all__ = ["StoredMessage"]


@final
class StoredMessage(Struct, frozen=True):
    """A message whose pieces are read one by one while it leaves."""

    offsets: tuple[int, ...]
    """The records of its pieces, in order."""
    size: int
    """Its approximate bytes, as its queue counts them."""

    def __len__(self) -> int:
        return self.size
