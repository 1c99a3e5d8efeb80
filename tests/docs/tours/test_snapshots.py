"""docs/snapshots.md shows what its commands print, run against a broker that has lived as the page tells."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main
from tests.docs.pages import text_of

_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_NUMBER = re.compile(r"\d[\d,]*")
_BETWEEN = (
    "receive orders --count 600",
    "queue declare invoices",
    "send orders tea --count 50",
    "snapshot create --name after-upgrade",
)
"""What happens between the page's two snapshots."""


def _examples() -> Iterator[tuple[str, str]]:
    """Yield the commands of the first section, and what the page shows below each."""
    section = text_of("docs/snapshots.md").partition("## Take a snapshot\n")[2].partition("\n## ")[0]
    for block in re.findall(r"(?:^ {4}.*\n)+", section, re.MULTILINE):
        for step in re.split(r"^ {4}\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            yield command, shown


def _told(text: str) -> list[list[str]]:
    """Return the words of each line: times and numbers differ from run to run."""
    return [_NUMBER.sub("N", _TIME.sub("T", line)).split() for line in text.splitlines()]


def _run(line: str, url: str) -> str:
    words = shlex.split(line)
    result = CliRunner().invoke(main, [*words, *([] if "--data" in words else ["--url", url])])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_examples_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of the page prints the same words in the same order."""
    for name in ("AMBERMQ_URL", "AMBERMQ_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    broker = ChildBroker(Path("data"))
    broker.start()
    try:
        _run("send orders coffee --count 1000", broker.url)
        examples = list(_examples())
        assert len(examples) == 3
        for number, (command, shown) in enumerate(examples):
            assert _told(_run(command.removeprefix("ambermq "), broker.url)) == _told(shown), command
            if number == 0:
                for line in _BETWEEN:
                    _run(line, broker.url)
    finally:
        broker.kill()
