"""The recogniser of messages: those of one link begin alike, so they are compared with the last one that was read.

    header | delivery annotations | message annotations | properties: list, its size, code of message-id | message-id
    head: must be equal                                                                                  | hashed

Rule 1: it may decline, never decide: a message that is not recognised is read by `read_outline`, which finds faults.
Rule 2: it is learned from a message that was read, whatever client wrote it, and knows no client by name. For any bytes
that it recognises, `read_outline` gives the same answer: a property test compares the two.
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
"""What is kept of a message at most: header, one short map of annotations, and the beginning of the properties."""


class MessageRecogniser:
    """The recogniser of messages that have the outline of one that was read, but for their ids."""

    __slots__ = ("_head", "_head_of", "_id_of", "_id_place", "_size_min", "is_durable")

    def __init__(self, outline: Outline, payload: Buffer) -> None:
        """Learn from a message; `learn_message` says from which."""
        self._head_of = itemgetter(slice(outline.head_bytes))
        self._head = bytes(self._head_of(payload))
        self._size_min = outline.size_min if outline.size_min > outline.head_bytes else 0
        self._id_place = place = outline.id_place
        self._id_of = itemgetter(slice(place.start, place.stop) if place else slice(0))
        self.is_durable = outline.is_durable

    def id_hashes(self, payloads: Sequence[Buffer]) -> list[int] | None:
        """Return the id hash of each of the messages; None where one of them may have another outline."""
        # This runs for every published message: each step is one call for the whole run, no loop of Python.
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
    """Return the recogniser of messages like one that was read; None where its head is too long, or does not decide.

    None for a message with delivery annotations too: each message like it is stored without them.
    """
    if not 0 < outline.head_bytes <= _HEAD_BYTES_MAX or outline.delivery_annotations is not None:
        return None
    return MessageRecogniser(outline, payload)
