"""A large message whose delivery has begun while it arrives: the pieces of it that may be sent.

Rule 1. A piece may be sent when it is durable. So a receiver has nothing that a restart of the broker would not abort.
Rule 2. The last piece is known when the message is published. Until then the frames of its delivery say `more`.
Rule 3. Its header is that of a first delivery: its time to live begins when it is published, so all of it is left.
"""

from collections.abc import Sequence
from typing import final

from ambermq.engine.commands import CutThrough
from ambermq.engine.entries.entry_word import entry_of, size_of
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.redelivery import with_header
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["ArrivingMessage"]


@final
class ArrivingMessage:
    """The message of one delivery."""

    __slots__ = ("_offsets", "cut_through", "is_given_up", "word")

    def __init__(self, cut_through: CutThrough) -> None:
        self.cut_through = cut_through
        self._offsets: list[int] = []
        self.word = 0
        """The word of the message; 0 until it is published."""
        self.is_given_up = False
        """Whether its delivery has ended before its first frame: the receiver took its credit back."""

    @property
    def offsets(self) -> Sequence[int]:
        """The records of the pieces that may be sent, in order."""
        return self._offsets

    @property
    def is_whole(self) -> bool:
        """Whether all pieces may be sent."""
        return self.word > 0

    def __len__(self) -> int:
        """Return the approximate bytes, as far as they are known."""
        return size_of(self.word) if self.word else self.cut_through.upload.size

    def follow(self, durable_end: int) -> None:
        """Add the pieces that are durable."""
        offsets, chunks = self._offsets, self.cut_through.upload.chunks
        while len(offsets) < len(chunks) and chunks[len(offsets)] < durable_end:
            offsets.append(chunks[len(offsets)])

    def complete(self, word: int) -> None:
        """Add the rest: the message is published, and durable."""
        self._offsets += [*self.cut_through.upload.chunks[len(self._offsets) :], entry_of(word)]
        self.word = word

    def rebuild(self, piece: Buffer) -> Buffer:
        """Return the first piece as it is sent: with the time to live that the queue allows."""
        ttl_ms, longest_ms = self.cut_through.upload.ttl_ms, self.cut_through.ttl_ms_max
        if not ttl_ms:
            return piece
        try:
            return with_header(piece, delivery_count=0, ttl_ms=min(ttl_ms, longest_ms or ttl_ms), was_acquired=False)
        except DecodeError:
            # The fields of the header that were not decoded are invalid: it is sent as it was received.
            return piece
