"""The recogniser of messages: the messages of a link begin alike, so each is compared with one that was read.

    header | annotations | properties: list, its size, code of message-id | message-id | properties | … | body: its size
    head: must be equal                                                   | hashed     | tail: equal, or scanned
    fixed: the head and the tail, or the tail behind an id; it ends with the size of the last section

Rule 1. The recogniser may decline a message, but it reports no errors: `read_outline` reads a message that it declines.
Rule 2. A recogniser is made from a message that was read, whichever client encoded it. It contains no knowledge of
        clients.
Rule 3. For any bytes that it recognises, `read_outline` gives the same result: a property test compares the two.
Rule 4. Messages with equal tails have one structure if the last size in each is that of the bytes behind it. The
        sections of any other message are scanned.
"""

from collections.abc import Sequence
from itertools import repeat
from operator import add, itemgetter
from typing import Final
from zlib import crc32

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.expiry_time import expiry_time_at
from ambermq.protocol.amqp10.message.group_code import group_code_at
from ambermq.protocol.amqp10.message.publish_outline import Outline
from ambermq.protocol.amqp10.message.sections import check_sections
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["MessageRecogniser", "learn_message"]

_HEAD_BYTES_MAX: Final = 512
"""The bound of the head that is kept: room for the header, a short map of annotations and the first properties."""
_TAIL_BYTES_MAX: Final = 1024
"""The bound of the tail that is kept: room for the properties, and short application-properties."""


class MessageRecogniser:
    """The recogniser of messages that have the outline of a known message, except for their ids."""

    __slots__ = (
        *("_fixed", "_fixed_of", "_head", "_head_of", "_id_of", "_id_place", "_rest_bytes", "_size", "_size_of"),
        *("_tail", "_tail_after", "_tail_of", "_tail_start"),
        *("_expiry_field", "_group", "_group_field", "delivery", "expires_ms", "is_durable", "may_group", "priority"),
        "ttl_ms",
    )

    def __init__(self, outline: Outline, payload: Buffer) -> None:
        """Create the recogniser of a message; `learn_message` checks which messages have one."""
        self.is_durable, self.ttl_ms, self.delivery = outline.is_durable, outline.ttl_ms, outline.delivery
        self.priority, self.expires_ms = outline.priority, outline.expires_ms
        self._expiry_field = outline.expiry_field
        self._group, self._group_field = outline.group, outline.group_field
        self.may_group = bool(outline.group_field)
        """Whether messages that it recognises may have groups: only then `groups` is called."""
        self._id_place = place = outline.id_place
        self._id_of = itemgetter(slice(place.start, place.stop) if place else slice(0))
        self._head_of = itemgetter(slice(outline.head_bytes))
        self._head = bytes(self._head_of(payload))
        self._tail_start, self._tail_after = outline.tail_start, outline.tail_after
        start = place.stop if place else outline.head_bytes
        is_short = outline.fixed_end - start <= _TAIL_BYTES_MAX
        # No message has the size -1: without a tail each message is scanned.
        self._size = len(payload) if is_short else -1
        self._fixed_of = itemgetter(slice(start if place else 0, outline.fixed_end))
        self._fixed = bytes(self._fixed_of(payload)) if is_short else b""
        self._tail_of = itemgetter(slice(start, outline.size_start))
        self._tail = bytes(self._tail_of(payload)) if is_short else b""
        self._size_of = itemgetter(slice(outline.size_start, outline.fixed_end))
        self._rest_bytes = len(payload) - int.from_bytes(self._size_of(payload)) if is_short else -1

    def id_hashes(self, payloads: Sequence[Buffer]) -> list[int] | None:
        """Return the id hash of each message; None if one of them may have another outline, or is malformed."""
        # This runs for every published message: each step is one call for the whole run, without a loop in Python.
        count = len(payloads)
        place = self._id_place
        sizes = [*map(len, payloads)]
        is_fixed = sizes.count(self._size) == count and [*map(self._fixed_of, payloads)].count(self._fixed) == count
        if place is None and is_fixed:
            return [0] * count
        if [*map(self._head_of, payloads)].count(self._head) != count:
            return None
        if not (is_fixed or self._are_sized(payloads, sizes) or self._are_whole(payloads)):
            return None
        if place is None:
            return [0] * count
        ids = [*map(self._id_of, payloads)]
        if place.is_text and not b"".join(ids).isascii():
            return None
        hashes = [*map(crc32, ids, repeat(place.seed))]
        return [one or 1 for one in hashes] if 0 in hashes else hashes

    def groups(self, payloads: Sequence[Buffer]) -> list[int]:
        """Return the group of each message that it has recognised; empty if none has one."""
        # Heads are equal, so equal tails have equal properties but for the id.
        if self._rest_bytes >= 0 and [*map(self._tail_of, payloads)].count(self._tail) == len(payloads):
            return [self._group] * len(payloads) if self._group else []
        groups = [group_code_at(payload, self._group_field, self._tail_start) for payload in payloads]
        return groups if any(groups) else []

    def _are_sized(self, payloads: Sequence[Buffer], sizes: list[int]) -> bool:
        """Return whether all tails are equal but for the size of the last section, which is that of its contents."""
        if self._rest_bytes < 0 or [*map(self._tail_of, payloads)].count(self._tail) != len(payloads):
            return False
        contents = map(int.from_bytes, map(self._size_of, payloads))
        return [*map(add, contents, repeat(self._rest_bytes))] == sizes

    def _are_whole(self, payloads: Sequence[Buffer]) -> bool:
        """Return whether each message has this expiry, and a good structure behind its properties; heads are equal."""
        start, after, field = self._tail_start, self._tail_after, self._expiry_field
        try:
            for payload in payloads:
                if len(payload) < start or (field and expiry_time_at(payload, field, start) != self.expires_ms):
                    return False
                check_sections(payload, start, after)
        except DecodeError:
            return False
        return True


def learn_message(outline: Outline, payload: Buffer) -> MessageRecogniser | None:
    """Return the recogniser of messages like this one; None if its head is too long, or does not decide the outline.

    Return None for a message with delivery annotations too: the broker removes them from each such message.
    """
    if not 0 < outline.head_bytes <= _HEAD_BYTES_MAX or outline.delivery_annotations is not None:
        return None
    return MessageRecogniser(outline, payload)
