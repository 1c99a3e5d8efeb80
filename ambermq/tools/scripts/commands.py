"""`ambermq script`: run declarative scripts of AMQP clients."""

import secrets
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.scripts.grammar import parse_script
from ambermq.tools.scripts.script_run import ScriptRun
from ambermq.tools.scripts.statements import STATEMENTS
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup, translated
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_json, print_line

__all__ = ["script"]

_BYTES_MAX = 1 << 20
"""The maximum size of a script."""


@click.group(cls=TranslatingGroup, epilog="Example: ambermq script run restart.script")
def script() -> None:
    """Run scripts of AMQP clients, to reproduce a bug without code.

    docs/scripts.md has the statements.
    """


@script.command("run", epilog="Example: ambermq script run restart.script --seed 7")
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@click.option("--seed", type=click.IntRange(0), help="Seed of random choices. Default: a new one, which is printed.")
@broker_options
@output_option
def run(files: tuple[Path, ...], seed: int | None, url: str | None, data: str | None, output: str) -> None:
    """Run each FILE, one after the other.

    A script with `broker start` has a broker of its own in a temporary directory; any other uses --url or --data.
    Exits 1 if an expectation is not met, 2 if a file is not a script; the message names file and line.
    """
    seed = secrets.randbits(32) if seed is None else seed
    is_alone = len(files) == 1 and output != "json"

    def run_one(file: Path) -> ToolError | None:
        return _failure_of(file, seed, url, data, output=output, is_alone=is_alone)

    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        failures = [failure for file in files if (failure := run_one(file)) is not None]
    finally:
        signal.signal(signal.SIGTERM, before)
    if failures:
        raise failures[0] if len(files) == 1 else _summary(failures, len(files))


def _failure_of(
    file: Path, seed: int, url: str | None, data: str | None, *, output: str, is_alone: bool
) -> ToolError | None:
    """Run a file, print its result, and return its failure; the command prints the failure of a file alone."""
    try:
        _report(_run_file(file, seed, url, data), output)
    except Exception as error:  # noqa: BLE001  # the failure of one file does not end the others
        failure = translated(error)
        if not is_alone:
            _report({"file": str(file), "ok": False, "seed": seed, "error": failure.message}, output)
        return failure
    return None


def _run_file(file: Path, seed: int, url: str | None, data: str | None) -> dict[str, Any]:
    block = parse_script(_text(file), str(file))
    began = time.monotonic()
    with ScriptRun(str(file), seed, lambda: broker_url(url, data), STATEMENTS) as run:
        run.run(block)
        seconds = round(time.monotonic() - began, 3)
        return {"file": str(file), "ok": True, "seed": seed, "statements": run.count, "seconds": seconds}


def _text(file: Path) -> str:
    if file.is_dir():
        raise ToolError("is a directory", where=str(file), expected="a script", code=ExitCode.USAGE)
    with file.open("rb") as stream:
        content = stream.read(_BYTES_MAX + 1)
    if len(content) > _BYTES_MAX:
        raise ToolError(
            "the script is too long", where=str(file), expected=f"at most {_BYTES_MAX} bytes", code=ExitCode.USAGE
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ToolError("the script is not UTF-8", where=str(file), found=str(error), code=ExitCode.USAGE) from error


def _report(result: dict[str, Any], output: str) -> None:
    if output == "json":
        print_json(result)
    elif result["ok"]:
        print_line(f"ok {result['file']}: {result['statements']} statements in {result['seconds']:.1f} s")
    else:
        click.echo(f"failed {result['error']}", file=sys.stderr)


def _summary(failures: list[ToolError], count: int) -> ToolError:
    code = ExitCode(failures[0].exit_code)
    return ToolError(f"{len(failures)} of {count} scripts failed", code=code)


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    """End the command as its end does, so that the script's broker ends with it."""
    raise SystemExit(128 + signal.SIGTERM)
