"""The load process: `python -m bench.client send|receive|idle`. The scenarios start one process for each role.

It writes counters to the counter file, stops when its phase says so, and prints its latency percentiles as JSON. The
controlling process reads counters and CPU at the same moments for both brokers, and sleeps in between.
"""

import argparse
import gc
import itertools
import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.client.connection import Connection
from bench.client.counter_file import CounterFile, Phase, Slot
from bench.client.receiver import Receiver
from bench.client.sender import Sender
from bench.client.shapes import SHAPES
from bench.client.socket_poll import SocketPoll

__all__ = ["main"]

_UNBOUNDED = 1 << 62
_POLL_SECONDS = 0.1
"""The interval in which a process without traffic reads the phase of the counter file."""
_PAUSED_SECONDS = 0.005
"""The interval in which a paused sender reads the phase of the counter file."""
_STALLED_SECONDS = 0.001
"""The interval in which a sender at the backlog limit reads the receiver's counter."""
_BURSTS_PER_S = 1000
"""The maximum of bursts; a higher rate has more messages in each burst, since single messages would take a core."""
_SMALL_BUFFERS_COUNT = 100
"""With more connections, a receiver's buffer has room for small messages only."""
_DRAIN_SECONDS = 90.0
"""The time limit for a broker to settle and deliver all messages, a million at most."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one role until the phase of the counter file ends it."""
    options = _parser().parse_args(arguments)
    gc.disable()  # the code creates no cycles; a collection would count as latency of the broker
    _, descriptors_max = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors_max, descriptors_max))
    roles = {"send": _send, "receive": _receive, "idle": _idle}
    roles[options.role](options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.client")
    parser.add_argument("role", choices=("send", "receive", "idle"))
    parser.add_argument("--url", required=True)
    parser.add_argument("--address", required=True, help="address of each connection; {} becomes its number")
    parser.add_argument("--counters", type=Path, help="file of shared counters")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--body-bytes", type=int, default=100)
    parser.add_argument("--window", type=int, default=1000, help="unsettled messages of a sender, credit of a receiver")
    parser.add_argument("--batch-bytes", type=int, default=192 << 10, help="bodies in one write of a sender")
    parser.add_argument("--backlog", type=int, default=0, help="maximum of waiting messages in all queues, 0: none")
    parser.add_argument("--count", type=int, default=0, help="number of messages, 0: until the load ends")
    parser.add_argument("--shape", choices=("", *SHAPES), default="", help="client whose default message is sent")
    parser.add_argument("--rate", type=int, default=0, help="messages a second, 0: as fast as possible")
    parser.add_argument("--bare", action="store_true", help="idle connections without session and receiver")
    return parser


def _connect(options: argparse.Namespace, *, receives: bool) -> list[Connection]:
    connections = []
    for number in range(options.connections):
        connection = Connection(options.url, container=f"bench-{options.role}-{number}")
        connections.append(connection)
        if not options.bare:
            connection.begin()
            address = options.address.replace("{}", str(number))
            connection.attach(f"bench-{number}", address, receives=receives, credit=options.window)
    return connections


def _send(options: argparse.Namespace) -> None:
    counters = CounterFile(options.counters)
    poll: SocketPoll[Sender] = SocketPoll()
    connections = _connect(options, receives=False)
    senders = [
        Sender(
            connection,
            bytes(options.body_bytes),
            window=options.window,
            batch_bytes=options.batch_bytes,
            shape=SHAPES.get(options.shape),
        )
        for connection in connections
    ]
    poll.add(senders)
    if options.rate:
        _send_paced(senders, poll, counters, options.rate)
    else:
        _send_freely(senders, poll, counters, options)
    deadline = time.monotonic() + _DRAIN_SECONDS
    while any(sender.settled < sender.sent or sender.is_writing for sender in senders):
        _exchange(poll, _POLL_SECONDS)
        _write_counters(senders, counters)
        if time.monotonic() > deadline:
            missing = counters.slots[Slot.SENT] - counters.slots[Slot.SETTLED]
            raise TimeoutError(f"{missing} messages were not settled within {_DRAIN_SECONDS:g} s")
    _finish(connections, [latency for sender in senders for latency in sender.latencies_ns])


def _send_freely(
    senders: list[Sender], poll: SocketPoll[Sender], counters: CounterFile, options: argparse.Namespace
) -> None:
    slots = counters.slots
    backlog = options.backlog or _UNBOUNDED
    total = options.count or _UNBOUNDED
    each = -(-total // len(senders))
    while slots[Slot.PHASE] != Phase.DRAIN:
        if slots[Slot.PHASE] == Phase.PAUSE:
            _exchange(poll, _PAUSED_SECONDS)
            _write_counters(senders, counters)
            continue
        left = total - sum(sender.sent for sender in senders)
        if left <= 0:
            break
        room = backlog - slots[Slot.SENT] + slots[Slot.RECEIVED]
        stalled = room < max(backlog // 8, len(senders))
        allowance = 0 if stalled else min(room // len(senders), left)
        began = sum(sender.fill(min(allowance, each - sender.sent)) for sender in senders)
        timeout = 0.0 if began else _STALLED_SECONDS if stalled else _POLL_SECONDS
        _exchange(poll, timeout)
        _write_counters(senders, counters)


def _send_paced(senders: list[Sender], poll: SocketPoll[Sender], counters: CounterFile, rate: int) -> None:
    """Send each message when it is due, the senders in turn.

    Above 1,000 a second a sender sends a burst each millisecond, of which the first message is timed.
    """
    slots = counters.slots
    burst = max(rate // _BURSTS_PER_S, 1)
    interval = burst / rate
    due = time.monotonic()
    turns = itertools.cycle(senders)
    while slots[Slot.PHASE] != Phase.DRAIN:
        wait = due - time.monotonic()
        if slots[Slot.PHASE] == Phase.PAUSE:
            wait = _PAUSED_SECONDS
            due = time.monotonic() + interval
        elif wait <= 0:
            sender = next(turns)
            sender.send_timed(is_measured=slots[Slot.PHASE] == Phase.MEASURE)
            _fill_up(sender, burst - 1)
            due += interval
            _write_counters(senders, counters)
        _exchange(poll, max(wait, 0))
    _write_counters(senders, counters)


def _fill_up(sender: Sender, count: int) -> None:
    """Send `count` messages in batches, or fewer if credit or windows allow no more."""
    while count > 0 and (began := sender.fill(count)):
        count -= began


def _exchange(poll: SocketPoll[Sender], timeout: float) -> None:
    """Wait for the sockets, then read what has arrived and write what is pending."""
    readable, writable = poll.wait(timeout)
    for sender in readable:
        sender.read()
    for sender in writable:
        sender.fill(0)


def _write_counters(senders: list[Sender], counters: CounterFile) -> None:
    counters.slots[Slot.SENT] = sum(sender.sent for sender in senders)
    counters.slots[Slot.SETTLED] = sum(sender.settled for sender in senders)


def _receive(options: argparse.Namespace) -> None:
    counters = CounterFile(options.counters)
    slots = counters.slots
    poll: SocketPoll[Receiver] = SocketPoll()
    connections = _connect(options, receives=True)
    receivers = [
        Receiver(
            connection,
            credit=options.window,
            body_bytes=options.body_bytes,
            has_times=options.rate > 0,
            is_small=options.connections > _SMALL_BUFFERS_COUNT,
        )
        for connection in connections
    ]
    poll.add(receivers)
    print("ready", flush=True)
    deadline = float("inf")
    while slots[Slot.PHASE] != Phase.DRAIN or slots[Slot.RECEIVED] < slots[Slot.SENT]:
        readable, writable = poll.wait(_POLL_SECONDS)
        for receiver in writable:
            receiver.write()
        for receiver in readable:
            receiver.read()
        slots[Slot.RECEIVED] = sum(receiver.received for receiver in receivers)
        if slots[Slot.PHASE] == Phase.DRAIN:
            deadline = min(deadline, time.monotonic() + _DRAIN_SECONDS)
            if time.monotonic() > deadline:
                missing = slots[Slot.SENT] - slots[Slot.RECEIVED]
                raise TimeoutError(f"{missing} messages did not arrive within {_DRAIN_SECONDS:g} s")
    _finish(connections, [latency for receiver in receivers for latency in receiver.latencies_ns])


def _idle(options: argparse.Namespace) -> None:
    """Open the connections, print `ready`, and hold them until standard input ends."""
    connections = _connect(options, receives=True)
    print("ready", flush=True)
    sys.stdin.read()
    for connection in connections:
        connection.socket.close()


def _finish(connections: list[Connection], latencies_ns: list[int]) -> None:
    for connection in connections:
        connection.close()
    latencies_ns.sort()
    report = {"count": len(latencies_ns)}
    if latencies_ns:
        for name, share in (("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999), ("max_us", 1.0)):
            report[name] = latencies_ns[min(len(latencies_ns) - 1, int(share * len(latencies_ns)))] // 1000
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
