"""`ambermq serve` as a process: its one line, its ends, its users."""

import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.engine.selectors import selector
from ambermq.log.errors import LogFailed
from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.tools.broker import serve as serve_module
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.broker.retention_notice import grace_seconds, notice_path
from ambermq.tools.broker.serve import Broker
from ambermq.tools.broker.vhost_store import VhostStore
from ambermq.tools.config.retention_schedule import RetentionConfig
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.errors import ToolError, translated
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

SERVE = [sys.executable, "-m", "ambermq", "serve", "--port", "0"]


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ChildBroker]:
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    yield broker
    broker.kill()


def failed(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a serve that cannot."""
    command = [*SERVE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_standard_output_is_the_ready_line_and_nothing_else(run: Run, tmp_path: Path, number: signal.Signals) -> None:
    """From start to a good end there is one line, whatever is done meanwhile; a signal is exit code 0."""
    data = tmp_path / "new" / "data"
    command = [*SERVE, "--data", str(data), "--log-level", "debug"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready = process.stdout.readline().decode()
        word, url, where = ready.split()
        assert (word, where) == ("ready", f"data={data}")
        assert run("send", "q", "x", "--url", url).exit_code == ExitCode.OK
        assert run("send", "/no/such", "x", "--url", url).exit_code == ExitCode.NOT_FOUND
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest) == (ExitCode.OK, b"")
    assert b"serving" in errors
    assert b"stopped" in errors
    assert b"Traceback" not in errors


def test_the_parser_of_selectors_is_built_before_the_broker_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ready when recovery ends, however that ends: so the first selector of a client does not wait for it."""

    def recover(_store: VhostStore) -> None:
        raise ToolError("no recovery")

    selector._parser.cache_clear()
    monkeypatch.setattr(VhostStore, "recover", recover)
    monkeypatch.setattr(serve_module, "raise_open_files", lambda: 1024)
    for name in ("tune_interpreter", "warn_of_slowness"):
        monkeypatch.setattr(serve_module, name, lambda: None)
    with pytest.raises(ToolError, match="no recovery"):
        Broker(str(tmp_path), (ListenerAddress("amqp", "127.0.0.1"),), Settings()).run()
    assert selector._parser.cache_info().currsize == 1


def test_a_broker_can_be_stopped_right_after_its_ready_line(tmp_path: Path) -> None:
    """A signal right behind the ready line is a good end already."""
    broker = ChildBroker(tmp_path / "data")
    for _ in range(3):
        broker.start()
        assert broker.stop() == ExitCode.OK


def test_the_lock_file_names_its_holder(child: ChildBroker) -> None:
    """pid, URL and socket, as the broker's own commands read them, and which file it is: copies of it hold nothing."""
    lock, path = child.directory / "lock", str(child.directory / "broker.sock")
    expected = {"pid": child.pid, "url": child.url, "inode": lock.stat().st_ino, "socket": path}
    assert json.loads(lock.read_text()) == expected


def test_a_second_broker_is_one_clear_line_and_exit_code_1(child: ChildBroker) -> None:
    """The line names directory, pid and URL of the first."""
    second = failed("--data", child.directory)
    holder, advice = f"pid {child.pid}, url {child.url}", "stop that broker first, or use another directory"
    assert (second.returncode, second.stdout) == (ExitCode.FAILED, "")
    assert second.stderr.splitlines() == [
        f"error: {child.directory}: the directory is locked by another broker: found {holder}; {advice}"
    ]


def test_what_was_accepted_is_there_after_a_kill(run: Run, child: ChildBroker) -> None:
    """SIGKILL loses nothing accepted, and the next start serves it."""
    run("send", "kept", "x", "--count", 3, "--url", child.url)
    child.kill()
    assert run("queue", "list", "--data", child.directory).exit_code == ExitCode.CANNOT_CONNECT
    child.start()
    assert run("receive", "kept", "--count", 3, "--data", child.directory).stdout == "x\nx\nx\n"


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    """Exit code 1, the address, what to do; nothing is left behind, and a log that was there has no new epoch."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = failed("--data", tmp_path / "data", "--port", port)
    assert (result.returncode, result.stdout) == (ExitCode.FAILED, "")
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"error: amqp://127.0.0.1:{port}: cannot listen: found ")
    assert last.endswith("; use another --host or --port; port 0 chooses a free one")
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_leaves_a_log_as_it_was(tmp_path: Path) -> None:
    """The port is bound before the directory is touched: no epoch, no file, no byte."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    assert broker.stop() == ExitCode.OK
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        result = failed("--data", tmp_path / "data", "--port", listener.getsockname()[1])
    assert result.returncode == ExitCode.FAILED
    assert {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()} == before


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """Exit code 1 and its path."""
    (tmp_path / "file").write_text("")
    result = failed("--data", tmp_path / "file" / "data")
    assert (result.returncode, result.stdout) == (ExitCode.FAILED, "")
    assert result.stderr.startswith(f"error: {tmp_path}/file/data: the directory cannot be created: found ")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A mount for reading only, with the directory `data` of a broker that has stopped. It needs root."""
    source, target = tmp_path / "source", tmp_path / "mounted"
    broker = ChildBroker(source / "data")
    for one in (source, target):
        one.mkdir()
    broker.start()
    assert broker.stop() == ExitCode.OK
    bound = subprocess.run(["mount", "--bind", str(source), str(target)], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip(f"a mount needs root: {bound.stderr.decode().strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(target)], check=True, capture_output=True)
        yield target
    finally:
        subprocess.run(["umount", str(target)], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["data", "new"])
def test_a_read_only_mount_is_told_as_such(read_only: Path, name: str) -> None:
    """The advice was to free space. A directory that exists and one that does not are refused alike."""
    result = failed("--data", read_only / name)
    assert (result.returncode, result.stdout) == (ExitCode.LOG_FAILED, "")
    (line,) = result.stderr.splitlines()
    assert "Read-only file system" in line
    assert line.endswith("; the file system is mounted read-only: mount it for writing, or use another directory")


def test_a_log_that_cannot_be_written_is_exit_code_74(tmp_path: Path) -> None:
    """A service manager can tell a sick disk from everything else."""
    result = subprocess.run(
        [*SERVE, "--data", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)),
        check=False,
    )
    assert (result.returncode, result.stdout) == (ExitCode.LOG_FAILED, "")
    assert result.stderr.splitlines()[-1].endswith("; check the disk and its free space before a restart")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (errno.ENOSPC, "free space on the disk of the directory"),
        (errno.EDQUOT, "free space on the disk of the directory"),
        (errno.EACCES, "give the broker's user write permission in the directory"),
        (errno.EROFS, "the file system is mounted read-only: mount it for writing, or use another directory"),
        (errno.EIO, "the disk reports errors: check it and the kernel's log before a restart"),
        (errno.EMFILE, "raise the limit of open files"),
    ],
)
def test_a_failed_log_gives_the_advice_that_fits(error: int, advice: str) -> None:
    """Exit code 74 in each case; the errno of the failure decides the advice, however deep it is."""
    failure, between = LogFailed("recovery failed"), LogFailed("write failed")
    failure.__cause__, between.__cause__ = between, OSError(error, os.strerror(error))
    told = translated(failure)
    assert told.exit_code == ExitCode.LOG_FAILED
    assert advice in told.message


def test_a_damaged_log_is_exit_code_5_and_names_file_and_position(child: ChildBroker) -> None:
    """The broker refuses to start on it."""
    child.stop()
    manifest = child.directory / "MANIFEST"
    manifest.write_bytes(manifest.read_bytes().replace(b"{", b"[", 1))
    result = failed("--data", child.directory)
    assert (result.returncode, result.stdout) == (ExitCode.DAMAGED, "")
    assert f"{manifest} is damaged at position " in result.stderr


def test_users_come_in_by_their_password_alone(run: Run, tmp_path: Path) -> None:
    """With users no client is anonymous; a wrong name or password is refused."""
    config = tmp_path / "broker.toml"
    config.write_text("[users]\nbob = 'w0rd'\n")
    broker = ChildBroker(tmp_path / "data", arguments=["--user", "alice:se:cret", "--config", str(config)])
    broker.start()
    try:
        place = broker.url.removeprefix("amqp://")
        for login in ("alice:se%3Acret", "bob:w0rd"):
            assert run("send", "q", "x", "--url", f"amqp://{login}@{place}").exit_code == ExitCode.OK
        for login in ("alice:wrong@", "carol:w0rd@", "bob@", ""):
            result = run("send", "q", "x", "--url", f"amqp://{login}{place}")
            assert result.exit_code == ExitCode.NOT_AUTHENTICATED
            assert "SASL code" not in result.stderr
            assert "w0rd" not in result.stderr
    finally:
        broker.kill()


def test_addresses_are_created_unless_switched_off(run: Run, tmp_path: Path) -> None:
    """--no-auto-create refuses an address that was not declared; the flag beats the file."""
    config = tmp_path / "broker.toml"
    config.write_text("[engine]\nauto_create = true\n")
    broker = ChildBroker(tmp_path / "data", arguments=["--no-auto-create", "--config", str(config)])
    broker.start()
    try:
        assert run("send", "q", "x", "--url", broker.url).exit_code == ExitCode.NOT_FOUND
        run("queue", "declare", "q", "--url", broker.url)
        assert run("send", "q", "x", "--url", broker.url).exit_code == ExitCode.OK
    finally:
        broker.kill()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--host", "0.0.0.0"),
            "no client could log in on 0.0.0.0: add one with `ambermq user add`, or give --anonymous",
        ),
        (("--no-anonymous",), "no client could log in on 127.0.0.1"),
        (("--user", "alice"), "--user: expected NAME:PASSWORD"),
        (("--user", ":x"), "--user: expected NAME:PASSWORD"),
        (("--user", "anonymous:x", "--anonymous"), "the name 'anonymous' is reserved"),
        (("--user", "local:x"), "the name 'local' is reserved"),
        (("--user", "\u00aa:x"), "SASLprep"),
        (("--port", "70000"), "70000 is not in the range"),
        (("--config", "/nowhere.toml"), "/nowhere.toml"),
    ],
)
def test_wrong_command_lines_touch_nothing(run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """Exit code 2 before the directory is made."""
    result = run("serve", "--data", tmp_path / "data", *arguments)
    assert result.exit_code == ExitCode.USAGE
    assert message in result.stderr
    assert not (tmp_path / "data").exists()


def test_permissions_are_for_users(run: Run, tmp_path: Path) -> None:
    """An unknown user in [permissions] is exit code 2; users of the command line count too."""
    config = tmp_path / "broker.toml"
    config.write_text('[users]\nbob = "word"\n[permissions]\nlog = ["bob", "alice"]\n')
    result = run("serve", "--data", tmp_path / "data", "--config", config)
    assert result.exit_code == ExitCode.USAGE
    assert "broker.toml [permissions]: log names an unknown user: expected one of bob, found 'alice'" in result.stderr
    assert not (tmp_path / "data").exists()


def test_no_directory_is_a_wrong_command_line(run: Run) -> None:
    """The message names both ways to give one."""
    result = run("serve")
    assert result.exit_code == ExitCode.USAGE
    assert "give --data, or set AMBERMQ_DATA" in result.stderr


def test_a_child_that_does_not_start_is_an_error_with_its_last_log_line(tmp_path: Path) -> None:
    """The error of a failed start has the reason."""
    broker = ChildBroker(tmp_path / "data", arguments=["--host", "203.0.113.1", "--anonymous"])
    with pytest.raises(ToolError, match=r"the broker did not start: .*cannot listen"):
        broker.start()


def test_a_write_that_fails_while_serving_is_exit_code_74(run: Run, child: ChildBroker) -> None:
    """The broker settles nothing more and ends at once: the send that it could not store is not accepted."""
    # Segments are longer than this from their first batch on; what the broker logs is not.
    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (4096, 4096))
    sent = run("send", "q", "x", "--url", child.url)
    assert (sent.exit_code, sent.stdout) == (ExitCode.CANNOT_CONNECT, "")
    assert child.wait() == ExitCode.LOG_FAILED
    assert child.last_log_line().startswith("error: ")
    assert "stopped" not in child.stderr_path.read_text()


def test_an_idle_virtual_host_takes_less_than_a_mebibyte(run: Run, tmp_path: Path) -> None:
    """It has no ballast and no allocated spare. The next start removes the ballast of version 0.1."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    assert run("vhost", "create", "idle", "--url", broker.url).exit_code == ExitCode.OK
    (directory,) = (tmp_path / "data" / "vhosts").iterdir()
    assert _disk_bytes(directory) < 1 << 20
    assert broker.stop() == ExitCode.OK
    (directory / "ballast").write_bytes(bytes(4096))
    broker.start()
    assert broker.stop() == ExitCode.OK
    assert not (directory / "ballast").exists()
    assert _disk_bytes(directory) < 1 << 20
    assert (tmp_path / "data" / "ballast").stat().st_size <= 128 << 20


def _disk_bytes(directory: Path) -> int:
    return sum(512 * path.stat().st_blocks for path in directory.rglob("*") if path.is_file())


def test_an_older_directory_is_warned_once_and_has_ten_minutes(run: Run, tmp_path: Path) -> None:
    """A new directory gets no warning. One without the notice gets one, and nothing goes meanwhile by free space."""
    config = tmp_path / "broker.toml"
    config.write_text(f"[retention]\nroom_bytes_min = {1 << 60}\n[log]\nballast_bytes = 0\n")
    broker = ChildBroker(tmp_path / "data", arguments=["--config", str(config)])
    assert grace_seconds(str(tmp_path), RetentionConfig(by_room=False), had_log=True) == 0.0
    broker.start()
    assert broker.stop() == ExitCode.OK
    assert "history may be deleted" not in broker.stderr_path.read_text()
    notice_path(str(broker.directory)).unlink()
    for _ in range(2):
        broker.start()
        assert run("send", "q", "x", "--url", broker.url).exit_code == ExitCode.OK
        assert broker.stop() == ExitCode.OK
    told = broker.stderr_path.read_text()
    assert told.count("history may be deleted") == 1
    assert "[retention] by_room = false" in told
    assert 500.0 < grace_seconds(str(broker.directory), RetentionConfig(), had_log=True) <= 600.0
    notice_path(str(broker.directory)).write_text("1.0\n")
    assert grace_seconds(str(broker.directory), RetentionConfig(), had_log=True) == 0.0
