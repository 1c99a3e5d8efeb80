"""`ambermq audit` as a person runs it."""

import json
from pathlib import Path

import pytest

from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import Peer
from ambermq.tools.audit.chain import audit_files
from ambermq.tools.audit.writer import AuditWriter
from ambermq.tools.config.audit_settings import AuditConfig
from tests.tools.conftest import Run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with three events."""
    writer = AuditWriter(tmp_path / "audit", AuditConfig(), clock_s=lambda: 1.0)
    peer = Peer(name="10.0.0.7:4000")
    writer.note("login", Identity("alice"), peer, mechanism="SCRAM-SHA-256")
    writer.note("login-failed", Identity("bob"), peer, reason="wrong password")
    writer.note("purge", Identity("alice"), peer, queue="orders")
    writer.close()
    (tmp_path / "manifest").touch()
    return tmp_path


def test_events_are_shown(run: Run, data: Path) -> None:
    lines = run("audit", "show", "--data", data).stdout.splitlines()
    assert lines[1] == '1970-01-01T00:00:01.000000Z login-failed bob 10.0.0.7:4000 reason="wrong password"'
    assert len(lines) == 3


def test_text_of_a_stranger_moves_no_cursor(run: Run, tmp_path: Path) -> None:
    """Signs of eight bits that begin a sequence, and those that turn the direction, are escaped for people."""
    writer = AuditWriter(tmp_path / "audit", AuditConfig())
    writer.note("login-failed", Identity("a\x9b2J\u202eb"), Peer(name="p"), reason="x")
    writer.close()
    (tmp_path / "manifest").touch()
    line = run("audit", "show", "--data", tmp_path).stdout.rstrip("\n")
    assert line.isprintable()
    assert '"a\\x9b2J\\u202eb"' in line


def test_events_are_chosen_by_user_name_and_number(run: Run, data: Path) -> None:
    def names(*options: str) -> list[str]:
        done = run("audit", "show", "--data", data, "--output", "json", *options)
        return [json.loads(line)["event"] for line in done.stdout.splitlines()]

    assert names("--user", "alice") == ["login", "purge"]
    assert names("--event", "login-failed") == ["login-failed"]
    assert names("--limit", "1") == ["purge"]


def test_a_whole_chain_is_verified(run: Run, data: Path) -> None:
    done = run("audit", "verify", "--data", data, "--output", "json")
    time_ = "1970-01-01T00:00:01.000000Z"
    assert json.loads(done.stdout) == {"events": 3, "files": 1, "from": time_, "to": time_}


def test_a_changed_line_exits_5(run: Run, data: Path) -> None:
    (path,) = audit_files(data / "audit")
    path.write_bytes(path.read_bytes().replace(b'"bob"', b'"eve"'))
    done = run("audit", "verify", "--data", data)
    assert done.exit_code == 5
    assert f"{path}:3: the audit log was changed" in done.stderr


def test_a_directory_without_an_audit_log_exits_6(run: Run, tmp_path: Path) -> None:
    (tmp_path / "manifest").touch()
    assert run("audit", "show", "--data", tmp_path).exit_code == 6
