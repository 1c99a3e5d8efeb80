"""docs/contexts.md shows what its commands print, one after the other, without a broker."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from ambermq.tools.cli import main
from tests.docs.pages import steps

_FILE = re.compile(r"error: \S+:")


def _shown(text: str) -> list[list[str]]:
    return [_FILE.sub("error: FILE:", line).split() for line in text.splitlines()]


def test_the_examples_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints the same words in the same order."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("AMBERMQ_URL", "AMBERMQ_DATA", "AMBERMQ_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    told = steps("docs/contexts.md")
    assert len(told) > 6
    for command, shown in told:
        result = CliRunner().invoke(main, shlex.split(command)[1:], prog_name="ambermq")
        assert _shown(result.stdout if result.exit_code == 0 else result.stderr) == _shown(shown), command
