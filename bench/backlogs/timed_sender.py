"""A sender of messages that differ in their header or their annotations, and what its connection reads."""

from collections.abc import Iterator
from typing import Final

from bench.client import wire
from bench.client.connection import Connection, PeerClosed

__all__ = ["TimedSender", "performatives"]

_READ_BYTES: Final = 1 << 18
_BATCH: Final = 100


class TimedSender:
    """A link that sends messages of 100 bytes, each with sections of its own before the body."""

    def __init__(self, url: str, queue: str) -> None:
        self._connection = Connection(url, container="scheduler")
        self._connection.begin()
        self._connection.attach("posts", queue, receives=False)
        fields = self._connection.expect(wire.FLOW)
        self._sent = self._done = 0
        self._take_flow(fields)
        self._buffer = bytearray()
        self._body = b"\x00\x53\x75" + wire.binary(bytes(100))

    def send(self, heads: Iterator[bytes]) -> None:
        """Send a message with each of the encoded `heads`; return when the broker has accepted all of them."""
        is_over = False
        while not is_over or self._done < self._sent:
            frames: list[bytes] = []
            while not is_over and len(frames) < min(_BATCH, self._credit_end - self._sent):
                head = next(heads, None)
                if head is None:
                    is_over = True
                else:
                    frames.append(self._transfer(self._sent + len(frames), head))
            self._sent += len(frames)
            self._connection.socket.sendall(b"".join(frames))
            is_done = is_over and self._done == self._sent
            if not is_done and (not frames or self._sent - self._done >= 8 * _BATCH):
                self._read()

    def _transfer(self, number: int, head: bytes) -> bytes:
        tag = wire.binary(number.to_bytes(4, "big"))
        fields = (wire.uint(0), wire.uint(number), tag, wire.uint(0), wire.boolean(False))
        return wire.encode_frame(wire.described(wire.TRANSFER, *fields) + head + self._body)

    def _read(self) -> None:
        for code, fields in performatives(self._connection, self._buffer):
            if code == wire.DISPOSITION:
                first, last = fields[1], fields[2]
                assert isinstance(first, int)
                self._done += (last if isinstance(last, int) else first) - first + 1
            elif code == wire.FLOW:
                self._take_flow(fields)
            else:
                raise PeerClosed(f"the broker sent {code:#x} {fields}")

    def _take_flow(self, fields: list[object]) -> None:
        if fields[4] is None:
            # The session's windows alone.
            return
        count, credit = fields[5] or 0, fields[6] or 0
        assert isinstance(count, int)
        assert isinstance(credit, int)
        self._credit_end = count + credit

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def performatives(connection: Connection, buffer: bytearray) -> Iterator[tuple[int, list[object]]]:
    """Read what has arrived; yield the code of each performative, and its fields."""
    data = connection.socket.recv(_READ_BYTES)
    if not data:
        raise PeerClosed("the broker closed the connection")
    buffer += data
    position = 0
    for frame in wire.frames(buffer, 0, len(buffer)):
        position = frame.end
        if frame.start < frame.end:
            performative, _ = wire.decode_value(buffer, frame.start)
            assert isinstance(performative, wire.Described)
            code, fields = performative.code, performative.value
            assert isinstance(code, int)
            assert isinstance(fields, list)
            yield code, [*fields, *[None] * (11 - len(fields))]
    del buffer[:position]
