"""The most frequent frames that we send, transfer and flow, packed from templates.

    size u32 | 02 00 channel 00 53 14 c0 size 0b 70 handle 70 | id u32 | a0 10 prefix | token u64 | fields   | payload
             | head: constant                                 |        | constant     |           | constant |

Rule 1. A frame decodes to the same values as that of the general encoder at full width; ids always take five bytes.
Rule 2. Small payloads are joined with their frames; large ones stay buffers of their own and are never copied.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from ambermq.protocol.amqp10.framing.frames import encode_frame
from ambermq.protocol.amqp10.performatives.classes import Flow
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["TransferTemplate", "write_flow"]

_TRANSFER_HEAD: Final = Struct(">BBHBBBBBBBIB").pack
_CONTINUATION_HEAD: Final = Struct(">BBHBBBBBBBI3s").pack
_LINK_FLOW: Final = Struct(">IBBH6BBIBIBIBIBIBIBIBI3B").pack
_SESSION_FLOW: Final = Struct(">IBBH6BBIBIBIBI7B").pack

_TRUE: Final = 0x41
_FALSE: Final = 0x42
_NULL: Final = 0x40
_UINT: Final = 0x70
_TRANSFER_FIELDS: Final = 11
_LIST_START: Final = 13
"""The bytes of a frame before those that the size of a list8 counts."""


class TransferTemplate:
    """The transfers of one sending link, which differ in id, token and payload only."""

    __slots__ = ("_continuation", "_first_tail", "_head", "_next_tails", "_pack", "_tag", "_tail", "head_bytes")

    def __init__(self, channel: int, handle: int, tag_prefix: bytes, message_format: int, *, settled: bool) -> None:
        middle = b"\x43" if message_format == 0 else b"\x70" + message_format.to_bytes(4, "big")
        is_settled = bytes((_TRUE if settled else _FALSE,))
        # Behind `more`: rcv-settle-mode, state, resume, aborted, batchable.
        rest = bytes((_NULL, _NULL, _FALSE, _FALSE, _FALSE))
        self._tail = middle + is_settled + b"\x42" + rest
        self._first_tail = middle + is_settled + b"\x41" + rest
        self._next_tails = (is_settled + b"\x42" + rest, is_settled + b"\x41" + rest)
        self._tag = b"\xa0\x10" + tag_prefix
        layout = Struct(f">I16sI10sQ{len(self._tail)}s")
        self._pack = layout.pack
        self.head_bytes = layout.size
        """The bytes of a frame before its payload."""
        list_bytes = layout.size - _LIST_START
        self._head = _TRANSFER_HEAD(
            2, 0, channel, 0, 0x53, 0x14, 0xC0, list_bytes, _TRANSFER_FIELDS, _UINT, handle, _UINT
        )
        list_bytes = 1 + 5 + 3 + len(self._next_tails[0])
        self._continuation = _CONTINUATION_HEAD(
            2, 0, channel, 0, 0x53, 0x14, 0xC0, list_bytes, _TRANSFER_FIELDS, _UINT, handle, b"\x40\x40\x40"
        )

    def join(self, first_id: int, tokens: Sequence[int], payloads: Sequence[Buffer]) -> bytes:
        """Return one frame a payload, joined; for small payloads."""
        if len(payloads) == 1:
            (payload,), (token,) = payloads, tokens
            size = self.head_bytes + len(payload)
            return self._pack(size, self._head, first_id, self._tag, token, self._tail) + payload
        return b"".join(self.pieces(first_id, tokens, payloads))

    def pieces(self, first_id: int, tokens: Sequence[int], payloads: Sequence[Buffer]) -> list[Buffer]:
        """Return one frame a payload, head and payload in turn; the payloads are not copied."""
        pack, head, tag, tail, head_bytes = self._pack, self._head, self._tag, self._tail, self.head_bytes
        pieces: list[Buffer] = []
        ids = range(first_id, first_id + len(payloads))
        # The loop runs once a message: its only call is the pack.
        for delivery_id, token, payload in zip(ids, tokens, payloads, strict=True):
            pieces += pack(head_bytes + len(payload), head, delivery_id & MASK, tag, token, tail), payload
        return pieces

    def frame(self, delivery_id: int, token: int, size: int) -> bytes:
        """Return the head of the frame of one whole delivery, whose payload of `size` bytes follows."""
        return self._pack(self.head_bytes + size, self._head, delivery_id, self._tag, token, self._tail)

    def part(self, delivery_id: int, token: int, size: int, *, is_first: bool, more: bool) -> bytes:
        """Return the head of a frame of a delivery of several frames, whose payload of `size` bytes follows."""
        if is_first:
            tail = self._first_tail if more else self._tail
            return self._pack(self.head_bytes + size, self._head, delivery_id, self._tag, token, tail)
        tail = self._next_tails[more]
        return (4 + len(self._continuation) + len(tail) + size).to_bytes(4) + self._continuation + tail

    def abort(self) -> bytes:
        """Return the frame that aborts a delivery whose first frames are sent."""
        # The fields behind `more`: rcv-settle-mode, state, resume, aborted, batchable.
        tail = self._next_tails[False][:2] + bytes((_NULL, _NULL, _FALSE, _TRUE, _FALSE))
        return (4 + len(self._continuation) + len(tail)).to_bytes(4) + self._continuation + tail

    def cut(
        self, delivery_id: int, token: int, payload: Buffer, frame_bytes_max: int
    ) -> Iterator[tuple[bytes, Buffer]]:
        """Yield the heads and payloads of the frames of a delivery that is too large for one."""
        room = frame_bytes_max - self.head_bytes
        view = memoryview(payload)
        yield (
            self._pack(self.head_bytes + room, self._head, delivery_id, self._tag, token, self._first_tail),
            view[:room],
        )
        last, more = self._next_tails
        head_bytes = 4 + len(self._continuation) + len(last)
        for start in range(room, len(view), frame_bytes_max - head_bytes):
            piece = view[start : start + frame_bytes_max - head_bytes]
            tail = last if start + len(piece) == len(view) else more
            yield (head_bytes + len(piece)).to_bytes(4, "big") + self._continuation + tail, piece


def write_flow(channel: int, flow: Flow) -> bytes:
    """Return a whole flow frame."""
    incoming, count, credit = flow.next_incoming_id, flow.delivery_count, flow.link_credit
    is_partial = flow.handle is not None and (count is None or credit is None)
    if incoming is None or is_partial or flow.properties is not None:
        return encode_frame(channel, flow)
    echo = _TRUE if flow.echo else _FALSE
    if flow.handle is None:
        return _SESSION_FLOW(
            41, 2, 0, channel, 0, 0x53, 0x13, 0xC0, 41 - _LIST_START, 11,
            _UINT, incoming, _UINT, flow.incoming_window, _UINT, flow.next_outgoing_id, _UINT, flow.outgoing_window,
            _NULL, _NULL, _NULL, _NULL, _FALSE, echo, _NULL,
        )  # fmt: skip
    return _LINK_FLOW(
        57, 2, 0, channel, 0, 0x53, 0x13, 0xC0, 57 - _LIST_START, 11,
        _UINT, incoming, _UINT, flow.incoming_window, _UINT, flow.next_outgoing_id, _UINT, flow.outgoing_window,
        _UINT, flow.handle, _UINT, count, _UINT, credit, _UINT, flow.available or 0,
        _TRUE if flow.drain else _FALSE, echo, _NULL,
    )  # fmt: skip
