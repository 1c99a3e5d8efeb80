"""A sending link with minimal cost for the client.

Rule 1. The sender stays within link credit, the session's remote incoming window, and the caller's allowance.
Rule 2. One write sends a batch of messages. A batch waits until an eighth of the window is open, so that dispositions
of single messages do not cause writes of single messages.
Rule 3. Any outcome but accepted is an error: a measurement with lost messages is wrong.
"""

import re
import struct
import time

from bench.client import wire
from bench.client.connection import Connection, PeerClosed
from bench.client.shapes import Shape
from bench.client.transfer_batch import TransferBatch

__all__ = ["Sender"]

# The disposition of a receiver (role true) that settles as accepted, with first and last at any width.
_NUMBER = rb"(?:\x70(....)|\x52(.)|(\x43))"
_ACCEPTED_RANGE = re.compile(
    rb"....\x02\x00..\x00\x53\x15\xc0..\x41"
    + _NUMBER
    + rb"(?:"
    + _NUMBER
    + rb"|\x40)\x41\x00\x53\x24(?:\x45|\xc0\x01\x00)",
    re.DOTALL,
)
_FULL_WIDTH = struct.Struct(">I")
_READ_BYTES = 1 << 16
_BATCH_COUNT_MIN = 4


class Sender:
    """One link on one connection, after `connection.begin()` and `attach`.

    `window` limits the unsettled messages, `batch_bytes` the bodies of one write, but a write has at least four.
    """

    __slots__ = (
        "_batch",
        "_connection",
        "_credit_end",
        "_end",
        "_first_unsettled",
        "_pending",
        "_quantum",
        "_sent_at_ns",
        "_settled_ahead",
        "_window",
        "latencies_ns",
        "sent",
        "settled",
        "socket",
    )

    def __init__(
        self, connection: Connection, body: bytes, *, window: int, batch_bytes: int, shape: Shape | None = None
    ) -> None:
        count_max = max(_BATCH_COUNT_MIN, min(window, batch_bytes // len(body)))
        frame_bytes_max = connection.frame_bytes_max
        self._batch = TransferBatch(body, count_max=count_max, frame_bytes_max=frame_bytes_max, shape=shape)
        self._quantum = max(1, min(count_max, window // 8))
        self._connection = connection
        self._window = window
        self._credit_end = 0
        self._first_unsettled = 0
        self._settled_ahead: set[int] = set()
        self._pending = memoryview(b"")
        self._sent_at_ns: dict[int, int] = {}
        self.latencies_ns: list[int] = []
        self.sent = 0
        self.settled = 0
        rest = connection.handed_over()
        self.socket = connection.socket
        connection.buffer[: len(rest)] = rest
        connection.buffer.extend(bytes(_READ_BYTES))
        self._end = len(rest)
        self._parse()

    @property
    def is_writing(self) -> bool:
        """Whether a part of the last batch waits for room in the socket."""
        return bool(self._pending)

    def fill(self, allowance: int) -> int:
        """Send at most one batch, within credit, windows and the allowance; return the number of messages."""
        if self._pending and not self._write():
            return 0
        count = min(allowance, self._room(), self._batch.count_max)
        # With no message in flight no settlement will open the window: send a smaller batch.
        if count <= 0 or (count < min(allowance, self._quantum) and self.settled < self.sent):
            return 0
        self._pending = self._batch.stamp(self.sent, count)
        self.sent += count
        self._connection.remote_incoming_window -= count * self._batch.frames_each
        self._write()
        return count

    def send_timed(self, *, is_measured: bool) -> bool:
        """Send one message with the time in its body, if there is room; return whether it was sent.

        Its latencies are recorded if `is_measured`.
        """
        if (self._pending and not self._write()) or self._room() < 1:
            return False
        self._pending = self._batch.stamp(self.sent, 1)
        now_ns = time.monotonic_ns()
        self._batch.stamp_time(now_ns if is_measured else 0)
        if is_measured:
            self._sent_at_ns[self.sent] = now_ns
        self.sent += 1
        self._connection.remote_incoming_window -= self._batch.frames_each
        self._write()
        return True

    def read(self) -> None:
        """Read what has arrived: settlements, credit and windows. Raises PeerClosed."""
        buffer = self._connection.buffer
        try:
            with memoryview(buffer) as view:
                count = self.socket.recv_into(view[self._end :])
        except BlockingIOError:
            return
        if not count:
            raise PeerClosed(f"the broker closed the connection after {self.sent} messages")
        self._end += count
        self._parse()

    def _room(self) -> int:
        return min(
            self._credit_end - self.sent,
            self._window - self.sent + self.settled,
            self._connection.remote_incoming_window // self._batch.frames_each,
        )

    def _write(self) -> bool:
        try:
            written = self.socket.send(self._pending)
        except BlockingIOError:
            return False
        self._pending = self._pending[written:]
        return not self._pending

    def _parse(self) -> None:
        # One regular expression parses a disposition: RabbitMQ settles most messages one by one.
        buffer, position, end = self._connection.buffer, 0, self._end
        match = _ACCEPTED_RANGE.match
        unpack = _FULL_WIDTH.unpack
        size_at = _FULL_WIDTH.unpack_from
        while end - position >= 8:
            (size,) = size_at(buffer, position)
            if end - position < size:
                break
            found = match(buffer, position, position + size)
            if found is None:
                self._take(next(wire.frames(buffer, position, end)))
                position += size
                continue
            first_wide, first_short, _first_zero, last_wide, last_short, last_zero = found.group(1, 2, 3, 4, 5, 6)
            first = unpack(first_wide)[0] if first_wide else first_short[0] if first_short else 0
            last = first
            if last_wide:
                last = unpack(last_wide)[0]
            elif last_short:
                last = last_short[0]
            elif last_zero:
                last = 0
            self._settle(first, last)
            position += size
        self._end = end - position
        if position and position < end:
            buffer[: self._end] = buffer[position:end]

    def _settle(self, first: int, last: int) -> None:
        if last >= self.sent:
            raise PeerClosed(f"the broker settled delivery {last} of {self.sent}")
        # RabbitMQ's ranges can repeat messages that it settled one by one before: a message counts once.
        first = max(first, self._first_unsettled)
        ahead = self._settled_ahead
        if first == self._first_unsettled:
            ahead.difference_update(range(first, last + 1))
            self._first_unsettled = max(first, last + 1)
            while ahead and self._first_unsettled in ahead:
                ahead.remove(self._first_unsettled)
                self._first_unsettled += 1
        else:
            ahead.update(range(first, last + 1))
        self.settled = self._first_unsettled + len(ahead)
        if self._sent_at_ns:
            self._record_latencies(first, last)

    def _record_latencies(self, first: int, last: int) -> None:
        now_ns = time.monotonic_ns()
        for delivery_id in range(first, last + 1):
            sent_ns = self._sent_at_ns.pop(delivery_id, None)
            if sent_ns is not None:
                self.latencies_ns.append(now_ns - sent_ns)

    def _take(self, frame: wire.Frame) -> None:
        """Decode a frame of an unknown shape: flow, a rare disposition, or an end."""
        if frame.start == frame.end:
            return
        performative, _ = wire.decode_value(self._connection.buffer, frame.start)
        assert isinstance(performative, wire.Described)
        fields = performative.value
        assert isinstance(fields, list)
        fields += [None] * (10 - len(fields))
        if performative.code == wire.FLOW:
            self._take_flow(fields)
        elif performative.code == wire.DISPOSITION:
            self._take_disposition(fields)
        else:
            raise PeerClosed(f"after {self.sent} messages the broker sent {performative}")

    def _take_flow(self, fields: list[object]) -> None:
        next_incoming_id, incoming_window, delivery_count, link_credit = (fields[n] or 0 for n in (0, 1, 5, 6))
        assert isinstance(next_incoming_id, int)
        assert isinstance(incoming_window, int)
        assert isinstance(delivery_count, int)
        assert isinstance(link_credit, int)
        next_outgoing_id = self.sent * self._batch.frames_each
        self._connection.remote_incoming_window = next_incoming_id + incoming_window - next_outgoing_id
        if fields[4] is not None:
            self._credit_end = delivery_count + link_credit

    def _take_disposition(self, fields: list[object]) -> None:
        first, last, outcome = fields[1], fields[2], fields[4]
        assert isinstance(first, int)
        if not isinstance(outcome, wire.Described) or outcome.code != wire.ACCEPTED:
            raise PeerClosed(f"delivery {first} to {last} was not accepted but {outcome}")
        self._settle(first, last if isinstance(last, int) else first)
