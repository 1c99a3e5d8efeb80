"""`ambermq wiring` on a running broker."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

_WIRING = """
[[muxers]]
name = "colours"
class = "property"

[[muxers]]
name = "net"
class = "lossy"
probability = 0.5

[[queues]]
name = "near"

[[attachments]]
muxer = "colours"
member = "near"
property = ["colour", "size=3", "note=null"]

[[attachments]]
muxer = "colours"
member = "muxer:net"
property = ['"a=b"=x']
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ChildBroker]:
    """A broker for each test: its wiring is looked at whole."""
    child = ChildBroker(tmp_path / "data")
    child.start()
    yield child
    child.kill()


def test_applying_is_done_once(on_broker: Run, tmp_path: Path) -> None:
    """A dry run and a comparison exit 8 while there is something to do; afterwards there is nothing."""
    file = tmp_path / "w.toml"
    file.write_text(_WIRING)
    planned = (
        "+ muxer colours (property)\n+ muxer net (lossy)\n+ queue near\n"
        '+ colours -> near: colour and size=3 and note=null\n+ colours -> muxer:net: "a=b"=x\n'
    )
    for command in (("diff",), ("apply", "--dry-run")):
        result = on_broker("wiring", *command, file)
        assert (result.exit_code, result.stdout) == (ExitCode.DIFFERENT, planned)
    assert on_broker("wiring", "apply", file).stdout == planned
    for command in (("diff",), ("apply", "--dry-run"), ("apply",), ("apply", "--prune")):
        result = on_broker("wiring", *command, file)
        assert (result.exit_code, result.stdout) == (ExitCode.OK, "no differences\n")


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_what_was_exported_makes_the_same_again(on_broker: Run, tmp_path: Path, suffix: str) -> None:
    """After everything was pruned away; standard output has the same as the file."""
    file, copy, nothing = tmp_path / "w.toml", tmp_path / f"copy.{suffix}", tmp_path / "none.toml"
    file.write_text(_WIRING)
    nothing.write_text("")
    on_broker("wiring", "apply", file)
    assert on_broker("wiring", "export", copy).stdout == f"exported 2 muxers, 1 queues, 2 attachments to {copy}\n"
    if suffix == "toml":
        assert on_broker("wiring", "export", "-").stdout == copy.read_text()
    else:
        assert on_broker("wiring", "export", "-", "--output", "json").stdout == copy.read_text()
    graph = on_broker("wiring", "graph").stdout
    pruned = json.loads(on_broker("wiring", "apply", nothing, "--prune", "--output", "json").stdout)
    assert [(change["change"], change["what"]) for change in pruned] == [
        *[("remove", "attachment")] * 2,
        *[("remove", "muxer")] * 2,
        ("remove", "queue"),
    ]
    assert "colours" not in on_broker("wiring", "graph").stdout
    on_broker("wiring", "apply", copy)
    assert on_broker("wiring", "diff", file).exit_code == ExitCode.OK
    assert on_broker("wiring", "graph").stdout == graph


def test_the_graph_is_drawn(on_broker: Run, tmp_path: Path) -> None:
    """As a tree, and for Graphviz."""
    file = tmp_path / "w.toml"
    file.write_text(_WIRING)
    on_broker("wiring", "apply", file)
    assert on_broker("wiring", "graph").stdout.splitlines() == [
        "muxer QUEUE (destination): 1 queue by name",
        "muxer TOPIC (wild-destination)",
        "muxer colours (property)",
        "├── queue near: colour and size=3 and note=null",
        '└── muxer net (lossy 0.5): "a=b"=x',
    ]
    dot = on_broker("wiring", "graph", "--dot").stdout.splitlines()
    assert (dot[0], dot[-1]) == ("digraph wiring {", "}")
    assert r'  "muxer:colours" -> "muxer:net" [label="\"a=b\"=x"];' in dot
    rows = json.loads(on_broker("wiring", "graph", "--output", "json").stdout)
    assert [row["name"] for row in rows["muxers"]] == ["QUEUE", "TOPIC", "colours", "net"]


def test_pruning_spares_what_is_used_and_then_does_nothing(on_broker: Run, tmp_path: Path) -> None:
    """A queue with messages is named; the wiring stays as it was."""
    file, nothing = tmp_path / "w.toml", tmp_path / "none.toml"
    file.write_text(_WIRING)
    nothing.write_text("")
    on_broker("wiring", "apply", file)
    on_broker("send", "near", "x")
    refused = on_broker("wiring", "apply", nothing, "--prune")
    assert refused.exit_code == ExitCode.FAILED
    assert "queue near is in use, it has 1 messages; nothing was changed" in refused.stderr
    assert on_broker("wiring", "diff", file).exit_code == ExitCode.OK


