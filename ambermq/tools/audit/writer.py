"""The writer of the audit log: a bounded queue, and a thread that writes and syncs.

Rule 1. `note` never waits. Above `queue_max` events are counted, and the next line says how many are missing.
Rule 2. What cannot be written stays in the queue and is tried again each second. `failure` has the reason meanwhile.
Rule 3. Events are durable within two seconds, and when the writer closes.
Rule 4. Failed logins, and logins without a name of their own, are counted above ten in a minute and address: a stranger
        cannot push the oldest files out.
"""

import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Condition, Thread
from typing import Any, Final, final

from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.auth.rules import ANONYMOUS
from ambermq.tools.audit.chain import FIRST, audit_files, encode_line, hash_of, last_hash, path_of_file
from ambermq.tools.config.audit_settings import AuditConfig

__all__ = ["AUDIT_DIRECTORY", "AuditWriter"]

AUDIT_DIRECTORY: Final = "audit"
LOGIN: Final = "login"
LOGIN_FAILED: Final = "login-failed"
_SYNC_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 10.0
_LOCAL_USER: Final = "local"
_FAILURES_MAX: Final = 10
"""Lines about logins of strangers of an address in a minute; further ones are counted."""
_ADDRESSES_MAX: Final = 10_000
"""The addresses whose failed logins are counted."""


@final
class AuditWriter:
    """The audit log of one data directory. Any thread may call `note`."""

    def __init__(
        self,
        directory: Path,
        config: AuditConfig,
        *,
        failed: Callable[[str], None] = lambda _reason: None,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        """Begin the log; `failed` is called in the thread with the reason when writing begins to fail.

        The thread makes the directory, so that a full disk stops no broker.
        """
        self._directory = directory
        self._config = config
        self._failed = failed
        self._clock_s = clock_s
        self._queue: deque[dict[str, Any]] = deque()
        self._condition = Condition()
        self._missing = 0
        self._failures: dict[str, tuple[int, int]] = {}
        """Address to the minute of its strangers' logins and their number."""
        self._is_closing = False
        self._number, self._prev, self._size = 0, FIRST, 0
        """The file to write, from 1; 0 before it is known."""
        self._fd = -1
        self.failure = ""
        """Why the log cannot be written; empty while it can."""
        self._thread = Thread(target=self._run, name="ambermq-audit", daemon=True)
        self._thread.start()

    def note(self, event: str, identity: Identity | None, peer: Peer | None, /, **values: Any) -> None:
        """Append an event; see AuditTrail."""
        is_stranger = event == LOGIN and identity is not None and identity.username == ANONYMOUS
        if (is_stranger or event == LOGIN_FAILED) and not self._is_told(peer, values):
            return
        line: dict[str, Any] = {"time": self._time(), "event": event}
        if identity is not None:
            line["user"] = _LOCAL_USER if identity.is_local else self._cut(identity.username or "")
        if peer is not None:
            line["peer"] = self._cut(peer.name)
        line |= {name: self._cut(value) for name, value in values.items() if value is not None}
        with self._condition:
            if len(self._queue) >= self._config.queue_max:
                self._missing += 1
                return
            if self._missing:
                line["missing_before"], self._missing = self._missing, 0
            self._queue.append(line)
            self._condition.notify()

    def _is_told(self, peer: Peer | None, values: dict[str, Any]) -> bool:
        """Count a login of a stranger; return whether it gets a line: the first ten of a minute and an address do.

        The next line of the address has the number of the others.
        """
        address, minute = "" if peer is None else peer.address, int(self._clock_s() // 60)
        with self._condition:
            first, count = self._failures.get(address, (minute, 0))
            if first != minute:
                if count > _FAILURES_MAX:
                    values["more_before"] = count - _FAILURES_MAX
                count = 0
            if address not in self._failures and len(self._failures) >= _ADDRESSES_MAX:
                self._failures.clear()
            self._failures[address] = (minute, count + 1)
        return count < _FAILURES_MAX

    def close(self) -> None:
        """Write and sync what waits, and end the thread; a disk that fails is given up after some seconds."""
        with self._condition:
            self._is_closing = True
            self._condition.notify()
        self._thread.join(_CLOSE_SECONDS)

    def _time(self) -> str:
        return datetime.fromtimestamp(self._clock_s(), UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def _cut(self, value: Any) -> Any:
        """Return a value as the log holds it: text is cut, and what JSON cannot say is text."""
        if value is None or isinstance(value, bool | int | float):
            return value
        text = str(value)
        text = text.encode("utf-8", "backslashreplace").decode()
        return text if len(text) <= self._config.text_max else f"{text[: self._config.text_max]}…"

    def _last_place(self) -> tuple[int, str, int]:
        """Return the file to continue, the hash of the last line, and the file's size."""
        files = audit_files(self._directory)
        prev = next((found for path in reversed(files) if (found := last_hash(path)) is not None), FIRST)
        if not files:
            return 1, prev, 0
        last = files[-1]
        size, number = last.stat().st_size, int(last.stem)
        with last.open("rb") as file:
            file.seek(max(size - 1, 0))
            is_whole = file.read() in {b"", b"\n"}
        # A line that a kill has cut stays as it is, and the next file continues the chain.
        return (number, prev, size) if is_whole and size < self._config.file_bytes else (number + 1, prev, 0)

    def _run(self) -> None:
        synced_s, is_dirty = time.monotonic(), False
        while True:
            with self._condition:
                if not self._queue and not self._is_closing:
                    self._condition.wait(_SYNC_SECONDS)
                is_closing = self._is_closing
            try:
                is_dirty = self._write_all() or is_dirty
                if is_dirty and (is_closing or time.monotonic() - synced_s >= _SYNC_SECONDS):
                    os.fdatasync(self._fd)
                    synced_s, is_dirty = time.monotonic(), False
                self.failure = ""
            except OSError as error:
                self._fail(error)
                if is_closing:
                    break
                time.sleep(_SYNC_SECONDS)
            if is_closing and not self._queue:
                break
        self._close_file()

    def _fail(self, error: OSError) -> None:
        """Report the first failure, and try another file next."""
        reason = f"{self._directory}: {error}"
        if not self.failure:
            self._failed(reason)
        self.failure = reason
        self._number = 0
        with suppress(OSError):
            self._close_file()

    def _write_all(self) -> bool:
        """Write what waits; return whether anything was written."""
        count = 0
        if self._queue and not self._number:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            self._number, self._prev, self._size = self._last_place()
        while self._queue:
            line = encode_line(self._queue[0], self._prev)
            self._open_file(len(line) + 1)
            written = os.write(self._fd, line + b"\n")
            if written != len(line) + 1:
                raise OSError(f"{written} of {len(line) + 1} bytes were written")
            self._size += written
            self._prev = hash_of(line)
            self._queue.popleft()
            count += 1
        return count > 0

    def _open_file(self, length: int) -> None:
        """Open the file for a line, the next one if the line does not fit; delete the oldest files."""
        if self._fd >= 0 and self._size + length <= self._config.file_bytes:
            return
        if self._fd >= 0:
            os.fdatasync(self._fd)
            self._close_file()
            self._number, self._size = self._number + 1, 0
        path = path_of_file(self._directory, self._number)
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._delete_oldest()

    def _delete_oldest(self) -> None:
        files = audit_files(self._directory)
        total = sum(path.stat().st_size for path in files)
        for path in files[:-1]:
            if total <= self._config.bytes_max - self._config.file_bytes:
                return
            total -= path.stat().st_size
            path.unlink()

    def _close_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
