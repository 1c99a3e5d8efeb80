"""`ambermq vhost`, and `--vhost` of the others: on a broker that runs and on the directory of one that does not."""

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.engine.history.past import open_past
from ambermq.engine.model.state import State
from ambermq.log.manifest.manifest import load as load_manifest
from ambermq.log.manifest.vhost_directories import load_root
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.vhosts.backends import RunningVhosts
from tests.interop.proton_peer import ProtonPeer
from tests.tools.conftest import Run

CONFIG = "[log]\nballast_bytes = 0\nsegment_bytes_min = 1048576\n"


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ChildBroker]:
    """A broker of one's own with three messages on `orders`."""
    (tmp_path / "broker.toml").write_text(CONFIG)
    broker = ChildBroker(tmp_path / "data", arguments=["--config", str(tmp_path / "broker.toml")])
    broker.start()
    put(broker.url, "1", "2", "3")
    yield broker
    broker.kill()


def put(url: str, *bodies: str, queue: str = "orders", vhost: str = "") -> None:
    """Send durable messages."""
    peer = ProtonPeer(url, **({"virtual_host": f"vhost:{vhost}"} if vhost else {}))
    peer.sender(queue).send(*bodies)
    peer.blocking.close()


def names(run: Run, directory: Path) -> list[str]:
    """The virtual hosts that `list` tells."""
    result = run("vhost", "list", "--data", directory, "--output", "json")
    assert result.exit_code == ExitCode.OK, result.stderr
    return [row["name"] for row in json.loads(result.stdout)]


def browsed(run: Run, directory: Path, vhost: str, queue: str = "orders") -> list[str]:
    """The bodies on a queue of a virtual host, from the log."""
    place = ("--data", directory, "--vhost", vhost)
    result = run("queue", "browse", queue, *place, "--limit", 100_000, "--output", "json")
    assert result.exit_code == ExitCode.OK, result.stderr
    return [row["body"] for row in json.loads(result.stdout)]


def place_of(directory: Path, name: str) -> Path:
    """Where the log of a virtual host lies."""
    below = load_root(DiskStorage(), str(directory)).directory_of(name)
    assert below is not None
    return directory / "vhosts" / below


def state_at(directory: Path, offset: int) -> State:
    """What a log held."""
    past = open_past(str(directory))
    try:
        return past.state_at(offset)
    finally:
        past.close()


@pytest.mark.parametrize("runs", [True, False], ids=["running", "stopped"])
def test_the_life_of_a_virtual_host(run: Run, child: ChildBroker, *, runs: bool) -> None:
    """Made, copied, emptied and deleted, the same with a broker and without one; the default one is as it was."""
    data = child.directory
    if not runs:
        child.stop()
    assert run("vhost", "create", "empty", "--data", data).stdout == "created empty\n"
    copied = run("vhost", "copy", "default", "copied", "--data", data)
    assert copied.stdout.startswith("copied default to copied: 1 queues, 3 messages, events below "), copied.stderr
    assert names(run, data) == ["default", "empty", "copied"]
    assert browsed(run, data, "copied") == ["1", "2", "3"]
    again = run("vhost", "copy", "copied", "again", "--data", data, "--output", "json")
    assert json.loads(again.stdout)["messages"] == 3
    reset = run("vhost", "reset", "copied", "--data", data)
    assert reset.stdout == "reset copied: 1 queues and 3 messages removed\n"
    assert run("vhost", "delete", "empty", "--data", data).stdout == "deleted empty\n"
    if not runs:
        child.start()
    assert names(run, data) == ["default", "copied", "again"]
    listed = json.loads(run("vhost", "list", "--url", child.url, "--output", "json").stdout)
    assert [row["messages"] for row in listed] == [3, 0, 3]
    assert [row["name"] for row in json.loads(run("snapshot", "list", "--data", data, "--output", "json").stdout)] == []


