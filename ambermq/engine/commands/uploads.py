"""Commands of messages that arrive piece by piece: store a piece, end a message that is not published.

An upload is volatile. Its chunk records are in the log before its message is published; until then the state has their
offsets, so that no compaction removes them. A message that is not published leaves nothing but garbage.

The delivery of an upload may begin before it is published: cut-through (engine/dispatch/cut_through.py).
"""

from __future__ import annotations

from typing import Any, final

from msgspec import Struct

from ambermq.log.buffer import Buffer

__all__ = ["CutThrough", "EndUpload", "StoreChunk", "Upload"]


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
    is_refused: bool = False
    """Whether a piece of it was not stored: nothing more of it is, and it is not published."""
    may_cut_through: bool = False
    """Whether its delivery may begin before it is published, as far as its link and its first piece say."""
    ttl_ms: int = 0
    """The time to live in its header; 0 for none."""
    cut_through: CutThrough | None = None
    """Its delivery, which has begun; None without one."""

    def add(self, offset: int, size: int) -> None:
        """Add a chunk record."""
        self.id = self.id or offset
        self.chunks.append(offset)
        self.size += size


@final
class CutThrough(Struct, eq=False):
    """The delivery of an upload: a consumer is reserved for it. It is volatile, as the upload is."""

    queue: int
    consumer: int
    link: Any
    """The link of the consumer."""
    upload: Upload
    settled: bool = False
    """The delivery leaves settled."""
    ttl_ms_max: int = 0
    """The longest time to live on the queue; 0: no maximum."""
    is_ended: bool = False
    """Whether the reservation has ended: the message is published, or the delivery is not completed."""
    is_sent: bool = False
    """Whether the first frame of the delivery is sent: if its consumer ends, it counts as a failed one."""

    @property
    def key(self) -> int:
        """A number in the place of the word of the message, which is not known yet. No message has it as its word."""
        return self.upload.id << 16


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
