"""`python -m bench.limits.loop_limit`: what an event loop itself costs a message: uvloop, and a loop over epoll alone.

A client sends 1,100 bytes at a fixed rate, one message after the answer to the last. The server reads them, wakes
itself by an eventfd, as at the end of a sync, and writes 30 bytes. Each message costs two wake-ups, and nothing else.
"""

import asyncio
import os
import resource
import select
import socket
import statistics
import sys
import time
from collections.abc import Callable
from typing import Final, cast

import uvloop

__all__ = ["main"]

_COUNT: Final = 5000
_RATES: Final = (1000, 5000)
_ROUNDS: Final = 3
_MESSAGE: Final = bytes(1100)
_ANSWER: Final = bytes(30)


def _send(port: int, rate: int) -> None:
    """Send all messages, and wait for each answer."""
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        due = time.monotonic()
        for _ in range(_COUNT):
            due += 1 / rate
            time.sleep(max(due - time.monotonic(), 0))
            stream.sendall(_MESSAGE)
            stream.recv(100)


def _start_client(port: int, rate: int) -> int:
    child = os.fork()
    if not child:
        _send(port, rate)
        os._exit(0)
    return child


def _serve_by_epoll(rate: int) -> float:
    listener = socket.create_server(("127.0.0.1", 0))
    child = _start_client(listener.getsockname()[1], rate)
    stream, _ = listener.accept()
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setblocking(False)
    event, poll, buffer = os.eventfd(0, os.EFD_NONBLOCK), select.epoll(), bytearray(1 << 18)

    def read() -> bool:
        if not stream.recv_into(buffer):
            return False
        os.eventfd_write(event, 1)
        return True

    def answer() -> bool:
        os.eventfd_read(event)
        stream.send(_ANSWER)
        return True

    calls = {stream.fileno(): read, event: answer}
    for number in calls:
        poll.register(number, select.EPOLLIN)
    began, is_open = _cpu_seconds(), True
    while is_open:
        for number, _events in poll.poll(1):
            is_open = calls[number]() and is_open
    seconds = _cpu_seconds() - began
    os.waitpid(child, 0)
    return seconds


class _Server(asyncio.BufferedProtocol):
    """Reads, and wakes the loop by an eventfd."""

    def __init__(self, event: int, ended: asyncio.Event) -> None:
        self._event = event
        self._ended = ended
        self._buffer = memoryview(bytearray(1 << 18))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        asyncio.get_running_loop().add_reader(self._event, self._answer)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        del nbytes
        os.eventfd_write(self._event, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._ended.set()

    def _answer(self) -> None:
        os.eventfd_read(self._event)
        self._transport.writelines([_ANSWER])


async def _serve(rate: int) -> float:
    event, ended = os.eventfd(0, os.EFD_NONBLOCK), asyncio.Event()
    server = await asyncio.get_running_loop().create_server(lambda: _Server(event, ended), "127.0.0.1", 0)
    _start_client(server.sockets[0].getsockname()[1], rate)
    began = _cpu_seconds()
    await ended.wait()
    seconds = _cpu_seconds() - began
    server.close()
    return seconds


def _serve_by_uvloop(rate: int) -> float:
    seconds = uvloop.run(_serve(rate))
    os.wait()
    return seconds


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


_LOOPS: Final[dict[str, Callable[[int], float]]] = {"epoll": _serve_by_epoll, "uvloop": _serve_by_uvloop}


def main() -> int:
    """Print the CPU time of a message for each loop and rate, medians of interleaved rounds."""
    for rate in _RATES:
        rounds = [{name: serve(rate) / _COUNT * 1e6 for name, serve in _LOOPS.items()} for _ in range(_ROUNDS)]
        figures = {name: statistics.median(one[name] for one in rounds) for name in _LOOPS}
        print(f"{rate:,} a second: " + ", ".join(f"{name} {us:.1f} us" for name, us in figures.items()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
