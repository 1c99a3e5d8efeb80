"""A receiving link with minimal cost for the client.

Rule 1. Transfers of one link differ only in their ids, so a frame is recognised by the bytes around the ids. These
bytes are taken from the last frame that was decoded. Bodies are skipped, never read.
Rule 2. One disposition settles all messages that were read, after 64 messages or when the socket is empty.
Rule 3. The receiver grants new credit when half of it is used, with the session's window.
"""

import struct
import time
from typing import NamedTuple

from bench.client import wire
from bench.client.connection import FRAME_BYTES_MAX, Connection, PeerClosed

__all__ = ["Receiver"]

_SETTLE_COUNT = 64
_SMALL_BYTES = 1 << 16
_FULL_WIDTH = struct.Struct(">I")
_TIME = struct.Struct(">Q")
_ACCEPTED = wire.described(wire.ACCEPTED)


class _Shape(NamedTuple):
    """The constant bytes of the single-frame transfers of a link."""

    size: int
    prefix: bytes
    """From the frame's size to the constructor of the delivery-id."""
    suffix_position: int
    suffix: bytes
    """From the end of the delivery-tag to the end of the performative."""


class Receiver:
    """One link on one connection, attached with `credit`; a body has `body_bytes` and is the end of its message."""

    __slots__ = (
        "_buffer",
        "_connection",
        "_credit",
        "_delivery_id",
        "_end",
        "_first_unsettled",
        "_flowed",
        "_next_id",
        "_outgoing",
        "_shape",
        "_time_position",
        "latencies_ns",
        "received",
        "socket",
    )

    def __init__(
        self, connection: Connection, *, credit: int, body_bytes: int, has_times: bool, is_small: bool = False
    ) -> None:
        rest = connection.handed_over()
        self._connection = connection
        self._buffer = bytearray(rest) + bytes(_SMALL_BYTES if is_small else FRAME_BYTES_MAX + (FRAME_BYTES_MAX >> 2))
        self._end = len(rest)
        self._credit = credit
        self._delivery_id = 0
        self._first_unsettled: int | None = None
        self._next_id = 0
        self._flowed = 0
        self._outgoing = b""
        self._shape = _Shape(FRAME_BYTES_MAX * 2, b"", 0, b"")
        self._time_position = body_bytes if has_times else 0
        self.latencies_ns: list[int] = []
        self.received = 0
        self.socket = connection.socket
        self._parse()

    @property
    def is_writing(self) -> bool:
        """Whether dispositions or flows wait for room in the socket."""
        return bool(self._outgoing)

    def read(self) -> None:
        """Read until the socket is empty, and settle what was read. Raises PeerClosed."""
        while True:
            try:
                with memoryview(self._buffer) as view:
                    count = self.socket.recv_into(view[self._end :])
            except BlockingIOError:
                break
            if not count:
                raise PeerClosed(f"the broker closed the connection after {self.received} messages")
            self._end += count
            self._parse()
            if self._first_unsettled is not None and self._next_id - self._first_unsettled >= _SETTLE_COUNT:
                self._settle()
        self._settle()
        self.write()

    def write(self) -> None:
        """Write the outgoing bytes, as many as the socket has room for."""
        if not self._outgoing:
            return
        try:
            self._outgoing = self._outgoing[self.socket.send(self._outgoing) :]
        except BlockingIOError:
            return

    def _settle(self) -> None:
        """Accept and settle all unsettled messages with one disposition; grant credit if half of it is used."""
        if self._first_unsettled is None:
            return
        self._outgoing += wire.encode_frame(
            wire.described(
                wire.DISPOSITION,
                wire.boolean(True),
                wire.uint(self._first_unsettled),
                wire.uint(self._next_id - 1),
                wire.boolean(True),
                _ACCEPTED,
            )
        )
        self._first_unsettled = None
        if self.received - self._flowed >= self._credit // 2:
            self._flowed = self.received
            flow = self._connection.flow(delivery_count=self.received, credit=self._credit)
            self._outgoing += wire.encode_frame(flow)
        self.write()

    def _parse(self) -> None:
        # The hot loop of the client: two comparisons and an addition for each message.
        buffer, position, end = self._buffer, 0, self._end
        startswith = buffer.startswith
        while end - position >= 8:
            size, prefix, suffix_position, suffix = self._shape
            start = position
            while (
                end - position >= size
                and startswith(prefix, position)
                and startswith(suffix, position + suffix_position)
            ):
                position += size
            if position > start:
                self._take_run(start, position, size, len(prefix))
            frame = next(wire.frames(buffer, position, end), None)
            if frame is None:
                break
            self._take(position, frame)
            position = frame.end
        self._end = end - position
        if position and position < end:
            buffer[: self._end] = buffer[position:end]

    def _take_run(self, start: int, end: int, size: int, id_position: int) -> None:
        """Count consecutive frames of the same shape with consecutive ids."""
        count = (end - start) // size
        (first,) = _FULL_WIDTH.unpack_from(self._buffer, start + id_position)
        (last,) = _FULL_WIDTH.unpack_from(self._buffer, end - size + id_position)
        if last - first + 1 != count:
            raise PeerClosed(f"{count} transfers carry delivery-ids {first} to {last}")
        self._connection.next_incoming_id += count
        self._count(first, count)
        if self._time_position:
            for position in range(start + size, end + 1, size):
                self._record_latency(position)

    def _take(self, start: int, frame: wire.Frame) -> None:
        """Decode a frame of an unknown shape; store its shape if it is a whole delivery."""
        if frame.start == frame.end:
            return
        performative, body = wire.decode_value(self._buffer, frame.start)
        assert isinstance(performative, wire.Described)
        fields = performative.value
        assert isinstance(fields, list)
        fields += [None] * (10 - len(fields))
        if performative.code == wire.TRANSFER:
            self._take_transfer(start, frame, fields, body)
        elif performative.code not in {wire.FLOW, wire.DISPOSITION}:
            raise PeerClosed(f"after {self.received} messages the broker sent {performative}")

    def _take_transfer(self, start: int, frame: wire.Frame, fields: list[object], body: int) -> None:
        self._connection.next_incoming_id += 1
        delivery_id, more = fields[1], fields[5]
        if isinstance(delivery_id, int):
            self._delivery_id = delivery_id
            if not more:
                self._store_shape(start, frame, body)
        if more:
            return
        self._count(self._delivery_id, 1)
        if self._time_position:
            self._record_latency(frame.end)

    def _store_shape(self, start: int, frame: wire.Frame, body: int) -> None:
        list_position = frame.start + 3
        fields = list_position + (3 if self._buffer[list_position] == 0xC0 else 9)
        _, id_position = wire.decode_value(self._buffer, fields)
        if self._buffer[id_position] != 0x70:
            return
        _, suffix_position = wire.decode_value(self._buffer, id_position + 5)
        self._shape = _Shape(
            frame.end - start,
            bytes(self._buffer[start : id_position + 1]),
            suffix_position - start,
            bytes(self._buffer[suffix_position:body]),
        )

    def _count(self, first: int, count: int) -> None:
        if self._first_unsettled is None:
            self._first_unsettled = first
        elif first != self._next_id:
            raise PeerClosed(f"expected delivery-id {self._next_id}, the broker sent {first}")
        self._next_id = first + count
        self.received += count

    def _record_latency(self, message_end: int) -> None:
        """Record the latency of a message that has a time; `message_end` is the end of its body."""
        (sent_ns,) = _TIME.unpack_from(self._buffer, message_end - self._time_position)
        if sent_ns:
            self.latencies_ns.append(time.monotonic_ns() - sent_ns)
