"""What is updated stays so, whatever becomes of the log, and history tells what it was before."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.engine.history.updatable_settings import differing, values_text
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.compaction.test_command import LOCAL
from tests.tools.conftest import Run
from tests.tools.sealing import load_until_sealed

_SMALL = "[log]\nsegment_bytes_min = 65536\nsegment_bytes_max = 131072\nballast_bytes = 0\n"
_NOW = {"messages_max": 9, "probability": 1.0, "seed": 7}


@pytest.fixture
def updated(tmp_path: Path, run: Run) -> Iterator[ChildBroker]:
    """A running broker with a queue behind a LOSSY muxer, both updated between two messages."""
    (tmp_path / "config.toml").write_text(_SMALL)
    child = ChildBroker(tmp_path / "data", arguments=("--config", str(tmp_path / "config.toml")))
    child.start()
    for command in (
        ("queue", "declare", "q", "--messages-max", 5),
        ("muxer", "declare", "net", "--class", "lossy", "--probability", 0),
        ("attach", "q", "net"),
        ("send", "/muxers/net", "lost"),
        ("snapshot", "create", "--name", "before"),
        ("queue", "update", "q", "--messages-max", 9),
        ("muxer", "update", "net", "--probability", 1, "--seed", 7),
        ("send", "/muxers/net", "kept"),
    ):
        result = run(*command, "--data", child.directory)
        assert result.exit_code == ExitCode.OK, result.stderr
    yield child
    child.kill()


def _told(run: Run, *arguments: str | int | Path) -> Any:
    result = run(*arguments, "--output", "json")
    assert result.exit_code == ExitCode.OK, result.stderr
    return json.loads(result.stdout)


def _values(run: Run, *where: str | int | Path) -> dict[str, Any]:
    """What the queue and the muxer go by, in a place or at a moment."""
    queue, muxer = _told(run, "queue", "show", "q", *where), _told(run, "muxer", "show", "net", *where)
    return {"messages_max": queue["messages_max"], "probability": muxer["probability"], "seed": muxer["seed"]}


def test_it_stays_through_starts_copies_backups_and_compactions(run: Run, updated: ChildBroker, tmp_path: Path) -> None:
    """Also where history begins behind the update: the snapshot that it begins with has it."""
    data, backup = ("--data", updated.directory), tmp_path / "now.backup"
    assert _values(run, *data) == _NOW
    updated.kill()
    updated.start()
    assert _values(run, *data) == _NOW
    assert run("vhost", "copy", "default", "copied", *data).exit_code == ExitCode.OK
    assert _values(run, *data, "--vhost", "copied") == _NOW
    run("snapshot", "create", "--name", "after", *data)
    assert run("snapshot", "export", "after", backup, *data).exit_code == ExitCode.OK
    assert run("snapshot", "restore", backup, *data, "--as-vhost", "restored").exit_code == ExitCode.OK
    assert _values(run, *data, "--vhost", "restored") == _NOW
    load_until_sealed(updated, 1)
    run("snapshot", "delete", "before", *data)
    compacted = run("log", "compact", *LOCAL, *data)
    assert "history begins at" in compacted.stdout, compacted.stderr
    assert "updated" not in run("log", "dump", *data).stdout
    assert _values(run, *data) == _NOW
    updated.stop()
    updated.start()
    assert _values(run, *data) == _NOW
    assert run("receive", "q", "--all", "--timeout", 2, *data).stdout == "kept\n"
    assert run("log", "verify", *data).exit_code == ExitCode.OK


def test_history_tells_what_it_was_before(run: Run, updated: ChildBroker, tmp_path: Path) -> None:
    """At any moment, as events, as a difference of moments and of snapshots, and as a wiring of then."""
    data = ("--data", updated.directory)
    events = [json.loads(line) for line in run("history", "tail", "--output", "json", *data).stdout.splitlines()]
    queue, muxer = (event for event in events if event["type"].endswith("-updated"))
    assert (queue["words"], queue["queue"]) == ("queue 'q' updated, at most 9 messages, by user 'local'", "q")
    assert muxer["words"] == "muxer 'net' updated, probability 1.0, seed 7, by user 'local'"
    of_queue = run("history", "tail", "--queue", "q", "--type", "queue-updated", *data).stdout
    assert of_queue.count("updated, at most 9 messages") == 1
    then = queue["offset"] - 1
    assert _values(run, *data, "--at", then) == {"messages_max": 5, "probability": 0.0, "seed": 0}
    assert _values(run, *data, "--at", queue["offset"]) == {"messages_max": 9, "probability": 0.0, "seed": 0}
    assert _values(run, *data, "--at", "now") == _NOW
    lossy = {"probability": {"before": 0.0, "after": 1.0}, "seed": {"before": 0, "after": 7}}
    wiring = _told(run, "history", "diff", "--from", then, *data)["wiring"]
    assert [(row["change"], row["muxer"], row["queue"], row["values"]) for row in wiring] == [
        ("updated", None, "q", {"messages_max": {"before": 5, "after": 9}}),
        ("updated", "net", None, lossy),
    ]
    table = run("history", "diff", "--from", then, *data).stdout
    assert "probability 0.0 -> 1.0, seed 0 -> 7" in table
    run("snapshot", "create", "--name", "after", *data)
    changes = {change["what"]: change for change in _told(run, "snapshot", "diff", "before", "after", *data)}
    assert (changes["muxer"]["change"], changes["muxer"]["options"]) == ("changed", lossy)
    assert changes["queue"]["options"] == {"messages_max": {"before": 5, "after": 9}}
    table = run("snapshot", "diff", "before", "after", *data).stdout
    assert "probability 0.0 -> 1.0, seed 0 -> 7" in table
    assert "messages_max 5 -> 9" in table
    old = tmp_path / "then.toml"
    assert run("wiring", "export", old, "--at", then, *data).exit_code == ExitCode.OK
    diff = run("wiring", "diff", old, *data).stdout
    assert diff == (
        "~ muxer net (lossy): probability 1.0 -> 0.0, seed 7 -> 0\n~ queue q (template normal): messages_max 9 -> 5\n"
    )


def test_only_what_differs_is_told() -> None:
    """By name, before and after."""
    values = differing({"a": 1, "b": 0.5}, {"a": 1, "b": 0.25})
    assert (values, values_text(values)) == ({"b": (0.5, 0.25)}, "b 0.5 -> 0.25")
    assert values_text(differing({"a": 1}, {"a": 1})) == ""
