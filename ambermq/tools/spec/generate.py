"""Generates the tables and the composite classes in protocol/ from the OASIS XML of AMQP 1.0.

Rule 1: the XML is the source; what it says is not typed a second time anywhere.
Rule 2: the output is checked in, so that nothing needs the XML to run, and equal for equal input, so that a diff means
a change.
Rule 3: reading (oasis_xml.py) knows XML and no Python; rendering (render.py) Python and no XML.

The XML comes with Debian's package amqp-specs.

    python -m ambermq.tools.spec --write    rewrites the files
    python -m ambermq.tools.spec --check    exits 1 with a diff when they differ from the XML, 2 when there is no XML
"""

import argparse
import difflib
import sys
from pathlib import Path

from ambermq.tools.spec.oasis_xml import read_specification
from ambermq.tools.spec.render import render_performatives, render_tables

__all__ = ["difference", "generated_files", "main"]

SPECS_DIRECTORY = Path("/usr/share/amqp/specs/1-0")
"""Where Debian's package puts the XML."""

PROTOCOL_DIRECTORY = Path(__file__).resolve().parents[2] / "protocol"
"""Where the generated files are checked in."""


def generated_files(specs: Path = SPECS_DIRECTORY) -> dict[str, str]:
    """Path below protocol/ -> its text as the XML says; FileNotFoundError when a part of the XML is missing."""
    specification = read_specification(specs)
    return {
        "amqp10/spec.py": render_tables(specification),
        "amqp10/performatives/classes.py": render_performatives(specification),
    }


def difference(files: dict[str, str]) -> str:
    """Return a unified diff from what is checked in to what should be; empty when they are equal."""
    return "".join(_file_difference(name, text) for name, text in files.items())


def _file_difference(name: str, expected: str) -> str:
    path = PROTOCOL_DIRECTORY / name
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(
        found.splitlines(keepends=True),
        expected.splitlines(keepends=True),
        fromfile=f"protocol/{name} (checked in)",
        tofile=f"protocol/{name} (generated)",
    )
    return "".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code: 0 done or equal, 1 different, 2 no XML."""
    options = _parser().parse_args(arguments)
    try:
        files = generated_files(options.specs)
    except FileNotFoundError as error:
        sys.stderr.write(
            f"{error.filename} is missing: install Debian's package amqp-specs, or name a --specs directory\n"
        )
        return 2
    if options.write:
        for name, text in files.items():
            (PROTOCOL_DIRECTORY / name).write_text(text, encoding="utf-8")
        return 0
    diff = difference(files)
    sys.stdout.write(diff)
    return 1 if diff else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ambermq.tools.spec", description="AMQP 1.0's tables from the OASIS XML."
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="compare with what is checked in (the default)")
    action.add_argument("--write", action="store_true", help="rewrite what is checked in")
    parser.add_argument("--specs", type=Path, default=SPECS_DIRECTORY, help="the directory of the XML files")
    return parser
