"""A minimal blocking AMQP 1.0 connection with one session.

The handshake waits for each answer and is not measured. After it the socket does not block. The sender and the receiver
then read and write themselves: they use `socket`, `buffer` and the counters of the session.
"""

import socket
from urllib.parse import urlsplit

from bench.client import wire

__all__ = ["INCOMING_WINDOW", "Connection", "PeerClosed"]

FRAME_BYTES_MAX = 1 << 20
INCOMING_WINDOW = 1 << 20
_SASL_HEADER = b"AMQP\x03\x01\x00\x00"
_AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
_ANSWER_SECONDS = 60.0


class PeerClosed(Exception):
    """The broker ended the connection, the session or the link; the message quotes its error."""


class Connection:
    """One TCP connection with AMQP open, and one session on channel 0 after `begin`."""

    __slots__ = ("_end", "_start", "buffer", "frame_bytes_max", "next_incoming_id", "remote_incoming_window", "socket")

    def __init__(self, url: str, *, container: str, source: str = "") -> None:
        """Connect from an address of this machine, `source`; empty: from any."""
        address = urlsplit(url)
        peer, local = (address.hostname, address.port), (source, 0) if source else None
        self.socket = socket.create_connection(peer, timeout=_ANSWER_SECONDS, source_address=local)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray(4096)
        self._start = self._end = 0
        self.frame_bytes_max = 512
        self.next_incoming_id = 0
        self.remote_incoming_window = 0
        self._authenticate()
        self._open(container, address.hostname or "")

    def begin(self) -> None:
        """Begin the session and store its windows and first transfer number."""
        self.send(
            wire.described(
                wire.BEGIN,
                wire.NULL,
                wire.uint(0),
                wire.uint(INCOMING_WINDOW),
                wire.uint(INCOMING_WINDOW),
                wire.uint(1),
            )
        )
        fields = self.expect(wire.BEGIN)
        self.next_incoming_id = _integer(fields[1])
        self.remote_incoming_window = _integer(fields[2])

    def attach(self, name: str, address: str, *, receives: bool, credit: int = 0) -> None:
        """Attach the link of handle 0 with the same source and target; a receiver grants its credit at once."""
        # RabbitMQ declares a durable queue only for a durable terminus (unsettled-state, 2).
        terminus = (wire.string(address), wire.uint(2))
        self.send(
            wire.described(
                wire.ATTACH,
                wire.string(name),
                wire.uint(0),
                wire.boolean(receives),
                wire.ubyte(0),
                wire.ubyte(0),
                wire.described(wire.SOURCE, *terminus),
                wire.described(wire.TARGET, *terminus),
                wire.NULL,
                wire.NULL,
                wire.uint(0),
            )
        )
        self.expect(wire.ATTACH)
        if receives:
            self.send(self.flow(delivery_count=0, credit=credit))

    def flow(self, *, delivery_count: int, credit: int) -> bytes:
        """Encode a flow for the receiving link of handle 0, with a full session window."""
        return wire.described(
            wire.FLOW,
            wire.uint(self.next_incoming_id),
            wire.uint(INCOMING_WINDOW),
            wire.uint(0),
            wire.uint(INCOMING_WINDOW),
            wire.uint(0),
            wire.uint(delivery_count),
            wire.uint(credit),
        )

    def send(self, performative: bytes, *, type_: int = 0) -> None:
        """Write one frame; the call blocks until the socket has room."""
        self.socket.sendall(wire.encode_frame(performative, type_=type_))

    def expect(self, code: int) -> list[object]:
        """Wait for a performative; return its fields, padded with nulls to ten. Raises PeerClosed."""
        performative = self._read_performative()
        if performative.code != code:
            raise PeerClosed(f"expected 0x{code:02x}, the broker sent {performative}")
        fields = performative.value
        assert isinstance(fields, list)
        return fields + [None] * (10 - len(fields))

    def handed_over(self) -> bytes:
        """Return the bytes that were read after the handshake, and make the socket non-blocking."""
        self.socket.settimeout(0)
        rest = bytes(self.buffer[self._start : self._end])
        self._start = self._end = 0
        return rest

    def close(self) -> None:
        """Send close and close the socket, without waiting for the broker's answer."""
        try:
            self.socket.settimeout(1)
            self.send(wire.described(wire.CLOSE))
            self.socket.shutdown(socket.SHUT_WR)
            while self.socket.recv(1 << 16):
                pass
        except OSError:
            pass
        finally:
            self.socket.close()

    def _authenticate(self) -> None:
        self.socket.sendall(_SASL_HEADER)
        self._read_header(_SASL_HEADER)
        mechanisms = self.expect(wire.SASL_MECHANISMS)[0]
        offered = mechanisms if isinstance(mechanisms, list) else [mechanisms]
        anonymous = "ANONYMOUS" in offered
        answer = b"" if anonymous else b"\0guest\0guest"
        mechanism = "ANONYMOUS" if anonymous else "PLAIN"
        self.send(wire.described(wire.SASL_INIT, wire.symbol(mechanism), wire.binary(answer)), type_=wire.SASL_FRAME)
        outcome = self.expect(wire.SASL_OUTCOME)[0]
        if outcome != 0:
            raise PeerClosed(f"SASL {mechanism} refused with code {outcome}")

    def _open(self, container: str, hostname: str) -> None:
        self.socket.sendall(_AMQP_HEADER)
        self._read_header(_AMQP_HEADER)
        self.send(
            wire.described(
                wire.OPEN,
                wire.string(container),
                wire.string(hostname),
                wire.uint(FRAME_BYTES_MAX),
                wire.ushort(0),
                wire.NULL,
            )
        )
        announced = self.expect(wire.OPEN)[2]
        # The client never sends frames above its own limit, even if the broker's is higher.
        self.frame_bytes_max = FRAME_BYTES_MAX if announced is None else min(FRAME_BYTES_MAX, _integer(announced))

    def _read_header(self, expected: bytes) -> None:
        while self._end - self._start < len(expected):
            self._read_more()
        header = bytes(self.buffer[self._start : self._start + 8])
        self._start += 8
        if header != expected:
            raise PeerClosed(f"expected protocol header {expected!r}, the broker sent {header!r}")

    def _read_performative(self) -> wire.Described:
        while True:
            for frame in wire.frames(self.buffer, self._start, self._end):
                self._start = frame.end
                if frame.start < frame.end:
                    value, _ = wire.decode_value(self.buffer, frame.start)
                    assert isinstance(value, wire.Described)
                    return value
            self._read_more()

    def _read_more(self) -> None:
        if self._end == len(self.buffer):
            self.buffer.extend(bytes(4096))
        with memoryview(self.buffer) as view:
            count = self.socket.recv_into(view[self._end :])
        if not count:
            raise PeerClosed("the broker closed the connection during the handshake")
        self._end += count


def _integer(value: object) -> int:
    assert isinstance(value, int), f"expected a number, the broker sent {value!r}"
    return value
