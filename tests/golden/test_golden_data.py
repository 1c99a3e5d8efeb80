"""Every data directory that an earlier version wrote opens, and says what it said when it was written."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from ambermq.engine.events.registry import TYPE_NAMES
from tests.golden.data.archive import unpack
from tests.golden.data.observation import observe, restored, snapshot_file
from tests.golden.data.serving import delivered
from tests.golden.data.write import main

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


def test_states_stories_and_messages_are_what_they_were(golden: Golden, copy: Path) -> None:
    """Without a recovery: what each log holds, what its checks find, and what its history tells."""
    found = as_json(observe(copy, golden["questions"], golden["fields"]))
    for vhost, expected in golden["answers"].items():
        found[vhost]["events"] = known_facts(found[vhost]["events"], expected["events"])
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
