"""The targets of make: what each needs, and that an environment that has it is not installed again."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, text_of

_EXTRAS: dict[str, Any] = runpy.run_path(str(ROOT / "tests" / "extras.py"))
_PROJECT = {
    "name": "amber",
    "dependencies": ["pytest>=8", "nothing-of-that-name>=2"],
    "optional-dependencies": {
        "one": ["hypothesis>=9999", "here-alone>=1; sys_platform in 'no such system'", "rich>=13,<99"],
        "all": ["amber[one]", "another.thing"],
    },
}


def _prerequisites() -> dict[str, set[str]]:
    """Return what each target of the Makefile needs first."""
    rules = re.findall(r"^([a-z-]+):([^=#\n]*?)(?: ##.*)?$", text_of("Makefile"), re.MULTILINE)
    return {target: set(needed.split()) for target, needed in rules}


def test_make_alone_lists_its_targets() -> None:
    """Each target with what it does, a line each; no target runs."""
    words = re.findall(r"^\.PHONY: (.*)$", text_of("Makefile"), re.MULTILINE)[0].split()
    command = ["make", "--no-print-directory", "-C", str(ROOT)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert sorted(line.split()[1] for line in told) == sorted(words)
    assert all(line.startswith("make ") and line.split()[2:] for line in told)


@pytest.mark.parametrize("word", ["run", "demo", "spec"])
def test_the_base_is_enough(word: str) -> None:
    """What a person tries first needs no extra."""
    assert _prerequisites()[word] == {"$(BASE)"}


@pytest.mark.parametrize("word", ["lint", "test-fast", "spark", "bench", "crash", "soak", "fuzz", "test-interop"])
def test_what_checks_needs_the_extra_dev(word: str) -> None:
    """Each word installs what it needs by itself."""
    assert "$(DEV)" in _prerequisites()[word]


def test_nothing_is_missing_here() -> None:
    """The environment of the tests holds the extra `dev`, so make would install nothing."""
    command = [sys.executable, str(ROOT / "tests" / "extras.py"), "dev"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ("", ["nothing-of-that-name>=2"]),
        ("one", ["nothing-of-that-name>=2", "hypothesis>=9999"]),
        ("all", ["nothing-of-that-name>=2", "hypothesis>=9999", "another.thing"]),
    ],
)
def test_what_is_missing_is_named(extra: str, expected: list[str]) -> None:
    """What is not there or too old; extras within extras count, other systems do not."""
    assert list(_EXTRAS["missing"](_PROJECT, extra)) == expected


def test_another_copy_does_not_count(tmp_path: Path) -> None:
    """A package that was installed from elsewhere is not the one of this tree."""
    assert _EXTRAS["is_installed_from"](ROOT, "ambermq")
    assert not _EXTRAS["is_installed_from"](tmp_path, "ambermq")
    assert not _EXTRAS["is_installed_from"](ROOT, "no_such_package")
