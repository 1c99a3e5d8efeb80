"""`python tests/extras.py [EXTRA]`: name what this interpreter lacks of AmberMQ and an extra; exit 1 if anything.

The Makefile asks before it installs, so that an environment that a person has made is not installed a second time.
It needs nothing but the standard library, and reads the requirements from pyproject.toml.

Rule 1. A requirement is met if its distribution is there, and not older than it asks for; the upper bound is for pip.
Rule 2. AmberMQ itself must be importable from this tree, as `pip install -e .` makes it.
"""

import platform
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
_REQUIREMENT: Final = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extra>\w+)\])?(>=(?P<least>[\d.]+))?[^;]*(;(?P<marker>.*))?")
_MARKERS: Final = {"sys_platform": sys.platform, "platform_machine": platform.machine()}


def missing(project: dict[str, Any], extra: str) -> Iterator[str]:
    """Yield the requirements of a project, and of one of its extras, that are not met."""
    texts = list(project["dependencies"])
    if extra:
        texts += project["optional-dependencies"][extra]
    for text in texts:
        found = _REQUIREMENT.fullmatch(text)
        assert found is not None, text
        if found["name"] == project["name"]:
            yield from missing(project | {"dependencies": []}, found["extra"])
        elif _applies(found["marker"]) and not _is_met(found["name"], found["least"] or "0"):
            yield text.partition(";")[0].strip()


def _applies(marker: str | None) -> bool:
    """Whether a requirement is one of this machine: a marker is a Python expression over strings."""
    return marker is None or bool(eval(marker, {"__builtins__": {}}, _MARKERS))


def _is_met(name: str, least: str) -> bool:
    try:
        return _numbers(version(name)) >= _numbers(least)
    except PackageNotFoundError:
        return False


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def is_installed_from(root: Path, name: str) -> bool:
    """Whether a package is importable from the directory, and its command is there."""
    spec = find_spec(name)
    command = Path(sys.prefix, "bin", name)
    return spec is not None and spec.origin is not None and Path(spec.origin).is_relative_to(root) and command.exists()


def main(extra: str = "") -> int:
    """Print what is missing; return 1 if anything is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lacking = [] if is_installed_from(ROOT, project["name"]) else [project["name"]]
    lacking += missing(project, extra)
    if lacking:
        print("missing:", ", ".join(lacking))
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
