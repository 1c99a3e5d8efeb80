"""`ambermq route`, asked of a broker and read from its log."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
probability = 0.9

[[queues]]
name = "near"

[[queues]]
name = "far"

[[attachments]]
muxer = "colours"
member = "near"
property = ["colour"]

[[attachments]]
muxer = "colours"
member = "muxer:net"
property = ["colour=red", "size=3"]

[[attachments]]
muxer = "net"
member = "far"

[[attachments]]
muxer = "TOPIC"
member = "far"
pattern = "far.#"
"""

_QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("/muxers/colours", "--property", "colour=red", "--property", "size=3.0"),
    ("/muxers/colours/x", "--property", 'colour="red"'),
    ("/muxers/colours",),
    ("/topics/far.away",),
    ("/muxers/TOPIC", "--to", "far.x"),
    ("/muxers/TOPIC", "--subject", "far.y"),
    ("near",),
    ("new",),
    ("", "--to", "/topics/far"),
)
_REFUSED = (("/muxers/none",), ("/nowhere",), ("",), ("q", "--property", "header.priority=high"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ChildBroker, Path]]:
    """A broker with that wiring, and its directory."""
    place = tmp_path_factory.mktemp("route")
    (place / "w.toml").write_text(_WIRING)
    broker = ChildBroker(place / "data")
    broker.start()
    yield broker, place
    broker.kill()


def _answers(run: Run, place: Path) -> list[Any]:
    told = [
        json.loads(run("route", *asked, "--data", place / "data", "--output", "json").stdout) for asked in _QUESTIONS
    ]
    refused = [run("route", *asked, "--data", place / "data") for asked in _REFUSED]
    return [*told, *((result.exit_code, result.stderr.partition(": ")[2].rpartition(": ")[2]) for result in refused)]


def test_a_way_is_told_alike_by_the_broker_and_by_its_log(run: Run, data: tuple[ChildBroker, Path]) -> None:
    """Every question and every refusal; nothing is drawn, sent or made for it."""
    broker, place = data
    assert run("wiring", "apply", place / "w.toml", "--data", place / "data").exit_code == ExitCode.OK
    shown = run("route", *_QUESTIONS[0], "--data", place / "data").stdout
    assert shown.splitlines() == [
        "muxer colours (property)",
        "  to queue near: colour",
        "  to muxer net: colour=red and size=3",
        "muxer net (lossy) passes it on with probability 0.9",
        "  to queue far",
        "reaches 2 queues: near, far",
    ]
    running = _answers(run, place)
    assert [told["queues"] for told in running[: len(_QUESTIONS)]] == [
        *(["near", "far"], ["near"], [], ["far"], ["far"], ["far"], ["near"], [], ["far"]),
    ]
    assert running[7]["creates"] == "new"
    assert running[len(_QUESTIONS) :] == [
        (ExitCode.NOT_FOUND, "no muxer 'none'\n"),
        (ExitCode.NOT_FOUND, running[-3][1]),
        (ExitCode.FAILED, "a message to the anonymous terminus names no address in `to`\n"),
        (ExitCode.FAILED, running[-1][1]),
    ]
    assert json.loads(run("queue", "list", "--data", place / "data", "--output", "json").stdout)[0]["published"] == 0
    broker.kill()
    assert _answers(run, place) == running


def test_a_missing_queue_is_told(run: Run, data: tuple[ChildBroker, Path]) -> None:
    """A link to its address would make it."""
    _, place = data
    told = run("route", "new", "--data", place / "data").stdout.splitlines()[0]
    assert told.startswith("queue new does not exist: a link would create it, attached to QUEUE by its name")


def test_what_is_no_field_is_a_wrong_command_line(run: Run) -> None:
    """A property of a message has a value."""
    for text in ("colour", "=red"):
        assert run("route", "x", "--property", text, "--data", "none").exit_code == ExitCode.USAGE


def test_a_stopped_broker_is_told_of_by_its_configuration(run: Run, tmp_path: Path) -> None:
    """By the defaults where none is given, and that is said where it matters."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    on_broker = run("route", "new", "--data", tmp_path / "data", "--config", tmp_path / "broker.toml")
    assert (on_broker.exit_code, on_broker.stdout) == (ExitCode.USAGE, "")
    broker.kill()
    guessed = run("route", "new", "--data", tmp_path / "data")
    assert "by the default configuration: --config names the broker's" in guessed.stdout.splitlines()[0]
    (tmp_path / "broker.toml").write_text("[engine]\nauto_create = false\n")
    refused = run("route", "new", "--data", tmp_path / "data", "--config", tmp_path / "broker.toml")
    assert (refused.exit_code, refused.stdout) == (ExitCode.NOT_FOUND, "")
    assert "addresses are not created on this broker (auto_create)" in refused.stderr
