"""A large message in the log: the records that hold its pieces. It is never whole in memory."""

from collections.abc import Sequence
from typing import Protocol, final

from msgspec import Struct

__all__ = ["Pieces", "StoredMessage"]


class Pieces(Protocol):
    """The pieces of a large message: of a complete one, or of one that arrives."""

    @property
    def offsets(self) -> Sequence[int]:
        """The records of the pieces, in order."""

    @property
    def is_whole(self) -> bool:
        """Whether these are all pieces of the message."""


@final
class StoredMessage(Struct, frozen=True):
    """A message whose pieces are read one by one while it leaves."""

    offsets: tuple[int, ...]
    """The records of its pieces, in order."""
    size: int
    """Its approximate bytes, as its queue counts them."""

    @property
    def is_whole(self) -> bool:
        """Whether these are all pieces of the message, as always here."""
        return True

    def __len__(self) -> int:
        return self.size
