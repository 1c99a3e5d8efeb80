"""Commands of messages that arrive piece by piece: store a piece, end a message that is not published.

An upload is volatile. Its chunk records are in the log before its message is published; until then the state has their
offsets, so that no compaction removes them. A message that is not published leaves nothing but garbage.
"""

from typing import Any, final

from msgspec import Struct

from ambermq.log.buffer import Buffer

__all__ = ["EndUpload", "StoreChunk", "Upload"]


@final
class Upload(Struct, eq=False):
    """A large message of which pieces are in chunk records; the command Publish has the last piece."""

    head: bytes
    """Its sections before the body, by which it is routed."""
    id: int = 0
    """The offset of its first chunk record; 0 before it is stored."""
    chunks: list[int] = []
    """The offsets of its chunk records."""
    size: int = 0
    """The bytes in its chunk records."""
    is_ended: bool = False
    """Whether it ended without a message: later pieces are not stored."""

    def add(self, offset: int, size: int) -> None:
        """Add a chunk record."""
        self.id = self.id or offset
        self.chunks.append(offset)
        self.size += size


@final
class StoreChunk(Struct):
    """A piece of a large message has arrived."""

    link: Any
    producer: int
    upload: Upload
    piece: Buffer


@final
class EndUpload(Struct):
    """A large message ends before it is published."""

    upload: Upload