def test_what_cannot_be_done_is_one_message(run: Run, child: ChildBroker) -> None:
    """With its exit code, on a running and on a stopped broker, and nothing changed."""
    data = child.directory
    run("vhost", "create", "one", "--data", data)
    for runs in (True, False):
        if not runs:
            child.stop()
        for command, code, told in (
            (("create", "a/b"), ExitCode.FAILED, "cannot be a virtual host's name"),
            (("create", "default"), ExitCode.FAILED, "always exists"),
            (("create", "one"), ExitCode.FAILED, "there is a virtual host 'one' already"),
            (("copy", "one", "one"), ExitCode.FAILED, "there is a virtual host 'one' already"),
            (("copy", "two", "three"), ExitCode.NOT_FOUND, "no virtual host 'two'"),
            (("reset", "two", "--yes"), ExitCode.NOT_FOUND, "no virtual host 'two'"),
            (("delete", "two", "--yes"), ExitCode.NOT_FOUND, "no virtual host 'two'"),
            (("delete", "default", "--yes"), ExitCode.FAILED, "default"),
        ):
            result = run("vhost", *command, "--data", data)
            assert (result.exit_code, result.stdout) == (code, ""), (runs, command, result.stderr)
            assert told in result.stderr
            assert len(result.stderr.splitlines()) == 1
        assert names(run, data) == ["default", "one"]
    child.start()
    result = run("vhost", "copy", "default", "two", "--url", child.url)
    assert result.exit_code == ExitCode.USAGE
    assert "give --data" in result.stderr


def test_a_copy_under_load_is_the_source_at_one_moment(run: Run, child: ChildBroker) -> None:
    """To the last word and counter: what came later is not in it, what came before is; the source goes on."""
    stop, began = threading.Event(), threading.Event()

    def load() -> None:
        peer = ProtonPeer(child.url)
        sender = peer.sender("busy")
        number = 0
        while not stop.is_set():
            sender.send(*(str(number + index) for index in range(20)))
            number += 20
            began.set()
            time.sleep(0.01)
        peer.blocking.close()

    sending = threading.Thread(target=load)
    sending.start()
    try:
        assert began.wait(60)
        result = run("vhost", "copy", "default", "copied", "--data", child.directory, "--output", "json")
    finally:
        stop.set()
        sending.join()
    end = json.loads(result.stdout)["end"]
    child.stop()
    source, copy = child.directory, place_of(child.directory, "copied")
    before = state_at(source, end - 1)
    assert state_at(copy, end - 1) == before
    bodies = browsed(run, source, "copied", "busy")
    assert bodies == [str(number) for number in range(len(bodies))]
    queue = before.queue_named("busy")
    assert queue is not None
    assert len(bodies) == queue.depth > 0


@pytest.mark.parametrize("victim", ["command", "broker"])
def test_a_copy_that_is_cut_short_leaves_nothing_or_all(run: Run, child: ChildBroker, victim: str) -> None:
    """Whenever the SIGKILL comes: the name is not there, or is with all messages; the same copy can be made then."""
    rng = random.Random(1)
    data = child.directory
    command = [sys.executable, "-m", "ambermq", "vhost", "copy", "default", "copied", "--data", str(data)]
    for _ in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 0.9))
        if victim == "command":
            process.send_signal(signal.SIGKILL)
            process.wait()
        else:
            child.kill()
            process.wait()
            child.start()
        if "copied" in names(run, data):
            assert browsed(run, data, "copied") == ["1", "2", "3"]
            run("vhost", "delete", "copied", "--data", data)
    assert run("vhost", "copy", "default", "copied", "--data", data).exit_code == ExitCode.OK
    child.kill()
    child.start()
    assert names(run, data) == ["default", "copied"]
    assert list((data / "vhosts").iterdir()) == [place_of(data, "copied")]
    assert browsed(run, data, "copied") == ["1", "2", "3"]


