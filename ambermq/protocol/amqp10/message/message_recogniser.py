"""The recogniser of messages: the messages of a link begin alike, so each is compared with one that was read.

    header | delivery annotations | message annotations | properties: list, its size, code of message-id | message-id
    head: must be equal                                                                                  | hashed

Rule 1. The recogniser may decline a message, but it reports no errors: `read_outline` reads a message that it declines.
Rule 2. A recogniser is made from a message that was read, whichever client encoded it. It contains no knowledge of
        clients.
Rule 3. For any bytes that it recognises, `read_outline` gives the same result: a property test compares the two.
"""

from collections.abc import Sequence
from itertools import repeat
from operator import itemgetter
from typing import Final
from zlib import crc32

from ambermq.protocol.amqp10.message.publish_outline import Outline
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["MessageRecogniser", "learn_message"]

_HEAD_BYTES_MAX: Final = 512
"""The bound of the head that is kept: room for the header, a short map of annotations and the first properties."""


class MessageRecogniser:
    """The recogniser of messages that have the outline of a known message, except for their ids."""

    __slots__ = ("_head", "_head_of", "_id_of", "_id_place", "_size_min", "is_durable")

    def __init__(self, outline: Outline, payload: Buffer) -> None:
        """Create the recogniser of a message; `learn_message` checks which messages have one."""
        self._head_of = itemgetter(slice(outline.head_bytes))
        self._head = bytes(self._head_of(payload))
        self._size_min = outline.size_min if outline.size_min > outline.head_bytes else 0
        self._id_place = place = outline.id_place
        self._id_of = itemgetter(slice(place.start, place.stop) if place else slice(0))
        self.is_durable = outline.is_durable

    def id_hashes(self, payloads: Sequence[Buffer]) -> list[int] | None:
        """Return the id hash of each message; None if one of them may have another outline."""
        # This runs for every published message: each step is one call for the whole run, without a loop in Python.
        count = len(payloads)
        if [*map(self._head_of, payloads)].count(self._head) != count:
            return None
        if self._size_min and min(map(len, payloads), default=0) < self._size_min:
            return None
        place = self._id_place
        if place is None:
            return [0] * count
        ids = [*map(self._id_of, payloads)]
        if place.is_text and not b"".join(ids).isascii():
            return None
        hashes = [*map(crc32, ids, repeat(place.seed))]
        return [one or 1 for one in hashes] if 0 in hashes else hashes


def learn_message(outline: Outline, payload: Buffer) -> MessageRecogniser | None:
    """Return the recogniser of messages like this one; None if its head is too long, or does not decide the outline.

    Return None for a message with delivery annotations too: the broker removes them from each such message.
    """
    if not 0 < outline.head_bytes <= _HEAD_BYTES_MAX or outline.delivery_annotations is not None:
        return None
    return MessageRecogniser(outline, payload)
