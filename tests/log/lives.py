"""A log on a simulated disk that lives, dies and recovers, and what may be asked of it then."""

import os
import random

from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.interface import Storage
from ambermq.log.storage.worker_threads import InlineWorkers
from ambermq.log.write.log import Log

__all__ = ["CONFIG", "DIRECTORY", "Life", "SharingWorkers", "body_of", "recovered_bodies"]

DIRECTORY = "/data"
CONFIG = LogConfig(
    segment_bytes_min=8192,
    segment_bytes_max=8192,
    batch_bytes_target=4096,
    batch_bytes_max=16384,
    hot_bytes_max=4096,
    hot_large_bytes_max=4096,
    cold_bytes_max=4096,
    ballast_bytes=0,
)


_FD = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


class SharingWorkers(InlineWorkers):
    """Inline workers that share one descriptor: a log that dies in a test gives none back."""

    def __init__(self) -> None:
        self._fd = _FD
        self._lanes = []

    def close(self) -> None:
        self._lanes.clear()


def body_of(number: int, size: int) -> bytes:
    """A body that no other number has."""
    return random.Random(number).randbytes(size)


class Life:
    """One log from its recovery to its end."""

    def __init__(self, storage: Storage, directory: str = DIRECTORY, *, config: LogConfig = CONFIG) -> None:
        self.storage = storage
        self.recovery = Recovery.open(storage, directory, config, 1_000_000)
        horizon = self.recovery.manifest.horizon
        batches = self.recovery.batches(horizon.offset if horizon else 0)
        self.found = [record for batch in batches for record in batch.record_list()]
        self.log: Log = self.recovery.log(SharingWorkers())
        self.written: dict[int, bytes] = {}
        """Bodies by offset, in the order they were written."""

    def write(self, bodies: list[bytes]) -> list[int]:
        """Write one batch of one record a body; return their offsets."""
        now_us = 1_000_000 + self.log.log_end
        offsets = [
            self.log.draft.add(7, timestamp_us=now_us, body=body, id_hash=1 + len(body), meta=b"m" * (len(body) % 5))
            for body in bodies
        ]
        self.log.draft.end_command()
        self.log.write(now_us)
        self.written.update(zip(offsets, bodies, strict=True))
        return offsets

    def sync(self) -> None:
        """Make all that is written durable."""
        self.log.request_sync()
        self.log.completed()

    def bodies(self, offsets: list[int]) -> list[bytes]:
        """Return bodies, waiting where they are cold."""
        found = self.log.bodies.get_run(offsets)
        for _ in range(3):
            if found is None:
                self.log.completed()
                found = self.log.bodies.get_run(offsets)
        assert found is not None
        return [bytes(body) for body in found]


def recovered_bodies(life: Life) -> dict[int, bytes]:
    """Return every record that a recovery found, with its body as the log now reads it."""
    offsets = [record.offset for record in life.found]
    return dict(zip(offsets, life.bodies(offsets), strict=True))