def test_a_copy_that_is_refused_leaves_no_files(run: Run, child: ChildBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two at a time that make the same name, the second is deleted at once; the first is whole."""
    data, ask = child.directory, RunningVhosts._request

    def late(backend: RunningVhosts, operation: str, *arguments: Any, **asked: Any) -> dict[str, Any]:
        if operation == "CREATE" and "body" in asked:
            ask(backend, "CREATE", *arguments)
        return ask(backend, operation, *arguments, **asked)

    monkeypatch.setattr(RunningVhosts, "_request", late)
    result = run("vhost", "copy", "default", "copied", "--data", data)
    assert (result.exit_code, "the broker says 409" in result.stderr) == (ExitCode.FAILED, True)
    assert list((data / "vhosts").iterdir()) == [place_of(data, "copied")]


def test_a_copy_whose_last_answer_is_lost_is_the_brokers(
    run: Run, child: ChildBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt while the broker adopts the copy leaves the copy whole, also after a kill."""
    data, ask = child.directory, RunningVhosts._request

    def interrupted(backend: RunningVhosts, operation: str, *arguments: Any, **asked: Any) -> dict[str, Any]:
        answer = ask(backend, operation, *arguments, **asked)
        if operation == "CREATE":
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(RunningVhosts, "_request", interrupted)
    assert run("vhost", "copy", "default", "copied", "--data", data).exit_code == ExitCode.INTERRUPTED
    child.kill()
    child.start()
    assert names(run, data) == ["default", "copied"]
    assert browsed(run, data, "copied") == ["1", "2", "3"]


@pytest.mark.parametrize("runs", [True, False], ids=["running", "stopped"])
def test_a_backup_becomes_a_virtual_host(run: Run, child: ChildBroker, tmp_path: Path, *, runs: bool) -> None:
    """Of the broker that runs on the directory at once, of a stopped one when it starts."""
    data, backup = child.directory, tmp_path / "orders.backup"
    run("snapshot", "create", "--name", "first", "--data", data)
    assert run("snapshot", "export", "first", backup, "--data", data).exit_code == ExitCode.OK
    if not runs:
        child.stop()
    result = run("snapshot", "restore", backup, "--data", data, "--as-vhost", "old")
    assert result.exit_code == ExitCode.OK, result.stderr
    again = run("snapshot", "restore", backup, "--data", data, "--as-vhost", "old")
    assert (again.exit_code, "there is a virtual host 'old' already" in again.stderr) == (ExitCode.FAILED, True)
    backup.write_bytes(backup.read_bytes()[:-9])
    assert run("snapshot", "restore", backup, "--data", data, "--as-vhost", "cut").exit_code == ExitCode.DAMAGED
    assert names(run, data) == ["default", "old"]
    if not runs:
        child.start()
    received = run("receive", "orders", "--count", 3, "--data", data, "--vhost", "old")
    assert received.stdout == "1\n2\n3\n"
    assert browsed(run, data, "default") == ["1", "2", "3"]


def test_every_command_can_be_about_a_virtual_host(run: Run, child: ChildBroker) -> None:
    """Over the broker and on its directory; one that is not there is exit code 6, and nothing falls to the default."""
    data = child.directory
    run("vhost", "create", "one", "--data", data)
    assert run("send", "q", "x", "--url", child.url, "--vhost", "one").exit_code == ExitCode.OK
    assert run("queue", "list", "--url", f"{child.url}/vhost:one").stdout.splitlines()[1].split()[0] == "q"
    assert run("queue", "list", "--data", data, "--vhost", "one").stdout.splitlines()[1].split()[0] == "q"
    assert (
        run("queue", "list", "--data", data, "--vhost", "one", "--at", "now").stdout.splitlines()[1].split()[0] == "q"
    )
    assert "published" in run("log", "dump", "--data", data, "--vhost", "one").stdout
    taken = run("snapshot", "create", "--name", "mine", "--data", data, "--vhost", "one")
    assert taken.exit_code == ExitCode.OK
    (snapshot,) = json.loads(run("snapshot", "list", "--data", data, "--vhost", "one", "--output", "json").stdout)
    assert snapshot["name"] == "mine"
    manifest = load_manifest(DiskStorage(), str(data))
    assert manifest is not None
    assert manifest.snapshots == ()
    for command in (("queue", "list"), ("log", "dump"), ("log", "verify"), ("snapshot", "list"), ("send", "q", "x")):
        result = run(*command, "--data", data, "--vhost", "two")
        assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, ""), command
        assert "no virtual host 'two': found default, one" in result.stderr
    assert run("send", "q", "x", "--url", child.url, "--vhost", "two").exit_code == ExitCode.NOT_FOUND
    child.stop()
    assert run("log", "verify", "--data", data, "--vhost", "one").exit_code == ExitCode.OK


