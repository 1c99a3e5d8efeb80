"""The recogniser: transfers of one link look alike, so they are compared with the last one instead of being decoded.

    size u32 | 02 00 channel | 00 53 14, list, handle, id code | delivery-id | a0 n  | tag | other fields | payload
             | head: must be equal                             | next one    | equal | any | tail: equal  | taken

Rule 1: it may decline, never decide: whatever is not equal goes through the general decoder, which alone finds faults.
Rule 2: a shape is learned from a frame that the general decoder took, and stands for frames that it would take the
        same way: equal bytes decode equally, and a tag is n bytes whatever they are.
Rule 3: windows, credit and limits are the caller's, who says how many frames there may be.

Dispositions have shapes of their own (disposition_recogniser.py). Flows have none, for each differs from the last:
lists of plain fields (null, boolean, uint) are read here directly, with the same Rule 1.
"""

from struct import Struct
from typing import Final, Protocol

from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = [
    "FLOW_CODE",
    "TRANSFER_CODE",
    "Recogniser",
    "TransferRecogniser",
    "learn",
    "plain_handle",
    "plain_list",
    "read_flow",
    "read_flow_fields",
]

FLOW_CODE: Final = 0x13
TRANSFER_CODE: Final = 0x14

_UINT: Final = Struct(">I").unpack_from

_FLOW_KINDS: Final = b"uuuuuuuubb"
"""What the fields of a flow are, before its properties: u uint, b boolean."""


class Recogniser(Protocol):
    """Who took the last transfer or plain disposition of a connection, and takes more like it before they are cut.

    Asked only while its session is mapped: the session forgets it as it ends.
    """

    def take_alike(self, data: Buffer, position: int, end: int) -> int:
        """Take whole frames like the last one from `position`; returns the position behind, `position` to decline."""


class TransferRecogniser:
    """What the next transfer of a link will look like, if it looks like the last one."""

    __slots__ = ("_parts", "settled")

    def __init__(self, head: bytes, id_format: str, tag: bytes, tail: bytes, size_end: int, *, settled: bool) -> None:
        layout = Struct(f">I{len(head)}s{id_format}2s{tag[1]}x{len(tail)}s")
        # One tuple, since a match takes all of them.
        self._parts = layout.unpack_from, layout.size, head, tag, tail, size_end
        self.settled = settled

    def match(
        self, data: Buffer, position: int, end: int, next_id: int, count_max: int
    ) -> tuple[list[bytes | memoryview], int]:
        """Take at most `count_max` whole frames from `position`, with delivery-ids from `next_id` on.

        Returns the payloads, slices of `data`, and the position behind the last frame; no payloads when it declines.
        """
        # The loop runs once a message: no calls but one unpack, and every comparison is of bytes that are ready. Where
        # ids begin again at 0 it ends, for none is 2**32; what follows is another run.
        unpack, length, head, tag, tail, size_end = self._parts
        last = end - length
        payloads: list[bytes | memoryview] = []
        take = payloads.append
        for its_next_id in range(next_id, next_id + count_max):
            if position > last:
                break
            size, its_head, its_id, its_tag, its_tail = unpack(data, position)
            if (
                its_id != its_next_id
                or its_head != head
                or its_tail != tail
                or its_tag != tag
                or not length <= size < size_end
            ):
                break
            frame_end = position + size
            if frame_end > end:
                break
            take(data[position + length : frame_end])  # type: ignore[arg-type]  # bytes of bytes; a view where large
            position = frame_end
        return payloads, position


def learn(
    data: Buffer, position: int, payload_start: int, size_end: int, *, settled: bool
) -> TransferRecogniser | None:
    """Learn the shape of the transfer frame at `position`, which the general decoder took; None when it is unusual.

    size_end: the frame size that the shape no longer takes. Only complete, plain transfers may be learned: more,
    aborted and resume false, no delivery state.
    """
    code = data[position + 11]
    if data[position + 4] != 2 or code not in (0xC0, 0xD0):
        return None
    at = position + (14 if code == 0xC0 else 20)
    at += {0x43: 1, 0x52: 2, 0x70: 5}.get(data[at], 0)
    id_code = data[at]
    if id_code not in (0x52, 0x70):
        return None
    head = bytes(data[position + 4 : at + 1])
    at += 2 if id_code == 0x52 else 5
    if at + 1 >= payload_start or data[at] != 0xA0:
        return None
    tag = bytes(data[at : at + 2])
    tail = bytes(data[at + 2 + tag[1] : payload_start])
    return TransferRecogniser(head, "B" if id_code == 0x52 else "I", tag, tail, size_end, settled=settled)


def plain_handle(data: Buffer, body: int, end: int) -> int:
    """Read the handle of the transfer whose descriptor begins at `body`; -1 where the general decoder is needed."""
    if end - body < 15:
        return -1
    at = body + (6 if data[body + 3] == 0xC0 else 12)
    code = data[at]
    if code == 0x43:
        return 0
    if code == 0x52:
        return data[at + 1]
    if code == 0x70 and at + 5 <= end:
        handle: int = _UINT(data, at + 1)[0]
        return handle
    return -1


def plain_list(data: Buffer, position: int, end: int) -> tuple[int, int] | None:
    """Read count and first position of the fields of the list that fills position .. end; None declines."""
    if end - position < 3:
        return None
    code = data[position]
    if code == 0xC0 and data[position + 1] == end - position - 2:
        return data[position + 2], position + 3
    if code == 0xD0 and end - position >= 9 and _UINT(data, position + 1)[0] == end - position - 5:
        return _UINT(data, position + 5)[0], position + 9
    return None


def read_flow(data: Buffer, body: int, end: int) -> list[int | bool | None] | None:
    """Read the ten fields of the flow whose descriptor begins at `body`, nulls where absent; None declines.

    A flow with properties declines, and so does one without its mandatory fields.
    """
    shape = plain_list(data, body + 3, end)
    return None if shape is None else read_flow_fields(data, shape[1], end, shape[0])


def read_flow_fields(data: Buffer, at: int, end: int, count: int) -> list[int | bool | None] | None:
    """Read the fields of a flow from `at`, where its list has `count`; as `read_flow`."""
    if not 4 <= count <= 11:
        return None
    fields: list[int | bool | None] = [None] * 10
    # No function a field: a receiver that sends a flow a message would pay for ten calls.
    for index in range(min(count, 10)):
        if at >= end:
            return None
        code = data[at]
        if code == 0x40:
            at += 1
            continue
        if _FLOW_KINDS[index] == 0x62:
            if code not in (0x41, 0x42):
                return None
            fields[index] = code == 0x41
            at += 1
        elif code == 0x43:
            fields[index] = 0
            at += 1
        elif code == 0x52 and at + 2 <= end:
            fields[index] = data[at + 1]
            at += 2
        elif code == 0x70 and at + 5 <= end:
            fields[index] = _UINT(data, at + 1)[0]
            at += 5
        else:
            return None
    if count == 11:
        if at >= end or data[at] != 0x40:
            return None
        at += 1
    if at != end or fields[1] is None or fields[2] is None or fields[3] is None:
        return None
    return fields
