"""docs/history.md's story, told again on a broker of its own."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tests.docs.tours.test_readme import Tour

_PAGE = "docs/history.md"
_TOLD = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"ambermq-\d+-[0-9a-f]+"), "CONTAINER"),
    (re.compile(r"\bmessages?\b"), "messages"),
    (re.compile(r": \d[\d ,to]*$", re.MULTILINE), ": OFFSETS"),
    (re.compile(r"[▁▂▃▄▅▆▇█]+"), "CHART"),
    (re.compile(r"(?<!\w)\d[\d,]*(?:\.\d+)?\b"), "NUMBER"),
)


@pytest.fixture
def tour(tmp_path: Path) -> Iterator[Tour]:
    """A shell beside a running broker."""
    tour = Tour(tmp_path)
    tour.broker.start()
    yield tour
    tour.broker.kill()


def _told(text: str, command: str) -> list[tuple[str, ...]]:
    """Return the words of each kind of line, without what differs from run to run: numbers of rows and events too."""
    is_of_log = command.startswith("ambermq history")
    for pattern, word in _TOLD if is_of_log else _TOLD[:2]:
        text = pattern.sub(word, text)
    text = re.sub(r"\d+\.\d+ s$", "SECONDS", text.rstrip())
    lines = [tuple(line.split()) for line in text.splitlines()]
    return sorted(set(lines)) if is_of_log else lines


def test_the_story_goes_as_the_page_tells_it(tour: Tour) -> None:
    """Every command prints what the page shows, but for times, links and numbers of the log."""
    (orders,) = blocks(_PAGE, "json")
    (tour.place / "orders.ndjson").write_text(orders)
    steps = [step for block in blocks(_PAGE, "console") for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    for step in steps:
        command, _, shown = step.partition("\n")
        assert _told(tour.run(command), command) == _told(shown, command), command
    assert len(steps) > 8
