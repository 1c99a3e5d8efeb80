"""The tour of README.md and docs/tour.md, and the snippets, run against a broker in a temporary directory."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from tests.docs.pages import ROOT, blocks, steps, text_of

_RHEA = ROOT / "tests" / "interop" / "rhea" / "node_modules"
_SECONDS = 60.0

_TOLD = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"ambermq-\d+-[0-9a-f]+"), "CONTAINER"),
    (re.compile(r"amqp://127\.0\.0\.1:\d+|unix:/\S*?/data/broker\.sock"), "URL"),
    (re.compile(r"\d+\.\d+"), "FRACTION"),
)
_DURATION = re.compile(r"\+?[\d.]+ (?:us|ms|s|min|h)\b")
_MEASURED = ("ambermq log", "ambermq bench", "ambermq snapshot", "ambermq history")
_NUMBER = re.compile(r"(?<!\w)\d[\d,]*(?:\.\d+)?\b")


class Tour:
    """A shell in a directory of its own, and the broker beside it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.broker = ChildBroker(place / "data")
        self._environment = dict(os.environ, AMBERMQ_DATA="./data", LC_ALL="C.UTF-8")
        self._environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(self, command: str) -> str:
        """Run one command of the tour; returns what it printed."""
        if command.endswith("ambermq serve --data ./data"):
            # Where the tour has killed it before, it is dead but not yet buried.
            self.broker.kill()
            self.broker.start()
            return f"ready {self.broker.url} data=./data\n"
        if command.startswith("export "):
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.place,
            env=self._environment,
            text=True,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def script(self, command: list[str], **environment: str) -> str:
        """Run a snippet's file; returns what it printed."""
        done = subprocess.run(
            command,
            cwd=self.place,
            env=self._environment | environment,
            text=True,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def snippet(self, page: str, language: str, name: str) -> Path:
        """Write the snippet of a page to a file, with this broker's URL in it."""
        (text,) = blocks(page, language)
        assert "5672" in text
        path = self.place / name
        path.write_text(text.replace("5672", self.broker.url.rpartition(":")[2]))
        return path


@pytest.fixture
def tour(tmp_path: Path) -> Iterator[Tour]:
    """A tour whose broker has not been started."""
    tour = Tour(tmp_path)
    yield tour
    tour.broker.kill()


def _told(text: str, command: str) -> list[list[str]]:
    """Return the words of each line, without what differs from run to run.

    How messages fall into batches does, so all numbers that a log or a measurement shows; others must be the same.
    """
    for pattern, word in _TOLD:
        text = pattern.sub(word, text)
    if any(measured in command for measured in _MEASURED):
        text = _NUMBER.sub("NUMBER", _DURATION.sub("DURATION", text.replace("FRACTION", "0")))
    return [line.split() for line in text.splitlines()]


def test_the_tour_shows_what_happens(tour: Tour) -> None:
    """Every command prints what the pages show, but for times, ports and measured figures.

    The second page goes on where the first one ends.
    """
    told = [*steps("README.md"), *steps("docs/tour.md")]
    for command, shown in told:
        expected = _told(shown, command)
        deadline = time.monotonic() + _SECONDS
        # The next segment is made ready beside the broker's work, so a listing may be a moment too early.
        while (found := _told(tour.run(command), command)) != expected and command.startswith("ambermq log"):
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        assert found == expected, command
    assert len(told) > 15


def test_the_python_snippet_runs(tour: Tour) -> None:
    """The Proton snippet sends a message and prints it as received."""
    tour.broker.start()
    assert tour.script([sys.executable, str(tour.snippet("README.md", "python", "hello.py"))]) == "hello from proton\n"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed: no node on the PATH")
@pytest.mark.skipif(not _RHEA.is_dir(), reason="rhea is not installed: run `make rhea`")
def test_the_node_snippet_runs(tour: Tour) -> None:
    """The rhea snippet hears the outcome and prints the message."""
    tour.broker.start()
    path = tour.snippet("docs/clients.md", "javascript", "hello.js")
    printed = tour.script(["node", str(path)], NODE_PATH=str(_RHEA)).splitlines()
    assert sorted(printed) == ["accepted: the message is on disk", "hello from rhea"]


def test_the_set_up_is_two_commands() -> None:
    """A fresh machine needs two commands, and the second one makes the environment."""
    (commands,) = blocks("README.md", "sh")
    first, second = commands.splitlines()
    assert first.startswith("git clone ")
    assert "venv" in second
    assert "pip install" in second


def test_the_first_page_is_short() -> None:
    """README.md has less than 200 lines; what is not of the first ten minutes has pages of its own."""
    assert len(text_of("README.md").splitlines()) < 200
