"""`ambermq config`: what it prints, its exit codes, and a broker whose file changes."""

import json
import os
import signal
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from ambermq.tools.config.keys import all_keys
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.interop.proton_peer import ProtonPeer
from tests.tools.conftest import Run

_USERS = """[users]
alice = "secret-a"
bob = "secret-b"
"""
_FILE = f"""
[server]
connections_max = 500
{_USERS}[[templates]]
name = "orders"
pattern = "orders.#"
messages_max = 3
"""


@pytest.fixture
def file() -> str:
    """Return the text of the configuration file."""
    return _FILE


@pytest.fixture
def path(tmp_path: Path, file: str) -> Path:
    """A configuration file."""
    path = tmp_path / "broker.toml"
    path.write_text(file)
    return path


@pytest.fixture
def served(path: Path, tmp_path: Path) -> Iterator[ChildBroker]:
    """A broker with that file."""
    broker = ChildBroker(tmp_path / "data", arguments=("--config", str(path)))
    broker.start()
    yield broker
    broker.kill()


def _url(broker: ChildBroker, user: str) -> str:
    return broker.url.replace("amqp://", f"amqp://{user}:secret-{user[0]}@")


def _logged(broker: ChildBroker, text: str) -> None:
    """Return when the log has a line with the text."""
    deadline = time.monotonic() + 20
    while text not in broker.stderr_path.read_text():
        assert time.monotonic() < deadline, text
        time.sleep(0.02)


def test_check_prints_every_mistake(run: Run, path: Path) -> None:
    """One a line, on standard error, with exit code 2."""
    assert run("config", "check", path).exit_code == ExitCode.OK
    path.write_text("[server]\ncredit_max = 0\nnothing = 1\n[logging]\nlevel = 'loud'\n")
    result = run("config", "check", path)
    assert result.exit_code == ExitCode.USAGE
    assert [line.partition(": ")[0] for line in result.stderr.splitlines()] == ["error"] * 3
    assert "level is invalid: expected one of debug, info, warning, error, found 'loud'" in result.stderr


def test_show_prints_toml_that_reads_back(run: Run, path: Path) -> None:
    """All keys, with passwords masked."""
    result = run(
        "config", "show", "--config", path, "--output", "toml", "--set", 'compaction.archive=a"b#\x7f\U00010000'
    )
    assert result.exit_code == ExitCode.OK
    tables = tomllib.loads(result.stdout)
    assert tables["server"]["connections_max"] == 500
    assert tables["compaction"]["archive"] == 'a"b#\x7f\U00010000'
    assert "secret-" not in result.stdout
    assert {f"{table}.{name}" for table in tables for name in tables[table]} >= set(all_keys())


@pytest.mark.parametrize("name", ["server.connections_max", "connections_max", "AMBERMQ_SERVER__CONNECTIONS_MAX"])
def test_explain_takes_any_name_of_a_key(run: Run, name: str) -> None:
    """With the whole docstring, the unit, and whether it changes live."""
    told = json.loads(run("config", "explain", name, "--output", "json").stdout)
    assert told["key"] == "server.connections_max"
    assert told["meaning"].startswith("Open connections of the broker.")
    assert (told["unit"], told["least"], told["changes"]) == ("connections", 1, "live, by a reload")


def test_explain_of_an_unknown_key_has_near_names(run: Run) -> None:
    """With exit code 6."""
    result = run("config", "explain", "conections_max")
    assert result.exit_code == ExitCode.NOT_FOUND
    assert "connections_max" in result.stderr


def test_reload_says_what_was_applied_and_what_needs_a_restart(run: Run, served: ChildBroker, path: Path) -> None:
    """By its exit code, its line and the log; the log has old and new values and no password."""
    url = _url(served, "alice")
    assert run("config", "reload", "--url", url).stdout == "applied: nothing has changed\n"
    path.write_text(_FILE.replace("500", "600").replace("= 3", "= 1").replace("secret-b", "secret-c"))
    assert run("config", "reload", "--url", url).stdout == "applied: server.connections_max, templates, users\n"
    path.write_text(_FILE.replace("500", "700") + "[log]\nhot_bytes_max = 9\n")
    result = run("config", "reload", "--url", url)
    assert result.exit_code == ExitCode.DIFFERENT
    assert result.stdout.endswith("; needs a restart: log.hot_bytes_max\n")
    rows = {row["key"]: row for row in json.loads(run("config", "show", "--url", url, "--output", "json").stdout)}
    assert rows["log.hot_bytes_max"]["pending"] == 9
    assert rows["server.connections_max"]["value"] == 700
    text = served.stderr_path.read_text()
    assert "key=server.connections_max new=600 old=500" in text
    assert "bob (changed)" in text
    assert "configured=9 key=log.hot_bytes_max running=33554432" in text
    assert "secret-" not in text


