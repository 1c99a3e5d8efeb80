"""`ambermq muxer`, `attach` and `detach` on a running broker."""

import json
import re
from typing import Any

import pytest

from ambermq.engine.model.muxer import MuxerKind
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run


def test_a_declared_muxer_is_there_until_it_is_deleted(on_broker: Run) -> None:
    """declare, list, show, delete; then it is not found."""
    assert on_broker("muxer", "declare", "m1", "--class", "simple").stdout == "declared m1\n"
    assert on_broker("muxer", "declare", "m1", "--class", "simple").stdout == "exists m1\n"
    assert "m1" in on_broker("muxer", "list").stdout
    assert on_broker("muxer", "show", "m1").stdout.splitlines()[0].split() == ["name", "m1"]
    assert on_broker("muxer", "delete", "m1").stdout == "deleted m1\n"
    for command in ("show", "delete"):
        missing = on_broker("muxer", command, "m1")
        assert (missing.exit_code, missing.stdout) == (ExitCode.NOT_FOUND, "")
        assert missing.stderr.startswith("error: m1: the broker says 404: no such muxer") or command == "delete"


def _words(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


@pytest.mark.parametrize(
    "command",
    [
        ("muxer", "declare", "l", "--class", "lossy", "--seed", 1 << 63),
        ("queue", "declare", "q", "--messages-max", 1 << 63),
        ("queue", "update", "q", "--messages-max", 1 << 63),
        ("route", "/muxers/m", "--property", f"size={1 << 64}"),
        ("attach", "q", "m", "--property", f"size={1 << 64}"),
    ],
)
def test_a_number_that_is_too_long_is_a_wrong_command_line(on_broker: Run, command: tuple[Any, ...]) -> None:
    """Whatever it is for; the broker is not asked."""
    refused = on_broker(*command)
    assert (refused.exit_code, refused.stdout) == (ExitCode.USAGE, "")
    assert re.search("64 bits|is not in the range|expected a whole number from 0 to", refused.stderr)


def test_every_class_is_declared_with_its_options(on_broker: Run) -> None:
    """As its attributes tell it afterwards."""
    options: dict[MuxerKind, tuple[Any, ...]] = {
        MuxerKind.LOSSY: ("--probability", 0.25, "--seed", -7),
        MuxerKind.WILD_DESTINATION: ("--separator", "/"),
    }
    for kind in MuxerKind:
        arguments = ("--class", kind.text, *options.get(kind, ()), "--output", "json")
        told = json.loads(on_broker("muxer", "declare", f"of-{kind.text}", *arguments).stdout)
        assert told == {"name": f"of-{kind.text}", "class": kind.text, "created": True}
    rows = {row["name"]: row for row in json.loads(on_broker("muxer", "list", "--output", "json").stdout)}
    assert (rows["of-lossy"]["probability"], rows["of-lossy"]["seed"]) == (0.25, -7)
    assert (rows["of-wild-destination"]["separator"], rows["of-wild-property"]["separator"]) == ("/", ".")
    assert rows["of-simple"]["probability"] is None


def test_a_probability_is_shown_as_it_is(on_broker: Run, run: Run, broker: ChildBroker) -> None:
    """However near it is to never and always; now, and as it was."""
    for name, probability in (("seldom", "0.001"), ("mostly", "0.9995")):
        on_broker("muxer", "declare", name, "--class", "lossy", "--probability", probability)
        assert ["probability", probability] in _words(on_broker("muxer", "show", name).stdout)
        for row in (on_broker("muxer", "list"), run("muxer", "list", "--data", broker.directory, "--at", "now")):
            assert probability in next(words for words in _words(row.stdout) if words[0] == name)


@pytest.mark.parametrize(
    ("kind", "options", "keys", "by"),
    [
        ("simple", (), {}, ""),
        ("lossy", (), {}, ""),
        ("destination", ("--destination", "x"), {"destination": "x"}, ": x"),
        ("wild-destination", ("--pattern", "x.#"), {"pattern": "x.#"}, ": x.#"),
        ("selector", ("--selector", "size > 3"), {"selector": "size > 3"}, ": size > 3"),
        (
            "property",
            ("--property", "urgent", "--property", "size=3", "--property", 'code="3"'),
            {"property": ["urgent", "size=3", 'code="3"']},
            ': urgent and size=3 and code="3"',
        ),
        ("wild-property", ("--property", "path=src.*"), {"property": ["path=src.*"]}, ": path=src.*"),
    ],
)
def test_a_queue_is_attached_and_detached_by_the_same_options(
    on_broker: Run, kind: str, options: tuple[str, ...], keys: dict[str, Any], by: str
) -> None:
    """Messages flow from MUXER to MEMBER; attaching again is done already, detaching again finds nothing."""
    name = f"to-{kind}"
    on_broker("muxer", "declare", name, "--class", kind)
    on_broker("queue", "declare", "member")
    assert on_broker("attach", "member", name, *options).stdout == f"attached {name} -> member{by}\n"
    assert on_broker("attach", "member", name, *options).stdout == f"exists {name} -> member{by}\n"
    shown = json.loads(on_broker("muxer", "show", name, "--output", "json").stdout)
    assert [row["member"] for row in shown["members"]] == ["member"]
    table = on_broker("muxer", "show", name).stdout.splitlines()
    assert table[-1].split(maxsplit=1) == ["member", *([by.removeprefix(": ")] if by else [])]
    told = on_broker("detach", "member", name, *options, "--output", "json").stdout
    assert json.loads(told) == {"muxer": name, "member": "member", **keys, "deleted": True}
    again = on_broker("detach", "member", name, *options)
    assert (again.exit_code, "is not attached" in again.stderr) == (ExitCode.NOT_FOUND, True)


def test_a_lossy_muxer_is_updated_where_it_is(on_broker: Run) -> None:
    """Either value or both, what is not said stays; so do draws and attachments. Once more is done as well."""
    on_broker("queue", "declare", "behind")
    on_broker("muxer", "declare", "net", "--class", "lossy", "--seed", 5)
    on_broker("attach", "behind", "net")
    on_broker("send", "/muxers/net", "x", "--count", 3)
    before = json.loads(on_broker("muxer", "show", "net", "--output", "json").stdout)
    for word in ("updated", "unchanged"):
        assert on_broker("muxer", "update", "net", "--probability", 0).stdout == f"{word} net\n"
    on_broker("send", "/muxers/net", "x", "--count", 2)
    told = json.loads(on_broker("muxer", "update", "net", "--seed", -7, "--output", "json").stdout)
    after = before | {"probability": 0.0, "seed": -7, "draws": 5}
    members = after.pop("members")
    assert told == after | {"updated": True}
    again = on_broker("muxer", "update", "net", "--seed", -7, "--output", "json")
    assert (again.exit_code, json.loads(again.stdout)) == (ExitCode.OK, after | {"updated": False})
    after["members"] = members
    assert json.loads(on_broker("muxer", "show", "net", "--output", "json").stdout) == after
    assert json.loads(on_broker("queue", "show", "behind", "--output", "json").stdout)["available"] == 3


def test_deleting_can_be_conditional(on_broker: Run) -> None:
    """--if-unused while another passes on to it, --if-empty while it passes on."""
    for name in ("upper", "lower"):
        on_broker("muxer", "declare", name, "--class", "simple")
    on_broker("attach", "muxer:lower", "upper")
    unused = on_broker("muxer", "delete", "lower", "--if-unused")
    assert (unused.exit_code, "1 muxer can send to it" in unused.stderr) == (ExitCode.FAILED, True)
    empty = on_broker("muxer", "delete", "upper", "--if-empty")
    assert (empty.exit_code, "1 attachment" in empty.stderr) == (ExitCode.FAILED, True)
    assert on_broker("muxer", "delete", "lower").exit_code == ExitCode.OK
    assert json.loads(on_broker("muxer", "show", "upper", "--output", "json").stdout)["members"] == []


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("muxer", "declare", "m", "--class", "fast"), "'fast' is not one of", ExitCode.USAGE),
        (("muxer", "declare", "m"), "Missing option '--class'", ExitCode.USAGE),
        (("muxer", "declare", "m", "--class", "lossy", "--probability", "2"), "0<=x<=1", ExitCode.USAGE),
        (("muxer", "declare", "m" * 256, "--class", "simple"), "1 to 255 bytes", ExitCode.FAILED),
        (("muxer", "declare", "a/b", "--class", "simple"), "has no '/'", ExitCode.FAILED),
        (
            ("muxer", "declare", "m", "--class", "simple", "--seed", "1"),
            "has no probability and no seed",
            ExitCode.FAILED,
        ),
        (("muxer", "declare", "QUEUE", "--class", "simple"), "exists as destination", ExitCode.FAILED),
        (("muxer", "delete", "QUEUE"), "predeclared", ExitCode.FAILED),
        (("muxer", "update", "QUEUE", "--seed", "1"), "has no probability and no seed", ExitCode.FAILED),
        (("muxer", "update", "none", "--seed", "1"), "none: the broker says 404: no muxer", ExitCode.NOT_FOUND),
        (("muxer", "update", "QUEUE"), "give --probability, --seed or both", ExitCode.USAGE),
        (("muxer", "update", "QUEUE", "--probability", "2"), "0<=x<=1", ExitCode.USAGE),
        (("attach", "bad-q", "bad-none"), "bad-none -> bad-q: the broker says 404: no muxer", ExitCode.NOT_FOUND),
        (("attach", "bad-none", "bad-select", "--selector", "x"), "no queue 'bad-none'", ExitCode.NOT_FOUND),
        (("attach", "muxer:none", "bad-select", "--selector", "x"), "no muxer 'none'", ExitCode.NOT_FOUND),
        (("attach", "bad-q", "bad-select", "--selector", "a = = 1"), "at character 4, '='", ExitCode.FAILED),
        (("attach", "bad-q", "bad-select"), "needs a selector", ExitCode.FAILED),
        (("attach", "bad-q", "bad-select", "--pattern", "x"), "needs a selector, found pattern", ExitCode.FAILED),
        (("attach", "bad-q", "TOPIC", "--pattern", "a.b*"), "stands for whole words", ExitCode.FAILED),
        (("attach", "bad-q", "TOPIC", "--pattern", "a", "--selector", "b"), "pattern and selector are", ExitCode.USAGE),
        (("attach", "bad-q", "bad-select", "--property", "=1"), "names no property", ExitCode.USAGE),
        (
            ("attach", "muxer:bad-select", "bad-select", "--selector", "TRUE"),
            "messages would loop",
            ExitCode.FAILED,
        ),
        (("queue", "declare", "bad-new", "--template", "none"), "no template 'none': there are", ExitCode.NOT_FOUND),
        (("queue", "delete", "bad-used", "--if-empty"), "holds 1 message", ExitCode.FAILED),
    ],
)
def test_what_cannot_be_is_one_message(on_broker: Run, arguments: tuple[str, ...], words: str, code: ExitCode) -> None:
    """With the exit code that fits, and nothing done."""
    on_broker("muxer", "declare", "bad-select", "--class", "selector")
    on_broker("queue", "declare", "bad-q")
    if "bad-used" in arguments:
        on_broker("send", "bad-used", "x")
    before = [on_broker("muxer", "list", "--output", "json").stdout, on_broker("wiring", "graph").stdout]
    result = on_broker(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert [on_broker("muxer", "list", "--output", "json").stdout, on_broker("wiring", "graph").stdout] == before


def test_a_queue_is_declared_from_a_template(on_broker: Run) -> None:
    """By its name; the queue says so."""
    on_broker("queue", "declare", "made", "--template", "temporary")
    assert json.loads(on_broker("queue", "show", "made", "--output", "json").stdout)["template"] == "temporary"
    other = on_broker("queue", "declare", "made", "--exclusive")
    assert other.exit_code == ExitCode.FAILED
    assert other.stderr.endswith(
        "queue 'made' exists with exclusive false, template temporary, but the request asks for exclusive true, "
        "template normal: declare another queue, and move to it\n"
    )
