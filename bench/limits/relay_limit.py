"""`python -m bench.limits.relay_limit [DIRECTORY]`: the copies, TCP and syncs of large messages alone.

A sender, a relay and a receiver are a process each, as in the load `one-64k`. The relay reads bytes from the sender's
connection, writes them to a file that is written ahead, syncs, and sends them to the receiver after their sync. While
a part syncs, the next one is read. It knows no AMQP, no queue and no settlement: only the copies of the kernel, TCP
and the syncs are left. `bench.limits.disk_limit` has the same writes without the connections.
"""

import json
import multiprocessing
import os
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from bench.limits.disk_limit import measure as measure_disk

__all__ = ["measure"]

_BODY_BYTES: Final = 64 << 10
_FILE_BYTES: Final = 256 << 20
_ZEROS: Final = bytes(1 << 20)


class _Sync:
    """One sync at a time, in a thread of its own."""

    def __init__(self, file: int) -> None:
        """Sync the file with this descriptor."""
        self._file, self._wanted, self._has_ended = file, threading.Event(), threading.Event()
        self._has_ended.set()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            os.fdatasync(self._file)
            self._has_ended.set()

    def begin(self) -> None:
        """Begin the next one; the one before has ended."""
        self._has_ended.clear()
        self._wanted.set()

    def wait(self) -> None:
        """Return when the one in progress has ended."""
        self._has_ended.wait()


def _send(address: tuple[str, int], ends_at: float) -> None:
    data = os.urandom(_BODY_BYTES) * 16
    with socket.create_connection(address) as connection:
        while time.monotonic() < ends_at:
            connection.sendall(data)


def _receive(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    buffer = bytearray(1 << 20)
    while connection.recv_into(buffer):
        pass


def _relay(source: socket.socket, target: socket.socket, file: int, part_bytes: int) -> int:
    """Return the bytes that went through until the source ended."""
    sync, parts, through, position = _Sync(file), [bytearray(part_bytes), bytearray(part_bytes)], 0, 0
    previous = memoryview(b"")
    while count := source.recv_into(parts[0], part_bytes, socket.MSG_WAITALL):
        read = memoryview(parts[0])[:count]
        position = 0 if position + count > _FILE_BYTES else position
        os.pwrite(file, read, position)
        position += count
        sync.wait()
        sync.begin()
        target.sendall(previous)
        through += len(previous)
        previous = read
        parts.reverse()
    sync.wait()
    return through


def measure(directory: Path, *, messages_per_sync: int, seconds: float = 8.0) -> float:
    """Return messages of 64 KiB a second through the relay."""
    context = multiprocessing.get_context("fork")
    with (
        tempfile.NamedTemporaryFile(dir=directory) as file,
        socket.create_server(("127.0.0.1", 0)) as inbound,
        socket.create_server(("127.0.0.1", 0)) as outbound,
    ):
        for start in range(0, _FILE_BYTES, len(_ZEROS)):
            os.pwrite(file.fileno(), _ZEROS, start)
        os.fsync(file.fileno())
        receiver = context.Process(target=_receive, args=(outbound,))
        receiver.start()
        began = time.monotonic()
        sender = context.Process(target=_send, args=(inbound.getsockname(), began + seconds))
        sender.start()
        source, _ = inbound.accept()
        with source, socket.create_connection(outbound.getsockname()) as target:
            through = _relay(source, target, file.fileno(), messages_per_sync * _BODY_BYTES)
        ended = time.monotonic()
        sender.join()
        receiver.join()
        return through / _BODY_BYTES / (ended - began)


def main(directory: Path) -> None:
    """Print one JSON object a number of messages in each sync."""
    for messages_per_sync in (4, 8, 16, 32):
        relay = measure(directory, messages_per_sync=messages_per_sync)
        disk = measure_disk(directory, _BODY_BYTES, messages_per_sync=messages_per_sync)
        figures = {"messages_per_sync": messages_per_sync, "relay": round(relay), "disk": round(disk)}
        print(json.dumps(figures | {"relay_to_disk": round(relay / disk, 2)}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir()))
