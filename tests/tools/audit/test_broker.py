"""What a running broker writes to its audit log."""

import json
import time
from pathlib import Path

from proton.reactor import DurableSubscription

from ambermq.tools.audit.chain import Fault, Line, walk
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.interop.proton_peer import ProtonPeer
from tests.tools.conftest import Run


def test_a_broker_notes_logins_changes_and_refusals(tmp_path: Path, run: Run) -> None:
    """Who did what from where, in order; what only looks is not noted. A log line, too, names who has ended a link."""
    broker = ChildBroker(tmp_path / "data", arguments=("--user", "alice:secret", "--log-format", "json"))
    broker.start()
    place = broker.url.removeprefix("amqp://")
    alice = f"amqp://alice:secret@{place}"
    try:
        assert run("queue", "declare", "orders", "--url", alice).exit_code == 0
        assert run("queue", "list", "--url", alice).exit_code == 0
        assert run("queue", "purge", "orders", "--url", alice).exit_code == 0
        assert run("queue", "delete", "absent", "--url", alice).exit_code != 0
        peer = ProtonPeer(alice, allowed_mechs="PLAIN")
        sender, receiver = peer.sender("orders"), peer.receiver("orders", credit=1, options=DurableSubscription())
        sender.send("kept")
        receiver.wait(1)
        receiver.link.detach()
        sender.send("waiting")
        peer.drop()
        listed = run("links", "list", "--output", "ndjson", "--url", alice).stdout.splitlines()
        (name,) = [row["name"] for row in map(json.loads, listed) if row["state"] == "suspended"]
        assert run("links", "close", name, "--url", alice).exit_code == 0
        assert run("queue", "list", "--url", f"amqp://alice:wrong@{place}").exit_code == 9
    finally:
        broker.stop()
    found = list(walk(tmp_path / "data" / "audit"))
    assert not [one for one in found if isinstance(one, Fault)]
    events = [one.values for one in found if isinstance(one, Line)]
    assert (events[0]["event"], events[-1]["event"]) == ("broker-started", "broker-stopped")
    changes = [one for one in events if one["event"] == "change" and one["user"] == "alice"]
    assert [(one["operation"], one["kind"], one["name"]) for one in changes] == [
        ("CREATE", "queue", "orders"),
        ("PURGE", "queue", "orders"),
        ("DELETE", "link", name),
    ]
    lines = [json.loads(line) for line in broker.stderr_path.read_text().splitlines()]
    (closed,) = [one for one in lines if one["event"] == "closed on request"]
    assert (closed["user"], closed["noun"], closed["name"]) == ("alice", "link", name)
    (refused,) = [one for one in events if one["event"] == "change-refused"]
    assert (refused["operation"], refused["name"], refused["vhost"]) == ("DELETE", "absent", "default")
    logins = [one for one in events if one["event"] == "login" and one["user"] == "alice"]
    assert len(logins) == 7
    failed = [one for one in events if one["event"] == "login-failed"]
    assert failed
    assert failed[0]["user"] == "alice"
    assert "wrong" not in str([one for one in events if one not in failed])
    assert "secret" not in str(events)


def test_failed_logins_of_an_address_are_counted(tmp_path: Path) -> None:
    """A flood of guesses leaves ten lines a minute, and then the number of the others."""
    from ambermq.protocol.auth.identity import Identity
    from ambermq.protocol.auth.peer import Peer
    from ambermq.tools.audit.writer import AuditWriter
    from ambermq.tools.config.audit_settings import AuditConfig

    times = [0.0]
    writer = AuditWriter(tmp_path / "audit", AuditConfig(), clock_s=lambda: times[0])
    peer = Peer(address="10.0.0.7", name="10.0.0.7:1")
    for _ in range(1400):
        writer.note("login-failed", Identity("bob"), peer, reason="wrong password")
    times[0] = 61.0
    writer.note("login-failed", Identity("bob"), peer, reason="wrong password")
    writer.close()
    events = [one.values for one in walk(tmp_path / "audit") if isinstance(one, Line)]
    assert len(events) == 11
    assert events[-1]["more_before"] == 1390


def _unwritable(tmp_path: Path, *, required: bool) -> ChildBroker:
    """Return a broker whose audit log cannot be written: a file has the name of its directory."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "audit").write_text("")
    config = tmp_path / "broker.toml"
    config.write_text(f"[audit]\nrequired = {str(required).lower()}\n")
    return ChildBroker(tmp_path / "data", arguments=("--config", str(config)))


def test_a_required_audit_log_that_cannot_be_written_ends_the_broker(tmp_path: Path) -> None:
    """Exit code 74, and the reason is in the log."""
    broker = _unwritable(tmp_path, required=True)
    broker.start()
    assert broker.wait() == ExitCode.LOG_FAILED
    assert "the audit log is required" in broker.stderr_path.read_text()


def test_a_broker_goes_on_without_its_audit_log(tmp_path: Path, run: Run) -> None:
    """The log says so once, and what waits is written when that is possible again."""
    broker = _unwritable(tmp_path, required=False)
    broker.start()
    try:
        assert run("queue", "declare", "orders", "--url", broker.url).exit_code == 0
        deadline = time.monotonic() + 20
        while "audit log not written" not in broker.stderr_path.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (tmp_path / "data" / "audit").unlink()
    finally:
        assert broker.stop() == 0
    events = [one.values["event"] for one in walk(tmp_path / "data" / "audit") if isinstance(one, Line)]
    assert events == ["broker-started", "change", "broker-stopped"]


def test_useless_limits_of_the_audit_log_are_refused(tmp_path: Path, run: Run) -> None:
    """A file of one byte, or a queue without room."""
    for line in ("bytes_max = 1000", "file_bytes = 1", "queue_max = 0", "text_max = 0"):
        config = tmp_path / "broker.toml"
        config.write_text(f"[audit]\n{line}\n")
        result = run("serve", "--data", tmp_path / "data", "--config", config)
        assert result.exit_code == ExitCode.USAGE
        assert line.partition(" ")[0] in result.stderr
