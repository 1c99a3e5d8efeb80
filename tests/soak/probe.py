"""`python -m tests.soak.probe URL PID FILE`: the latency of one durable message at a time, beside that of the machine.

It is a process of its own, since the threads of the load would delay it. Each line on standard output is one message:

    begin      time.monotonic(), which all processes of a machine share
    message    milliseconds until the broker has delivered the message, after its sync
    waiting    milliseconds of these in which the broker PID or this process was ready, and the kernel gave it no core
    machine    milliseconds that a sleep of a millisecond and a sync of 4 KiB to FILE take, less that millisecond

A machine that is busy delays the message without any fault of the broker: the last two figures say by how much.
"""

import os
import sys
import time
from pathlib import Path
from typing import Final

from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Header
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.messages.subscriber import Subscriber
from ambermq.tools.terminal.errors import ToolError

_PAUSE_SECONDS: Final = 0.05
_SLEEP_SECONDS: Final = 0.001
_BLOCK: Final = bytes(4096)


def main(url: str, pid: str, file: str) -> int:
    """Probe until the connection breaks."""
    fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        with LinkClient.connect(BrokerUrl.parse(url)) as sending, LinkClient.connect(BrokerUrl.parse(url)) as receiving:
            _probe(sending, receiving, (int(pid), os.getpid()), fd)
    except (ToolError, OSError):
        return 1
    return 0


def _probe(sending: LinkClient, receiving: LinkClient, pids: tuple[int, int], fd: int) -> None:
    payload = Message(header=Header(durable=True), body=(Data(b"probe"),)).encode()
    subscriber = Subscriber(receiving, receiving.attach_receiver("probe"))
    for _ in subscriber.payloads(idle_seconds=0.5):
        pass  # what a kill has left
    publisher, arrivals = Publisher(sending, sending.attach_sender("probe")), subscriber.payloads(idle_seconds=60)
    while True:
        time.sleep(_PAUSE_SECONDS)
        machine = _machine_seconds(fd)
        begin, waiting = time.monotonic(), _waiting_ms(pids)
        publisher.offer(payload, 0)
        sending.flush()
        if next(arrivals, None) is None:
            raise TimeoutError("the probe has not arrived in 60 s")
        message, waiting = time.monotonic() - begin, _waiting_ms(pids) - waiting
        publisher.finish()
        print(f"{begin:.6f} {1000 * message:.3f} {waiting:.3f} {1000 * machine:.3f}", flush=True)


def _waiting_ms(pids: tuple[int, int]) -> float:
    """Return how long the main threads of these processes have waited for a core, since they began."""
    # CPU time, run delay and time slices, in nanoseconds; a kernel without CONFIG_SCHED_INFO has zeros.
    return sum(int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) for pid in pids) / 1e6


def _machine_seconds(fd: int) -> float:
    begin = time.monotonic()
    time.sleep(_SLEEP_SECONDS)
    os.pwrite(fd, _BLOCK, 0)
    os.fdatasync(fd)
    return time.monotonic() - begin - _SLEEP_SECONDS


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
