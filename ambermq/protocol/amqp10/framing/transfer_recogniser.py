"""The recogniser: the transfers of one link are alike, so each is compared with the last one instead of decoded.

    size u32 | 02 00 channel | 00 53 14, list, handle, id code | delivery-id | a0 n  | tag | other fields | payload
             | head: must be equal                             | next one    | equal | any | tail: equal  | taken

Rule 1. The recogniser may decline but never decides: the general decoder reads every other frame, and it alone finds
        faults.
Rule 2. A shape is learned from a frame that the general decoder accepted. It stands for frames that decode the same
        way: equal bytes decode equally, and a tag is any n bytes.
Rule 3. The caller checks windows, credit and limits, and passes the maximum number of frames.

Dispositions have shapes of their own (disposition_recogniser.py). Flows have none, since each differs from the last.
Their lists of plain fields (null, boolean, uint) are read here directly, by the same Rule 1.
"""

from struct import Struct
from typing import Final, Protocol

from ambermq.protocol.amqp10.performatives.classes import TransactionalState
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
"""The types of a flow's fields before its properties: u uint, b boolean."""


class Recogniser(Protocol):
    """The part of a session that took the last transfer or plain disposition, and takes frames like it uncut.

    It is called only while its session is mapped: a session that ends resets it.
    """

    def take_alike(self, data: Buffer, position: int, end: int) -> int:
        """Process whole frames like the last one; return the position after them, `position` to decline."""


class TransferRecogniser:
    """The shape of a link's next transfer, if it is like the last one."""

    __slots__ = ("_parts", "settled", "state")

    def __init__(
        self,
        head: bytes,
        id_format: str,
        tag: bytes,
        tail: bytes,
        size_end: int,
        *,
        settled: bool,
        state: TransactionalState | None = None,
    ) -> None:
        layout = Struct(f">I{len(head)}s{id_format}2s{tag[1]}x{len(tail)}s")
        # One tuple, since a match needs all of them.
        self._parts = layout.unpack_from, layout.size, head, tag, tail, size_end
        self.settled = settled
        self.state = state
        """The transaction that they name; None for none."""

    def match(
        self, data: Buffer, position: int, end: int, next_id: int, count_max: int
    ) -> tuple[list[bytes | memoryview], int]:
        """Match at most `count_max` whole frames from `position`, with delivery-ids from `next_id` on.

        Return the payloads, slices of `data`, and the position after the last frame; no payloads to decline.
        """
        # The loop runs once a message: its only call is the unpack, and each comparison is of bytes. It ends where the
        # ids wrap to 0, since no id is 2**32; the next frames are another run.
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
    data: Buffer,
    position: int,
    payload_start: int,
    size_end: int,
    *,
    settled: bool,
    state: TransactionalState | None = None,
) -> TransferRecogniser | None:
    """Return the shape of the transfer at `position`, which the general decoder accepted; None if it is unusual.

    `size_end` is the first frame size that the shape declines. Only complete, plain transfers may be learned: more,
    aborted and resume are false, and a delivery state is that of a transaction.
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
    return TransferRecogniser(head, "B" if id_code == 0x52 else "I", tag, tail, size_end, settled=settled, state=state)


def plain_handle(data: Buffer, body: int, end: int) -> int:
    """Return the handle of the transfer whose descriptor begins at `body`; -1 if the general decoder is needed."""
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
    """Return the count and first position of the fields of the list in position .. end; None to decline."""
    if end - position < 3:
        return None
    code = data[position]
    if code == 0xC0 and data[position + 1] == end - position - 2:
        return data[position + 2], position + 3
    if code == 0xD0 and end - position >= 9 and _UINT(data, position + 1)[0] == end - position - 5:
        return _UINT(data, position + 5)[0], position + 9
    return None


def read_flow(data: Buffer, body: int, end: int) -> list[int | bool | None] | None:
    """Return the ten fields of the flow whose descriptor begins at `body`, None for absent ones; None to decline.

    A flow with properties is declined, and so is one without its mandatory fields.
    """
    shape = plain_list(data, body + 3, end)
    return None if shape is None else read_flow_fields(data, shape[1], end, shape[0])


def read_flow_fields(data: Buffer, at: int, end: int, count: int) -> list[int | bool | None] | None:
    """Return the fields of a flow, of which the list has `count` from `at` on; see `read_flow`."""
    if not 4 <= count <= 11:
        return None
    fields: list[int | bool | None] = [None] * 10
    # There is no function for a field: a receiver that sends a flow a message would cause ten calls.
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
