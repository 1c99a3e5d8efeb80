"""A page's commands run one after the other on a new broker, each against what the page shows."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from ambermq.tools.cli import main
from tests.docs.pages import steps
from tests.docs.tours.test_readme import Tour

__all__ = ["check_consoles"]

_TOLD = re.compile(r"[\d.]+ s$|\d{4}-\d\d-\d\dT[\d:.]+Z", re.MULTILINE)
_SHELL = frozenset("|<>&$")


def check_consoles(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Assert that each command prints what the page shows, but for times; return how many there are."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("AMBERMQ_DATA", "./data")
    monkeypatch.delenv("AMBERMQ_URL", raising=False)
    tour = Tour(place)
    tour.broker.start()
    told = steps(page)
    try:
        for command, shown in told:
            assert _TOLD.sub("TIME", _run(tour, command)) == _TOLD.sub("TIME", shown), command
    finally:
        tour.broker.kill()
    return len(told)


def _run(tour: Tour, command: str) -> str:
    """Run a command: in this process where no shell is needed, which saves its start."""
    words = shlex.split(command)
    if words[0] != "ambermq" or _SHELL & set(command):
        return tour.run(command)
    result = CliRunner().invoke(main, words[1:], prog_name="ambermq")
    # What is refused is shown as well, where the page shows a refusal.
    return result.stdout if result.exit_code == 0 else result.stdout + result.stderr
