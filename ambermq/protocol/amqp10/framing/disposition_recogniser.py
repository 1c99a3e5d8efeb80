"""The recogniser of dispositions: a peer that settles one by one repeats nearly the same bytes.

    size, 02 00 channel, 00 53 15, list, role, code of first | first   | code of last | last | settled, state, batchable
    head: must be equal                                      | next id | equal        | any  | tail: equal

Rule 1. As in transfer_recogniser.py it may decline but never decides. A shape is learned from a frame that was decoded.
Rule 2. Consecutive ids with the same tail are one range: a range means the same as its parts one by one.
Rule 3. A range whose last id is before its first is declined, and ranges are not joined to such a one.
"""

from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from ambermq.protocol.amqp10.framing.transfer_recogniser import plain_list
from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState, Modified, Released
from ambermq.protocol.amqp10.serial_number import HALF, MASK
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["DISPOSITION_CODE", "DispositionRecogniser", "PlainDisposition", "learn_disposition", "read_disposition"]

DISPOSITION_CODE: Final = 0x15

_UINT: Final = Struct(">I").unpack_from
_FORMATS: Final = {0x52: "B", 0x70: "I"}
"""The layout of an id by its format code."""


class PlainDisposition(NamedTuple):
    """The fields of a disposition, without batchable."""

    role: bool
    first_id: int
    last_id: int
    settled: bool
    state: DeliveryState | None


class DispositionRecogniser:
    """The shape of a session's next disposition, if it is like the last one."""

    __slots__ = ("_parts", "disposition")

    def __init__(self, head: bytes, formats: str, code: bytes, tail: bytes, disposition: PlainDisposition) -> None:
        """Store the parts of a frame; `formats` are of its ids, one or two, `code` of the last, empty without one."""
        between = f"{formats[0]}1s{formats[1]}" if code else formats
        layout = Struct(f">{len(head)}s{between}{len(tail)}s")
        # One tuple, since a match needs all of them.
        self._parts = layout.unpack_from, layout.size, head, code, tail
        self.disposition = disposition
        """The frame that the shape was learned from; frames like it differ in their ids only."""

    def match(self, data: Buffer, position: int, end: int) -> tuple[int, int, int]:
        """Match whole frames from `position` whose ranges are consecutive.

        Return the first and the last id, and the position after the last frame: `position` to decline.
        """
        # The loop runs once a message if the peer settles one by one: its only call is the unpack.
        unpack, length, head, code, tail = self._parts
        final = end - length
        first_id, last_id = -1, -1
        while position <= final:
            if code:
                its_head, its_first, its_code, its_last, its_tail = unpack(data, position)
            else:
                its_head, its_first, its_tail = unpack(data, position)
                its_code, its_last = code, its_first
            if its_head != head or its_tail != tail or its_code != code:
                break
            if first_id < 0:
                if (its_last - its_first) & MASK >= HALF:
                    break
                first_id = its_first
            elif (
                its_first != (last_id + 1) & MASK
                or not (last_id - first_id) & MASK < (its_last - first_id) & MASK < HALF
            ):
                break
            last_id = its_last
            position += length
        return first_id, last_id, position


def learn_disposition(
    data: Buffer, position: int, body: int, frame_end: int, disposition: PlainDisposition
) -> DispositionRecogniser | None:
    """Return the shape of the frame at `position`, which `read_disposition` read; None if it is unusual."""
    if data[position + 4] != 2:
        return None
    is_short = data[body + 3] == 0xC0
    count = data[body + 5] if is_short else _UINT(data, body + 8)[0]
    at = body + (7 if is_short else 13)
    first = _FORMATS.get(data[at])
    if first is None:
        return None
    head = bytes(data[position : at + 1])
    at += 2 if first == "B" else 5
    if count == 2 or data[at] == 0x40:
        return DispositionRecogniser(head, first, b"", bytes(data[at:frame_end]), disposition)
    last = _FORMATS.get(data[at])
    if last is None:
        return None
    rest = at + (2 if last == "B" else 5)
    return DispositionRecogniser(head, first + last, bytes(data[at : at + 1]), bytes(data[rest:frame_end]), disposition)


_Ending: TypeAlias = tuple[bool, DeliveryState | None]


def _state_bytes() -> dict[bytes, DeliveryState | None]:
    states: dict[bytes, DeliveryState | None] = {b"\x40": None}
    for code, state in ((0x24, Accepted()), (0x26, Released()), (0x27, Modified())):
        states[bytes((0x00, 0x53, code, 0x45))] = state
        states[bytes((0x00, 0x53, code, 0xC0, 0x01, 0x00))] = state
        states[bytes((0x00, 0x53, code, 0xD0, 0, 0, 0, 4, 0, 0, 0, 0))] = state
    return states


def _endings() -> dict[tuple[int, bytes], _Ending]:
    booleans = (b"\x40", b"\x41", b"\x42")
    endings: dict[tuple[int, bytes], _Ending] = {(2, b""): (False, None), (3, b""): (False, None)}
    for settled in booleans:
        is_settled = settled == b"\x41"
        endings[4, settled] = (is_settled, None)
        for encoded, state in _state_bytes().items():
            endings[5, settled + encoded] = (is_settled, state)
            for batchable in booleans:
                endings[6, settled + encoded + batchable] = (is_settled, state)
    return endings


_ENDINGS: Final = _endings()
"""Settled and state of a disposition, by the count of its fields and the bytes after its ids.

The outcomes are those without fields, in all their encodings. Events share them, so no caller may change one.
"""


def read_disposition(data: Buffer, body: int, end: int) -> PlainDisposition | None:
    """Return the disposition whose descriptor begins at `body`; None to decline."""
    shape = plain_list(data, body + 3, end)
    if shape is None or not 2 <= shape[0] <= 6:
        return None
    count, at = shape
    if end - at < 2 or data[at] not in (0x41, 0x42):
        return None
    role = data[at] == 0x41
    at += 1
    first_id = last_id = -1
    for _ in range(2 if count > 2 else 1):
        code = data[at] if at < end else 0
        if code == 0x70 and at + 5 <= end:
            last_id = _UINT(data, at + 1)[0]
            at += 5
        elif code == 0x52 and at + 2 <= end:
            last_id = data[at + 1]
            at += 2
        elif code == 0x43:
            last_id = 0
            at += 1
        elif code == 0x40 and first_id >= 0:
            at += 1
        else:
            return None
        if first_id < 0:
            first_id = last_id
    ending = _ENDINGS.get((count, bytes(data[at:end])))
    return None if ending is None else PlainDisposition(role, first_id, last_id, *ending)
