"""The writer of the audit log: what it writes, when it is durable, and what a bad disk does."""

import errno
import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import Peer
from ambermq.tools.audit.chain import Fault, Line, audit_files, walk
from ambermq.tools.audit.writer import AuditWriter
from ambermq.tools.config.audit_settings import AuditConfig

_ALICE = Identity("alice")
_PEER = Peer(address="10.0.0.7", name="10.0.0.7:4000", is_local=False)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "audit"


def _events(directory: Path) -> list[dict[str, Any]]:
    found = list(walk(directory))
    assert not [one for one in found if isinstance(one, Fault)]
    return [one.values for one in found if isinstance(one, Line)]


def _eventually(is_so: Any) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_line_says_who_did_what_from_where(directory: Path) -> None:
    writer = AuditWriter(directory, AuditConfig(), clock_s=lambda: 0.25)
    writer.note("purge", _ALICE, _PEER, queue="orders", count=3, vhost="default", absent=None)
    writer.note("login-failed", None, _PEER, reason="wrong password")
    writer.note("acl", Identity(is_local=True), Peer())
    writer.close()
    (path,) = audit_files(directory)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    time_ = "1970-01-01T00:00:00.250000Z"
    assert _events(directory) == [
        {"time": time_, "event": "purge", "user": "alice", "peer": "10.0.0.7:4000"}
        | {"queue": "orders", "count": 3, "vhost": "default"},
        {"time": time_, "event": "login-failed", "peer": "10.0.0.7:4000", "reason": "wrong password"},
        {"time": time_, "event": "acl", "user": "local", "peer": "local"},
    ]


def test_what_a_client_names_is_cut_and_makes_no_line(directory: Path) -> None:
    writer = AuditWriter(directory, AuditConfig(text_max=20))
    writer.note("login-failed", Identity('x","event":"forged\n{"' + "y" * 100), _PEER, container="a\nb\x1b[2J\udcff")
    writer.close()
    (event,) = _events(directory)
    assert event["event"] == "login-failed"
    assert event["user"] == 'x","event":"forged\n{"'[:20] + "…"
    assert event["container"] == "a\nb\x1b[2J\\udcff"
    (path,) = audit_files(directory)
    assert path.read_bytes().count(b"\n") == 1


def test_a_new_writer_continues_the_chain(directory: Path) -> None:
    for number in range(3):
        writer = AuditWriter(directory, AuditConfig())
        writer.note("start", None, None, number=number)
        writer.close()
    assert [event["number"] for event in _events(directory)] == [0, 1, 2]
    assert len(audit_files(directory)) == 1


def test_a_line_that_a_kill_has_cut_stays_and_the_next_file_continues(directory: Path) -> None:
    writer = AuditWriter(directory, AuditConfig())
    writer.note("first", None, None)
    writer.close()
    (path,) = audit_files(directory)
    path.write_bytes(path.read_bytes() + b'{"time":"20')
    writer = AuditWriter(directory, AuditConfig())
    writer.note("second", None, None)
    writer.close()
    assert [event["event"] for event in _events(directory)] == ["first", "second"]
    assert len(audit_files(directory)) == 2


def test_files_are_bounded_and_the_oldest_go(directory: Path) -> None:
    config = AuditConfig(bytes_max=4000, file_bytes=1000)
    writer = AuditWriter(directory, config)
    for number in range(200):
        writer.note("event", _ALICE, _PEER, number=number)
    writer.close()
    files = audit_files(directory)
    assert 2 <= len(files) <= 4
    assert all(path.stat().st_size <= 1000 for path in files)
    assert _events(directory)[-1]["number"] == 199


class _Disk:
    """os.write as a disk that is full until it is not."""

    def __init__(self) -> None:
        self.is_full = True
        self._write = os.write

    def write(self, number: int, data: bytes) -> int:
        if self.is_full and threading.current_thread().name == "ambermq-audit":
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._write(number, data)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Disk]:
    full = _Disk()
    monkeypatch.setattr(os, "write", full.write)
    yield full
    full.is_full = False


def test_a_full_disk_is_reported_once_and_nothing_is_lost(directory: Path, disk: _Disk) -> None:
    reasons: list[str] = []
    writer = AuditWriter(directory, AuditConfig(), failed=reasons.append)
    writer.note("first", None, None)
    _eventually(lambda: writer.failure)
    time.sleep(1.2)
    writer.note("second", None, None)
    disk.is_full = False
    _eventually(lambda: not writer.failure)
    writer.close()
    assert len(reasons) == 1
    assert "No space left on device" in reasons[0]
    assert [event["event"] for event in _events(directory)] == ["first", "second"]


def test_logins_without_a_name_push_nothing_out(directory: Path) -> None:
    """A stranger of a broker that allows anonymous clients may connect a thousand times; a user's logins all count."""
    writer = AuditWriter(directory, AuditConfig(), clock_s=lambda: 1.0)
    for _ in range(1000):
        writer.note("login", Identity("anonymous"), _PEER, mechanism="ANONYMOUS")
    for _ in range(20):
        writer.note("login", _ALICE, _PEER, mechanism="PLAIN")
    writer.close()
    assert [event["user"] for event in _events(directory)] == ["anonymous"] * 10 + ["alice"] * 20


def test_what_the_queue_has_no_room_for_is_counted(directory: Path, disk: _Disk) -> None:
    writer = AuditWriter(directory, AuditConfig(queue_max=5))
    for number in range(12):
        writer.note("event", None, None, number=number)
    disk.is_full = False
    _eventually(lambda: not writer._queue)
    writer.note("event", None, None, number=12)
    writer.close()
    events = _events(directory)
    assert [event["number"] for event in events] == [0, 1, 2, 3, 4, 12]
    assert events[-1]["missing_before"] == 7


def test_note_does_not_wait_for_the_disk(directory: Path, disk: _Disk) -> None:
    writer = AuditWriter(directory, AuditConfig())
    began = time.monotonic()
    for _ in range(1000):
        writer.note("event", _ALICE, _PEER)
    assert time.monotonic() - began < 1
    disk.is_full = False
    writer.close()


def test_events_are_on_the_disk_soon(directory: Path) -> None:
    writer = AuditWriter(directory, AuditConfig())
    writer.note("event", None, None)
    _eventually(lambda: audit_files(directory) and json.loads(audit_files(directory)[0].read_bytes() or b"{}"))
    writer.close()


def test_a_disk_without_room_for_the_directory_stops_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first start of this version on a full disk: the events wait until there is room."""
    full = [True]
    make = Path.mkdir

    def mkdir(path: Path, *arguments: Any, **options: Any) -> None:
        if full[0] and path == directory:
            raise OSError(errno.ENOSPC, "No space left on device")
        make(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    writer = AuditWriter(directory, AuditConfig())
    writer.note("broker-started", None, None)
    _eventually(lambda: writer.failure)
    full[0] = False
    _eventually(lambda: not writer.failure)
    writer.close()
    assert [event["event"] for event in _events(directory)] == ["broker-started"]


def test_the_hash_of_a_long_last_line_needs_no_whole_file(directory: Path) -> None:
    """Lines that are longer than one read of the end, and many short ones."""
    writer = AuditWriter(directory, AuditConfig(text_max=200_000))
    for text in ("a" * 150_000, "b", "c" * 100_000):
        writer.note("event", None, None, text=text)
    writer.close()
    again = AuditWriter(directory, AuditConfig())
    again.note("last", None, None)
    again.close()
    assert [event["event"] for event in _events(directory)] == ["event", "event", "event", "last"]