def test_a_damaged_one_can_be_deleted_without_a_broker(run: Run, child: ChildBroker) -> None:
    """No broker starts on it, and copying or emptying it is refused; deleted, the others are served again."""
    data = child.directory
    run("vhost", "create", "sick", "--data", data)
    run("vhost", "create", "well", "--data", data)
    child.stop()
    manifest = place_of(data, "sick") / "MANIFEST"
    manifest.write_bytes(manifest.read_bytes().replace(b"{", b"[", 1))
    with pytest.raises(ToolError, match="damaged at position"):
        child.start()
    for command in (("copy", "sick", "new"), ("reset", "sick")):
        result = run("vhost", *command, "--data", data)
        assert (result.exit_code, str(manifest) in result.stderr) == (ExitCode.DAMAGED, True)
    assert run("vhost", "delete", "sick", "--data", data).exit_code == ExitCode.OK
    child.start()
    assert names(run, data) == ["default", "well"]


def test_one_whose_log_is_missing_is_not_begun_anew(run: Run, child: ChildBroker) -> None:
    """No broker starts, and copying or emptying it is refused, as though all it held had never been; it is damage."""
    data = child.directory
    run("vhost", "create", "lost", "--data", data)
    child.stop()
    place = place_of(data, "lost")
    shutil.rmtree(place)
    with pytest.raises(ToolError, match="the manifest of the virtual host 'lost'"):
        child.start()
    for command in (("copy", "lost", "new"), ("reset", "lost")):
        result = run("vhost", *command, "--data", data)
        assert (result.exit_code, f"{place} holds no log" in result.stderr) == (ExitCode.FAILED, True)
    assert not place.exists()
    assert run("vhost", "delete", "lost", "--data", data).exit_code == ExitCode.OK
    child.start()
    assert names(run, data) == ["default"]


