"""The sockets of the HTTP listener: bound before the recovery."""

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import click

from ambermq.protocol.server.listeners.acceptor import bound_sockets
from ambermq.tools.terminal.errors import ToolError

__all__ = ["http_place", "http_sockets", "http_url", "is_loopback"]


def http_place(text: str) -> tuple[str, int] | None:
    """Return the interface and port that `HOST:PORT` names, None for an empty text; raise UsageError."""
    return _split(text) if text else None


def _split(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or port is None or parts.path or parts.username is not None:
        raise click.UsageError(f"--http: expected HOST:PORT, as 127.0.0.1:9673, found {text!r}")
    return host, port


@contextmanager
def http_sockets(place: tuple[str, int] | None) -> Iterator[Sequence[socket.socket]]:
    """Yield the bound sockets of the HTTP listener, none without a place; raise ToolError if one cannot be bound."""
    if place is None:
        yield ()
        return
    with ExitStack() as stack:
        try:
            sockets = [stack.enter_context(bound) for bound in bound_sockets(*place)]
        except OSError as error:
            raise ToolError(
                "cannot listen",
                where=f"http://{place[0]}:{place[1]}",
                found=error.strerror or str(error),
                advice="use another --http; port 0 chooses a free one",
            ) from error
        yield sockets


def http_url(sockets: Sequence[socket.socket], scheme: str) -> str:
    """Return the URL of the HTTP listener."""
    name = sockets[0].getsockname()
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"{scheme}://{host}:{name[1]}"


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is of the loopback interface."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
