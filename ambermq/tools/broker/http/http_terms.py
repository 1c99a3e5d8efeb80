"""The terms of the HTTP listener: where it listens, and what another interface than loopback needs at the start.

Rule 1. On the loopback interface it is plain HTTP without a login. On every other one it has TLS and logins.
Rule 2. A bearer token is at least 16 characters, in a file that no other user reads.
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import click

from ambermq.tools.broker.http.http_sockets import http_place, is_loopback
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["HttpTerms", "http_terms", "read_token"]

_TOKEN: Final = re.compile(rb"[!-~]{16,1024}")
_READ_BYTES: Final = 4096
_OTHERS: Final = 0o077


@final
@dataclass(frozen=True, slots=True)
class HttpTerms:
    """Where the HTTP listener listens, and on which terms."""

    place: tuple[str, int]
    """Interface and port."""
    token: bytes = b""
    """The bearer token; empty: none."""

    @property
    def is_guarded(self) -> bool:
        """Whether it has TLS, and a login for what it shows."""
        return not is_loopback(self.place[0])

    @property
    def scheme(self) -> str:
        """The scheme of its URL."""
        return "https" if self.is_guarded else "http"

    @property
    def secure_url(self) -> str:
        """The URL of a listener that needs certificates; empty for one that needs none."""
        return f"https://{self.place[0]}:{self.place[1]}" if self.is_guarded else ""


def http_terms(settings: Settings, *, has_users: bool) -> HttpTerms | None:
    """Return the terms, None without a listener; raise UsageError or ToolError if something is missing."""
    text = settings.server.http
    place = http_place(text)
    if place is None:
        return None
    terms = HttpTerms(place)
    if not terms.is_guarded:
        return terms
    local = f"or use 127.0.0.1:{place[1]}"
    if not settings.listeners.tls_cert:
        needs = "an interface other than loopback needs TLS and users"
        raise click.UsageError(f"--http {text}: {needs}: give --tls-cert FILE and --tls-key FILE, {local}")
    if not has_users:
        advice = "add a user with `ambermq user add NAME --role monitor`"
        raise click.UsageError(f"--http {text}: an interface other than loopback needs users: {advice}, {local}")
    path = settings.server.http_token_file
    return HttpTerms(place, read_token(path)) if path else terms


def read_token(path: str) -> bytes:
    """Return the bearer token in a file; raise ToolError with exit code 2 if it is not usable."""
    try:
        # A FIFO would hold the start for ever.
        descriptor = os.open(Path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            token = file.read(_READ_BYTES).strip() if stat.S_ISREG(status.st_mode) else b""
    except OSError as error:
        raise _wrong(path, "a file with a token", error.strerror or str(error), "check http_token_file") from error
    mode = stat.S_IMODE(status.st_mode)
    if mode & _OTHERS:
        raise _wrong(path, "a token that no other user reads", f"mode {mode:04o}", f"run chmod 600 {path}")
    if not _TOKEN.fullmatch(token):
        advice = f"write one with `openssl rand -hex 32 > {path}`"
        raise _wrong(path, "one token of 16 to 1,024 visible ASCII characters", f"{len(token)} bytes", advice)
    return token


def _wrong(path: str, expected: str, found: str, advice: str) -> ToolError:
    what = "the token of the HTTP listener cannot be used"
    return ToolError(what, where=path, expected=expected, found=found, advice=advice, code=ExitCode.USAGE)
