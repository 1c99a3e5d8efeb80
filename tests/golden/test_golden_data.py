"""Every data directory that an earlier version wrote opens, and says what it said when it was written."""

import json
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest

from ambermq import __version__
from ambermq.engine.events.registry import TYPE_NAMES, least_release, release_order
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.golden.data.archive import unpack
from tests.golden.data.observation import command, observe, restored, snapshot_file, vhost_path
from tests.golden.data.serving import delivered
from tests.golden.data.write import main
from tests.signposts import ROOT

_DIRECTORIES: Final = sorted(path.parent for path in (Path(__file__).parent / "data").glob("*/expected.json"))

Golden = Mapping[str, Any]


@pytest.fixture(autouse=True)
def no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on what the machine's environment names."""
    monkeypatch.delenv("AMBERMQ_URL", raising=False)
    monkeypatch.delenv("AMBERMQ_DATA", raising=False)


@pytest.fixture(scope="module", params=_DIRECTORIES, ids=lambda path: path.name)
def directory(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


@pytest.fixture(scope="module")
def golden(directory: Path) -> Golden:
    """What was found when it was written."""
    expected = json.loads((directory / "expected.json").read_text())
    assert isinstance(expected, dict)
    return expected


@pytest.fixture
def copy(directory: Path, tmp_path: Path) -> Path:
    """The data directory as the SIGKILL left it, but for what is allocated ahead."""
    unpack(directory / "data.tar.zst", tmp_path / "data")
    return tmp_path / "data"


def as_json(value: Any) -> Any:
    """Return a value as a file has it: tuples are lists there."""
    return json.loads(json.dumps(value))


def known_facts(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Return of each event the facts that are expected: a later version may tell more."""
    return {kind: {name: event.get(name) for name in expected[kind]} for kind, event in found.items()}


def known_previews(
    found: list[list[dict[str, Any]]], expected: list[list[dict[str, Any]]]
) -> list[list[dict[str, Any]]]:
    """Return browsed messages with as much of each body's preview as is expected: a later version may show more."""
    for row, known in zip(chain(*found), chain(*expected), strict=True):
        if "body" in known:
            row["body"] = row["body"].removesuffix("…")[: len(known["body"].removesuffix("…"))]
            row["body"] += "…" * known["body"].endswith("…")
    return found


def test_states_stories_and_messages_are_what_they_were(golden: Golden, copy: Path) -> None:
    """Without a recovery: what each log holds, what its checks find, and what its history tells."""
    found = as_json(observe(copy, golden["questions"], golden["fields"]))
    for vhost, expected in golden["answers"].items():
        found[vhost]["events"] = known_facts(found[vhost]["events"], expected["events"])
        found[vhost]["browsed"] = known_previews(found[vhost]["browsed"], expected["browsed"])
        for what, answer in expected.items():
            assert found[vhost][what] == answer, (vhost, what)


def test_a_broker_recovers_and_delivers_the_same_messages(golden: Golden, copy: Path) -> None:
    """Over AMQP, after a start that recovers from the SIGKILL."""
    assert delivered(copy, golden["questions"]) == golden["delivered"]


def test_the_backup_restores_to_the_same_state_and_messages(golden: Golden, directory: Path, tmp_path: Path) -> None:
    """In a directory of its own, to every counter and byte."""
    assert as_json(restored(directory / "nightly.backup", tmp_path / "data", golden["fields"])) == golden["backup"]


def test_the_snapshot_file_holds_the_same_state(golden: Golden, directory: Path) -> None:
    """As the snapshot in the data directory, and the backup, which were made of it."""
    found = snapshot_file(directory / "nightly.snapshot", golden["fields"])
    assert found == golden["snapshot"]
    assert (
        found["digest"] == golden["backup"]["digest"] == golden["answers"]["default"]["snapshots"]["nightly"]["digest"]
    )


def test_an_upgraded_directory_is_backed_up(golden: Golden, copy: Path, tmp_path: Path) -> None:
    """The broker of today takes a snapshot of what it opened; its backup restores to the same queues."""
    broker = ChildBroker(copy)
    broker.start()
    try:
        command("snapshot", "create", "--name", "upgraded", "--data", copy)
        command("snapshot", "export", "upgraded", tmp_path / "upgraded.backup", "--data", copy)
        before = json.loads(command("queue", "list", "--data", copy, "--output", "json"))
        assert broker.stop() == 0
    finally:
        broker.kill()
    command("snapshot", "verify", tmp_path / "upgraded.backup")
    command("snapshot", "restore", tmp_path / "upgraded.backup", "--data", tmp_path / "restored")
    after = json.loads(command("queue", "list", "--at", "now", "--data", tmp_path / "restored", "--output", "json"))
    assert depths(after) == depths(before)


def depths(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Return the messages of each queue; the broker's own replies are none."""
    return {row["name"]: row["available"] + row["acquired"] for row in rows if not row["name"].startswith("$")}


def test_verify_tells_the_first_release_that_can_open_it(golden: Golden, copy: Path) -> None:
    """By the types of records in each log; damage does not hide it."""
    for vhost, answer in golden["answers"].items():
        exit_codes = (ExitCode.OK, ExitCode.DAMAGED)
        told = command("log", "verify", "--data", vhost_path(copy, vhost), "--output", "json", exit_codes=exit_codes)
        if answer["verify"].get("damage") is None:
            assert json.loads(told)["least_release"] == least_release(map(int, answer["records"])), vhost


def test_each_release_has_a_directory() -> None:
    """By its name: the version, and a word for what it adds. A later version is that of the next release."""
    released = re.findall(r"^## (\d[\d.]*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    found = [path.name.partition("-")[0] for path in _DIRECTORIES]
    assert released
    assert set(released) <= set(found)
    assert len([version for version in set(found) - set(released) if release_order(version)]) <= 1
    assert all(release_order(version) >= release_order(__version__) for version in set(found) - set(released))


def test_every_type_of_record_is_in_some_directory() -> None:
    """In the part of a log that is history still, so that the fold has met it. A new type comes with a directory."""
    told = {kind for path in _DIRECTORIES for kind in _types_in(path)}
    assert told == set(map(str, TYPE_NAMES))


def _types_in(path: Path) -> set[str]:
    answers = json.loads((path / "expected.json").read_text())["answers"].values()
    return {kind for one in answers for kind in one["history"]}


def test_no_directory_is_written_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What a version has written stays as it is."""
    monkeypatch.setattr("sys.argv", ["write", _DIRECTORIES[0].name])
    assert main() == 1
    assert "never written again" in capsys.readouterr().err
