"""`ambermq audit`: show the audit log of a data directory, and verify its chain. A broker may run on it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from ambermq.tools.audit.chain import Fault, Line, audit_files, walk
from ambermq.tools.audit.writer import AUDIT_DIRECTORY
from ambermq.tools.client.broker_option import data_directory, directory_option
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_json, print_values, print_words, stream_output_option

__all__ = ["audit"]

_FIRST: Final = ("time", "event", "user", "peer")


@click.group(cls=TranslatingGroup, epilog="Example: ambermq audit show --data ./data")
def audit() -> None:
    """Show and verify the audit log."""


@audit.command("show", epilog="Example: ambermq audit show --data ./data --user alice --event login-failed")
@directory_option
@click.option("--user", metavar="NAME", help="Only what this user did.")
@click.option("--event", metavar="NAME", help="Only events of this name, such as login-failed.")
@click.option("--limit", type=click.IntRange(1), help="Only the last N events.")
@stream_output_option
def show(data: str | None, user: str | None, event: str | None, limit: int | None, output: str) -> None:
    """Print the events, the oldest first, one a line.

    --output json or ndjson prints NDJSON. A broken chain does not stop the command: `ambermq audit verify` looks at it.
    """
    directory = _directory(data)
    wanted = {name: value for name, value in (("user", user), ("event", event)) if value is not None}
    lines = [values for values in _lines(directory) if wanted.items() <= values.items()]
    for values in lines[-limit:] if limit else lines:
        if output != "table":
            print_json(values)
        else:
            # The quotes of JSON leave signs that turn the direction of text, or begin a sequence of a terminal.
            print_words(_text(values))


@audit.command("verify", epilog="Example: ambermq audit verify --data ./data")
@directory_option
@output_option
def verify(data: str | None, output: str) -> None:
    """Check that each line has the hash of the one before.

    Exits 5 if a line was changed, removed or inserted. Lines that were cut off at the end of the newest file leave no
    trace: compare the last time.
    """
    directory = _directory(data)
    count, first, last, faults = 0, "", "", []
    for one in walk(directory):
        if isinstance(one, Fault):
            faults.append(one)
        else:
            count, last = count + 1, str(one.values.get("time", ""))
            first = first or last
    if faults:
        place = f"{faults[0].path}:{faults[0].number}"
        raise ToolError(
            "the audit log was changed",
            where=place,
            found=f"{faults[0].found}; {len(faults)} places in all",
            advice="compare with a copy",
            code=ExitCode.DAMAGED,
        )
    print_values({"events": count, "files": len(audit_files(directory)), "from": first, "to": last}, output)


def _directory(data: str | None) -> Path:
    directory = Path(data_directory(data)) / AUDIT_DIRECTORY
    if not directory.is_dir():
        raise ToolError("there is no audit log", where=str(directory), code=ExitCode.NOT_FOUND)
    return directory


def _lines(directory: Path) -> Iterator[dict[str, Any]]:
    return (one.values for one in walk(directory) if isinstance(one, Line))


def _text(values: dict[str, Any]) -> str:
    first = " ".join(_word(values.get(name, "-")) for name in _FIRST)
    rest = " ".join(f"{name}={_word(value)}" for name, value in values.items() if name not in _FIRST)
    return f"{first} {rest}".rstrip()


def _word(value: Any) -> str:
    """Return a value as one word: text with blanks or signs is quoted as in JSON."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    is_plain = text.isprintable() and text and not set(text) & set(' "=')
    return text if is_plain else msgspec.json.encode(text).decode()