@pytest.mark.parametrize("command", [("reset", "default"), ("copy", "default", "new")])
def test_a_directory_without_a_log_stays_without_one(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    """A command on the wrong directory creates nothing in it but a lock file."""
    result = run("vhost", *command, "--data", tmp_path)
    assert (result.exit_code, "holds no log" in result.stderr) == (ExitCode.FAILED, True)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_directory_is_reported_and_stays(run: Run, child: ChildBroker) -> None:
    """In the broker's own log, with its path, at each start."""
    run("vhost", "create", "one", "--data", child.directory)
    child.stop()
    strange = child.directory / "vhosts" / "strange~00000000"
    strange.mkdir()
    child.start()
    logged = child.stderr_path.read_text().splitlines()
    assert any("unknown directory" in line and str(strange) in line for line in logged)
    assert strange.exists()
    assert names(run, child.directory) == ["default", "one"]


def test_what_is_out_for_delivery_waits_in_the_copy(run: Run, child: ChildBroker) -> None:
    """Links are not copied; the source's consumer keeps what it has."""
    peer = ProtonPeer(child.url)
    receiver = peer.receiver("orders", credit=2)
    receiver.wait(2)
    run("vhost", "copy", "default", "copied", "--data", child.directory)
    rows = {}
    for name in ("default", "copied"):
        shown = run("queue", "show", "orders", "--data", child.directory, "--vhost", name, "--output", "json")
        rows[name] = json.loads(shown.stdout)
    assert [rows["default"][name] for name in ("available", "acquired", "consumers", "failed")] == [1, 2, 1, 0]
    assert [rows["copied"][name] for name in ("available", "acquired", "consumers", "failed")] == [3, 0, 0, 2]
    peer.drop()


@pytest.mark.parametrize("runs", [True, False], ids=["running", "stopped"])
def test_the_mode_is_chosen_shown_and_copied(run: Run, child: ChildBroker, *, runs: bool) -> None:
    """Also by a reset and through a backup; with a broker and without one."""
    data = child.directory
    if not runs:
        child.stop()
    created = run("vhost", "create", "bare", "--mode", "advanced", "--data", data)
    assert created.stdout == "created bare in advanced mode\n", created.stderr
    assert run("vhost", "copy", "bare", "copied", "--data", data).exit_code == ExitCode.OK
    assert run("vhost", "reset", "bare", "--data", data).exit_code == ExitCode.OK
    for name, mode in (("default", "automatic"), ("bare", "advanced"), ("copied", "advanced")):
        shown = json.loads(run("vhost", "show", name, "--data", data, "--output", "json").stdout)
        assert (shown["name"], shown["mode"]) == (name, mode)
    assert run("vhost", "show", "missing", "--data", data).exit_code == ExitCode.NOT_FOUND
    assert run("vhost", "create", "other", "--mode", "wild", "--data", data).exit_code == ExitCode.USAGE
    table = [line.split()[:2] for line in run("vhost", "list", "--data", data).stdout.splitlines()]
    expected = [["default", "automatic"], ["bare", "advanced"], ["copied", "advanced"]]
    assert table == [["name", "mode"], *expected]
    listed = json.loads(run("vhost", "list", "--data", data, "--output", "json").stdout)
    assert [[row["name"], row["mode"]] for row in listed] == expected
    if not runs:
        child.start()
    refused = run("send", "orders", "x", "--data", data, "--vhost", "copied")
    assert refused.exit_code == ExitCode.NOT_FOUND
    assert "advanced mode" in refused.stderr


def test_one_whose_log_cannot_be_read_is_listed_all_the_same(run: Run, child: ChildBroker) -> None:
    """Its mode is not known then; that of a new directory is known before anything was written there."""
    data = child.directory
    for name in ("bare", "broken"):
        run("vhost", "create", name, "--mode", "advanced", "--data", data)
    child.stop()
    (place_of(data, "broken") / "MANIFEST").write_text("nothing")
    assert run("vhost", "create", "new", "--data", data).exit_code == ExitCode.OK
    listed = json.loads(run("vhost", "list", "--data", data, "--output", "json").stdout)
    modes = {row["name"]: row["mode"] for row in listed}
    assert modes == {"default": "automatic", "bare": "advanced", "broken": None, "new": "automatic"}


def test_wiring_is_applied_to_an_advanced_one(run: Run, child: ChildBroker, tmp_path: Path) -> None:
    """What a file says is there afterwards and no more; what it cannot have is refused before anything is done."""
    place = ("--data", child.directory, "--vhost", "bare")
    run("vhost", "create", "bare", "--mode", "advanced", "--data", child.directory)
    path = tmp_path / "wiring.toml"
    text = '[[muxers]]\nname = "in"\nclass = "simple"\n[[queues]]\nname = "orders"\n'
    path.write_text(text + '[[attachments]]\nmuxer = "QUEUE"\nmember = "orders"\ndestination = "other"\n')
    refused = run("wiring", "apply", path, *place)
    assert refused.exit_code == ExitCode.NOT_FOUND
    assert "no muxer 'QUEUE'" in refused.stderr
    assert json.loads(run("queue", "list", *place, "--output", "json").stdout) == []
    path.write_text(text + '[[attachments]]\nmuxer = "in"\nmember = "orders"\n')
    assert run("wiring", "apply", path, *place).exit_code == ExitCode.OK
    assert run("wiring", "diff", path, *place).exit_code == ExitCode.OK
    assert run("wiring", "graph", *place).stdout == "muxer in (simple)\n└── queue orders\n"
    assert run("send", "/muxers/in", "x", *place).exit_code == ExitCode.OK
    assert run("wiring", "export", path, *place).exit_code == ExitCode.OK
    assert run("wiring", "diff", path, *place).exit_code == ExitCode.OK
