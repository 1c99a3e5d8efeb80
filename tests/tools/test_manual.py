"""The man pages: one for each command, which a formatter reads without a complaint."""

import shutil
import subprocess
from pathlib import Path

import click
import pytest

from ambermq.tools.cli import main
from ambermq.tools.manual import man_pages, write_pages
from tests.tools.tree import children


def _names(command: click.Command, path: str) -> set[str]:
    below = {name: child for name, child in children(command).items() if not child.hidden}
    return {path}.union(*(_names(child, f"{path}-{name}") for name, child in below.items()))


def test_each_command_has_a_page(tmp_path: Path) -> None:
    names = _names(main, "ambermq")
    assert write_pages(tmp_path) == len(names)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.1" for name in names}


def test_a_page_says_what_the_help_says() -> None:
    page = dict(man_pages())["ambermq-queue-purge"]
    assert ".SH NAME\nambermq-queue-purge \\- " in page
    assert ".B ambermq queue purge\n" in page
    assert ".B \\-\\-url URL\n" in page
    assert "Example: ambermq queue purge" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_reads_every_page(tmp_path: Path) -> None:
    write_pages(tmp_path)
    for path in tmp_path.iterdir():
        done = subprocess.run(
            ["groff", "-man", "-Tascii", "-ww", "-W", "break", "-z", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), path.name
