"""`python -m bench.limits.disk_limit [DIRECTORY]`: what the disk itself allows for messages of some sizes.

A file is written ahead with zeros, as a segment of the log is. Then each write of so many messages is followed by
fdatasync; the next write is made while the disk syncs. So this is the rate of a log that costs nothing but its bytes.
"""

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

__all__ = ["measure"]

_FILE_BYTES: Final = 256 << 20
_ZEROS: Final = bytes(1 << 20)
_SECONDS: Final = 5.0


def measure(directory: Path, body_bytes: int, *, messages_per_sync: int, seconds: float = _SECONDS) -> float:
    """Return messages a second."""
    body = os.urandom(body_bytes)
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        number = file.fileno()
        for position in range(0, _FILE_BYTES, len(_ZEROS)):
            os.pwrite(number, _ZEROS, position)
        os.fsync(number)
        written, position, wanted, has_ended = 0, 0, threading.Event(), threading.Event()
        has_ended.set()
        ends = False

        def sync() -> None:
            while True:
                wanted.wait()
                wanted.clear()
                if ends:
                    return
                os.fdatasync(number)
                has_ended.set()

        thread = threading.Thread(target=sync)
        thread.start()
        try:
            began = time.monotonic()
            while time.monotonic() - began < seconds:
                if position + body_bytes * messages_per_sync > _FILE_BYTES:
                    position = 0
                os.pwritev(number, [body] * messages_per_sync, position)
                position += body_bytes * messages_per_sync
                has_ended.wait()
                has_ended.clear()
                wanted.set()
                written += messages_per_sync
            has_ended.wait()
            return written / (time.monotonic() - began)
        finally:
            ends = True
            wanted.set()
            thread.join()


def main(directory: Path) -> None:
    """Print one JSON object a size."""
    for body_bytes, messages_per_sync in ((64 << 10, 4), (64 << 10, 16), (64 << 10, 32), (1 << 10, 192), (1 << 10, 1)):
        rate = measure(directory, body_bytes, messages_per_sync=messages_per_sync)
        figures = {"body_bytes": body_bytes, "messages_per_sync": messages_per_sync, "messages_per_s": round(rate)}
        print(json.dumps(figures | {"mb_per_s": round(rate * body_bytes / 1e6)}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir()))
