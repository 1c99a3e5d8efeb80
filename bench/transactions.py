"""`python -m bench.transactions`: the rate of messages in transactions beside the rate without.

One connection sends messages of 1 KiB. In one half of a turn they are in transactions of 100, 8 of them in flight:
declare, messages, discharge, and the next one, declared meanwhile, when a commit is answered. In the other half they
are plain, as many in flight. The same client, broker and queue serve both, in turns of one second. The figure is the
median of their ratios.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import BrokerFailed
from bench.client import wire
from bench.client.connection import Connection, PeerClosed

__all__ = ["main"]

_COORDINATOR: Final = 0x30
_DECLARE: Final = 0x31
_DISCHARGE: Final = 0x32
_DECLARED: Final = 0x33
_STATE: Final = 0x34
_RATIO_MIN: Final = 0.6
_READ_BYTES: Final = 1 << 18
_QUEUE: Final = "transactions"


class _Client:
    """A connection with a link to the coordinator, handle 1, and one that sends, handle 0."""

    def __init__(self, url: str, size: int) -> None:
        self._connection = Connection(url, container="transactions")
        self._connection.begin()
        self._connection.attach("posts", _QUEUE, receives=False)
        self._credit_end = self._sent = 0
        self._take_flow(self._connection.expect(wire.FLOW))
        self._connection.send(
            wire.described(
                wire.ATTACH,
                wire.string("control"),
                wire.uint(1),
                wire.boolean(False),
                wire.ubyte(0),
                wire.ubyte(0),
                wire.described(wire.SOURCE),
                wire.described(_COORDINATOR),
                wire.NULL,
                wire.NULL,
                wire.uint(0),
            )
        )
        self._connection.expect(wire.ATTACH)
        self._connection.expect(wire.FLOW)
        self._socket = self._connection.socket
        self._buffer = bytearray()
        self._body = wire.message(bytes(size))
        self._next_id = 0

    def transacted(self, seconds: float, count: int, in_flight: int) -> float:
        """Return the messages a second in transactions of `count`."""
        declares, discharges, done = dict.fromkeys(self._declare(in_flight)), set[int](), 0
        open_ids = deque[bytes]()
        began = time.monotonic()
        end = began + seconds
        while declares or discharges or open_ids:
            output: list[bytes] = []
            for first, last, state in self._dispositions():
                if state.code == _DECLARED:
                    for delivery in range(first, last + 1):
                        del declares[delivery]
                    fields = state.value
                    assert isinstance(fields, list)
                    open_ids.append(fields[0])
                elif state.code == wire.ACCEPTED:
                    ended = discharges.intersection(range(first, last + 1))
                    discharges -= ended
                    done += len(ended)
                elif state.code != _STATE:
                    raise PeerClosed(f"unexpected state {state}")
            while open_ids and len(discharges) < in_flight and self._credit_end - self._sent >= count:
                transaction = open_ids.popleft()
                output.append(self._messages(count, transaction))
                discharges.add(self._next_id)
                output.append(self._control(_DISCHARGE, wire.binary(transaction), wire.boolean(False)))
                if time.monotonic() < end:
                    # The next one is open when its turn comes.
                    declares[self._next_id] = None
                    output.append(self._control(_DECLARE, wire.NULL))
            self._socket.sendall(b"".join(output))
        return done * count / (time.monotonic() - began)

    def plain(self, seconds: float, window: int) -> float:
        """Return the messages a second without transactions, `window` in flight."""
        done, flying, quantum = 0, 0, window // 8
        began = time.monotonic()
        end = began + seconds
        while True:
            if time.monotonic() < end and window - flying >= quantum:
                count = min((window - flying) // quantum * quantum, self._credit_end - self._sent)
                self._socket.sendall(self._messages(count, b""))
                flying += count
            if not flying:
                return done / (time.monotonic() - began)
            for first, last, state in self._dispositions():
                if state.code != wire.ACCEPTED:
                    raise PeerClosed(f"unexpected state {state}")
                flying -= last - first + 1
                done += last - first + 1

    def _declare(self, count: int) -> list[int]:
        first = self._next_id
        self._socket.sendall(b"".join([self._control(_DECLARE, wire.NULL) for _ in range(count)]))
        return list(range(first, first + count))

    def _control(self, code: int, *fields: bytes) -> bytes:
        return self._transfer(1, b"\x00\x53\x77" + wire.described(code, *fields), b"")

    def _messages(self, count: int, transaction: bytes) -> bytes:
        state = wire.described(_STATE, wire.binary(transaction)) if transaction else b""
        self._sent += count
        return b"".join([self._transfer(0, self._body, state) for _ in range(count)])

    def _transfer(self, handle: int, payload: bytes, state: bytes) -> bytes:
        number = self._next_id
        self._next_id += 1
        fields = [wire.uint(handle), wire.uint(number), wire.binary(number.to_bytes(4, "big")), wire.uint(0)]
        fields += [b"\x42", b"\x42", wire.NULL, state] if state else [b"\x42"]
        return wire.encode_frame(wire.described(0x14, *fields) + payload)

    def _dispositions(self) -> Iterator[tuple[int, int, wire.Described]]:
        """Read what has arrived; yield first, last and state of each disposition."""
        data = self._socket.recv(_READ_BYTES)
        if not data:
            raise PeerClosed("the broker closed the connection")
        self._buffer += data
        position = 0
        for frame in wire.frames(self._buffer, 0, len(self._buffer)):
            position = frame.end
            if frame.start == frame.end:
                continue
            performative, _ = wire.decode_value(self._buffer, frame.start)
            assert isinstance(performative, wire.Described)
            fields = performative.value
            assert isinstance(fields, list)
            if performative.code == wire.DISPOSITION:
                first, last, state = fields[1], fields[2], fields[4]
                assert isinstance(first, int)
                assert isinstance(state, wire.Described)
                yield first, last if isinstance(last, int) else first, state
            elif performative.code == wire.FLOW:
                self._take_flow(fields)
            else:
                raise PeerClosed(f"the broker sent {performative}")
        del self._buffer[:position]

    def _take_flow(self, fields: list[object]) -> None:
        count, credit = fields[5] if len(fields) > 5 else 0, fields[6] if len(fields) > 6 else 0
        if len(fields) > 4 and fields[4] == 0 and isinstance(count, int) and isinstance(credit, int):
            self._credit_end = count + credit

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def main() -> int:
    """Measure; return 0, or 1 if the broker failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.transactions", description=__doc__)
    parser.add_argument("--turns", type=int, default=15, help="pairs of runs")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a run")
    parser.add_argument("--messages", type=int, default=100, help="messages of a transaction")
    parser.add_argument("--bytes", type=int, default=1024, help="bytes of a message")
    parser.add_argument("--in-flight", type=int, default=8, help="transactions in flight")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ambermq-transactions-") as name:
        broker = AmberMQ(Path(name) / "data")
        try:
            broker.start()
            pairs = _pairs(broker.url, options)
        except (BrokerFailed, PeerClosed, OSError) as failure:
            sys.stderr.write(f"{failure}\n")
            return 1
        finally:
            broker.kill()
    plain, transacted = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for other, one in pairs)
    verdict = "met" if ratio >= _RATIO_MIN else "missed"
    sys.stdout.write(f"plain_rate        {plain:,.0f} messages a second\n")
    sys.stdout.write(f"transacted_rate   {transacted:,.0f} messages a second\n")
    sys.stdout.write(f"transacted_ratio  {ratio:.2f}   at least {_RATIO_MIN}: {verdict}\n")
    return 0


def _pairs(url: str, options: argparse.Namespace) -> list[tuple[float, float]]:
    client = _Client(url, options.bytes)
    pairs = []
    for turn in range(options.turns + 1):
        plain = client.plain(options.seconds, options.messages * options.in_flight)
        transacted = client.transacted(options.seconds, options.messages, options.in_flight)
        if turn:
            # The first turn warms up.
            pairs.append((plain, transacted))
    client.close()
    return pairs


if __name__ == "__main__":
    sys.exit(main())
