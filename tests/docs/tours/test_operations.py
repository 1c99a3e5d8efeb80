"""The commands of docs/operations.md, run one after the other on a broker with messages."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from tests.docs.pages import text_of


def _commands(heading: str) -> list[str]:
    """Return the commands of the block below a heading."""
    section = text_of("docs/operations.md").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return str(block).splitlines()


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChildBroker:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AMBERMQ_URL", raising=False)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("AMBERMQ_DATA", str(tmp_path / "data"))
    return ChildBroker(tmp_path / "data")


def _run(command: str) -> str:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def test_a_backup_is_written_and_restored(broker: ChildBroker, tmp_path: Path) -> None:
    """Paths below / become paths of the test."""
    (tmp_path / "backup").mkdir()
    broker.start()
    try:
        _run("ambermq send orders coffee --count 25")
        for command in _commands("Back up"):
            _run(command.replace("/backup/", f"{tmp_path}/backup/"))
    finally:
        broker.stop()
    for command in _commands("Restore"):
        shown = _run(command.replace("/backup/", f"{tmp_path}/backup/").replace("/var/lib/", f"{tmp_path}/"))
    assert re.search(r"^orders +25 ", shown, re.MULTILINE)


def test_a_purged_queue_comes_back(broker: ChildBroker) -> None:
    """The messages of the offset before the purge are sent again."""
    find, browse, send = _commands("After a disaster")
    broker.start()
    try:
        _run("ambermq send orders coffee --count 3 --id cup")
        _run("ambermq queue purge orders")
        (purge,) = [json.loads(line) for line in _run(f"{find} --output json").splitlines()]
        _run(browse.replace("'offset before the purge'", str(purge["offset"] - 1)))
        _run(send)
        found = [json.loads(line) for line in _run("ambermq receive orders --count 3 --ndjson").splitlines()]
    finally:
        broker.stop()
    assert [(one["id"], one["text"]) for one in found] == [(f"cup-{number}", "coffee") for number in (1, 2, 3)]