def test_a_conflict_is_shown_and_nothing_is_done(on_broker: Run, tmp_path: Path) -> None:
    """diff marks it, apply refuses it."""
    file = tmp_path / "w.toml"
    file.write_text(_WIRING)
    on_broker("muxer", "declare", "net", "--class", "simple")
    shown = on_broker("wiring", "diff", file)
    assert shown.exit_code == ExitCode.DIFFERENT
    assert (
        "! muxer net (lossy): muxer 'net' is of class simple, which does not change, but the request asks for class "
        "lossy: declare another muxer, and move the attachments\n" in shown.stdout
    )
    refused = on_broker("wiring", "apply", file)
    assert (refused.exit_code, refused.stdout) == (ExitCode.FAILED, "")
    assert "is of class simple" in refused.stderr
    assert "colours" not in on_broker("muxer", "list").stdout


def test_what_may_change_is_updated_where_it_is(on_broker: Run, tmp_path: Path) -> None:
    """Told with its values before and after, by every command and output; attachments and messages stay."""
    file = tmp_path / "w.toml"
    file.write_text(_WIRING)
    on_broker("wiring", "apply", file)
    on_broker("send", "near", "kept")
    file.write_text(_WIRING.replace("0.5", "0.25\nseed = 7").replace('"near"\n\n', '"near"\nmessages_max = 9\n\n', 1))
    planned = "~ muxer net (lossy): probability 0.5 -> 0.25, seed 0 -> 7\n~ queue near: messages_max 0 -> 9\n"
    for command in (("diff",), ("apply", "--dry-run"), ("apply", "--prune", "--dry-run")):
        result = on_broker("wiring", *command, file)
        assert (result.exit_code, result.stdout) == (ExitCode.DIFFERENT, planned)
    told = json.loads(on_broker("wiring", "apply", file, "--output", "json").stdout)
    values = [(change["change"], change["what"], change["name"], change["values"]) for change in told]
    lossy = {"probability": {"before": 0.5, "after": 0.25}, "seed": {"before": 0, "after": 7}}
    assert values == [
        ("update", "muxer", "net", lossy),
        ("update", "queue", "near", {"messages_max": {"before": 0, "after": 9}}),
    ]
    assert on_broker("wiring", "diff", file).stdout == "no differences\n"
    shown = json.loads(on_broker("queue", "show", "near", "--output", "json").stdout)
    assert (shown["available"], shown["messages_max"]) == (1, 9)


def test_a_file_that_cannot_be_does_nothing(on_broker: Run, tmp_path: Path) -> None:
    """Its last attachment is wrong, and so its first muxer is not made."""
    file = tmp_path / "w.toml"
    file.write_text(f'{_WIRING}\n[[attachments]]\nmuxer = "TOPIC"\nmember = "near"\npattern = "a.b*"\n')
    refused = on_broker("wiring", "apply", file)
    assert refused.exit_code == ExitCode.USAGE
    assert refused.stderr.startswith(f"error: {file} [[attachments]] 3: bad pattern 'a.b*' at character")
    assert "colours" not in on_broker("muxer", "list").stdout


def test_wiring_is_told_as_it_was(run: Run, broker: ChildBroker, on_broker: Run, tmp_path: Path) -> None:
    """With --at, from the log."""
    file, copy = tmp_path / "w.toml", tmp_path / "copy.toml"
    file.write_text(_WIRING)
    on_broker("wiring", "apply", file)
    then = json.loads(on_broker("muxer", "list", "--output", "json").stdout)
    graph = on_broker("wiring", "graph").stdout
    shown = on_broker("muxer", "show", "colours").stdout
    offset = json.loads(run("history", "tail", "--data", broker.directory, "--limit", 1, "--output", "json").stdout)
    at = ("--at", offset["offset"] if isinstance(offset, dict) else offset[-1]["offset"], "--data", broker.directory)
    on_broker("muxer", "delete", "colours")
    assert json.loads(run("muxer", "list", *at, "--output", "json").stdout) == then
    assert run("wiring", "graph", *at).stdout == graph
    assert run("muxer", "show", "colours", *at).stdout == shown
    assert run("muxer", "show", "none", *at).exit_code == ExitCode.NOT_FOUND
    run("wiring", "export", copy, *at)
    on_broker("wiring", "apply", copy)
    assert on_broker("wiring", "diff", file).exit_code == ExitCode.OK


@pytest.mark.parametrize(
    ("name", "code"), [("w.yaml", ExitCode.USAGE), ("none.toml", ExitCode.NOT_FOUND), ("bytes.toml", ExitCode.USAGE)]
)
def test_a_file_that_is_none_is_one_message(run: Run, tmp_path: Path, name: str, code: ExitCode) -> None:
    """Its suffix says how it is written; it is there, and it is UTF-8."""
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    for command in ("diff", "apply"):
        result = run("wiring", command, tmp_path / name, "--url", "amqp://127.0.0.1:1")
        assert (result.exit_code, result.stdout) == (code, "")
        assert name in result.stderr
