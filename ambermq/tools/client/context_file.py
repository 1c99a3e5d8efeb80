"""The file of contexts: named brokers, in the user's directory for configuration.

Rule 1. The file holds no secret: a context names the file of a password, and its URL has none.
Rule 2. It is replaced as a whole, with mode 0600, under a lock, so no kill and no second command loses a context.
Rule 3. A damaged file is an error of the command that needs it, with one message.
"""

import fcntl
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

import click
import msgspec
import platformdirs
import tomli_w

from ambermq.log.storage.private_file import replace_private_file
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.near_names import near_advice

__all__ = ["CONTEXTS_MAX", "Context", "Contexts", "change_contexts", "check_context", "contexts_path", "load_contexts"]

CONTEXTS_MAX: Final = 1000
_FILE_BYTES_MAX: Final = 1 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@final
class Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A named broker: exactly one of `url` and `data` is not empty. Paths are absolute; an empty one is none."""

    url: str = ""
    """The URL of the broker, without a password."""
    data: str = ""
    """The data directory of the broker."""
    password_file: str = ""
    """The file with the password of the user in the URL."""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""


@final
class Contexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All contexts of a user."""

    current: str = ""
    """The name of the context that commands use without an option; empty for none."""
    contexts: dict[str, Context] = {}

    def named(self, name: str, source: str) -> Context:
        """Return a context; raise ToolError if there is none. `source` says where the name comes from."""
        if name not in self.contexts:
            raise ToolError(
                f"no context {name!r}",
                where=source,
                advice=near_advice(name, self.contexts) or "list them: ambermq context list",
                code=ExitCode.NOT_FOUND,
            )
        return self.contexts[name]


def contexts_path() -> Path:
    """Return the path of the file, which may not exist."""
    return platformdirs.user_config_path("ambermq") / "contexts.toml"


def load_contexts() -> Contexts:
    """Return the contexts in the file, none if there is no file. Raises ToolError if it is damaged."""
    path = contexts_path()
    try:
        with path.open("rb") as file:
            _check_owner(path, os.fstat(file.fileno()))
            _check_owner(path.parent, path.parent.stat())
            content = file.read(_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from error
    if len(content) > _FILE_BYTES_MAX:
        raise _damaged(path, f"more than {_FILE_BYTES_MAX} bytes")
    try:
        contexts = msgspec.convert(tomllib.loads(content.decode()), Contexts)
        for name, context in contexts.contexts.items():
            check_context(name, context)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise _damaged(path, str(error)) from error
    except click.ClickException as error:
        raise _damaged(path, error.message) from error
    return contexts


def _check_owner(path: Path, status: os.stat_result) -> None:
    """Raise ToolError if another user could change where commands connect."""
    if status.st_uid in (0, os.geteuid()) and not status.st_mode & stat.S_IWOTH:
        return
    raise ToolError(
        "other users can change the contexts",
        where=str(path),
        expected="a file and a directory of yours, which only you may write",
        found=f"owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o}",
        advice=f"chown and chmod {path}",
        code=ExitCode.USAGE,
    )


def change_contexts(change: Callable[[Contexts], Contexts]) -> Contexts:
    """Replace the file by what `change` returns for its contexts; return that. Raises ToolError if it cannot."""
    path = contexts_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path):
            contexts = change(load_contexts())
            # The lock keeps other commands away.
            replace_private_file(str(path), tomli_w.dumps(msgspec.to_builtins(contexts)).encode())
    except OSError as error:
        raise ToolError(
            "the contexts cannot be stored", where=str(path), found=error.strerror or str(error), code=ExitCode.FAILED
        ) from error
    return contexts


def check_context(name: str, context: Context) -> None:
    """Raise ToolError if a context has a wrong name, names no broker, or holds a password."""
    if not _NAME.fullmatch(name):
        expected = "1 to 64 letters, digits, dots, hyphens and underscores, of which the first is a letter or a digit"
        raise ToolError("wrong name of a context", expected=expected, found=repr(name), code=ExitCode.USAGE)
    if bool(context.url) is bool(context.data):
        raise ToolError(f"the context {name!r} names not exactly one of url and data", code=ExitCode.USAGE)
    if context.url and BrokerUrl.parse(context.url).password:
        raise ToolError(
            f"the URL of the context {name!r} holds a password",
            expected="the name of the user only",
            advice="put the password into a file, and give --password-file",
            code=ExitCode.USAGE,
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _damaged(path: Path, found: str) -> ToolError:
    return ToolError(
        "the file of contexts is damaged",
        where=str(path),
        expected="TOML with `current` and tables [contexts.NAME]",
        found=found,
        advice="correct it, or delete it and add the contexts again",
        code=ExitCode.USAGE,
    )