def test_a_reload_applies_all_of_a_file_or_nothing(run: Run, served: ChildBroker, path: Path) -> None:
    """One mistake leaves every other value of the file unused; the command exits 2 and names it."""
    url = _url(served, "alice")
    path.write_text(_FILE.replace("500", "600") + "[connection]\nlinks_max = 0\n")
    result = run("config", "reload", "--url", url)
    assert result.exit_code == ExitCode.USAGE
    assert "links_max is invalid: expected a whole number, at least 1, found 0" in result.stderr
    rows = {row["key"]: row for row in json.loads(run("config", "show", "--url", url, "--output", "json").stdout)}
    assert rows["server.connections_max"]["value"] == 500
    path.unlink()
    assert run("config", "reload", "--url", url).exit_code == ExitCode.USAGE
    assert run("send", "q", "x", "--url", url).exit_code == ExitCode.OK


def test_values_that_do_not_fit_those_in_use_are_refused(run: Run, served: ChildBroker, path: Path) -> None:
    """A live key may need a larger value of a key that needs a restart: then nothing is applied."""
    tables = (
        "[connection]\nmessage_bytes_max = 200000000000\n"
        "[engine]\nchunk_bytes = 4194304\n[log]\nbatch_bytes_max = 16777216\n"
    )
    path.write_text(_FILE + tables)
    assert run("config", "check", path).exit_code == ExitCode.OK
    result = run("config", "reload", "--url", _url(served, "alice"))
    assert result.exit_code == ExitCode.USAGE
    assert "with the values that need a restart" in result.stderr


def test_users_of_the_file_change_live(run: Run, served: ChildBroker, path: Path) -> None:
    """A removed user is cut and cannot log in; a changed password leaves connections; a new user logs in."""
    removed, kept = (LinkClient.connect(BrokerUrl.parse(_url(served, name))) for name in ("bob", "alice"))
    with removed, kept:
        asked = [Management(one) for one in (removed, kept)]
        path.write_text(_FILE.replace('bob = "secret-b"', 'carol = "secret-c"').replace("secret-a", "other-a"))
        assert run("config", "reload", "--url", _url(served, "alice")).exit_code == ExitCode.OK
        assert list(asked[1].rows("org.ambermq.queue")) == []
        with pytest.raises(ToolError, match="not in the configuration any more"):
            list(asked[0].rows("org.ambermq.queue"))
    assert run("send", "q", "x", "--url", _url(served, "carol")).exit_code == ExitCode.OK
    assert run("send", "q", "x", "--url", _url(served, "bob")).exit_code != ExitCode.OK


@pytest.mark.parametrize("file", [_FILE.replace(_USERS, "")])
def test_a_file_that_changes_under_load_loses_nothing(run: Run, served: ChildBroker, path: Path, file: str) -> None:
    """SIGHUP again and again, with good and bad files: each message is accepted once, and no connection is cut."""
    end, sent, faults = Event(), [0], list[BaseException]()

    def load() -> None:
        try:
            peer = ProtonPeer(served.url, container_id="load")
            sender = peer.sender("loaded")
            while not end.is_set():
                sender.send(str(sent[0]))
                sent[0] += 1
            peer.drop()
        except BaseException as fault:  # noqa: BLE001 - the test's thread raises it
            faults.append(fault)

    thread = Thread(target=load)
    thread.start()
    for round_number in range(20):
        bad = "[connection]\nlinks_max = 0\n" if round_number % 3 == 1 else ""
        path.write_text(file.replace("500", str(2 + round_number)) + bad + "[logging]\nlevel = 'info'\n")
        os.kill(served.pid, signal.SIGHUP)
        _logged(served, f"new={2 + round_number} " if not bad else "configuration not reloaded")
    end.set()
    thread.join(30)
    assert faults == []
    assert sent[0] > 0
    shown = json.loads(run("queue", "show", "loaded", "--url", served.url, "--output", "json").stdout)
    assert shown["available"] == sent[0]


def test_a_new_template_holds_for_new_queues(run: Run, served: ChildBroker, path: Path) -> None:
    """A queue that exists keeps its settings."""
    url = _url(served, "alice")
    run("queue", "declare", "orders.old", "--url", url)
    path.write_text(_FILE.replace("messages_max = 3", "messages_max = 4"))
    assert run("config", "reload", "--url", url).exit_code == ExitCode.OK
    run("queue", "declare", "orders.new", "--url", url)
    found = [
        json.loads(run("queue", "show", f"orders.{name}", "--url", url, "--output", "json").stdout)
        for name in ("old", "new")
    ]
    assert [one["messages_max"] for one in found] == [3, 4]
