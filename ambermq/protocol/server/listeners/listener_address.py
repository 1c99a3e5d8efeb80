"""The address of a listener: amqp://HOST:PORT, amqps://HOST:PORT, ws://HOST:PORT, wss://HOST:PORT or unix:PATH.

Rule. An address has a scheme, a host and a port, or a path, and nothing else: no user, no query.
"""

import ipaddress
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from ambermq.protocol.amqp10.spec import PORT, SECURE_PORT

__all__ = ["UNIX_SCHEME", "ListenerAddress"]

UNIX_SCHEME: Final = "unix"
_PORTS: Final = {"amqp": PORT, "amqps": SECURE_PORT, "ws": 80, "wss": 443}
_FORMS: Final = "amqp://HOST:PORT, amqps://HOST:PORT, ws://HOST:PORT, wss://HOST:PORT or unix:PATH"


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """One place where a server listens."""

    scheme: str
    """amqp, amqps, ws, wss or unix."""
    host: str = ""
    """A host name or an address without brackets; empty for a unix socket, and for all interfaces."""
    port: int = 0
    """0: the system chooses a free port."""
    path: str = ""
    """The path of a unix socket."""

    @classmethod
    def parse(cls, text: str) -> "ListenerAddress":
        """Return the parts of an address; raise ValueError with what was expected and found."""
        scheme, _, path = text.partition(":")
        if scheme == UNIX_SCHEME:
            if not path or path.startswith("//") or "\0" in path:
                raise ValueError(f"expected unix:PATH, found {text!r}")
            return cls(scheme, path=path)
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError(f"expected {_FORMS}, found {text!r} ({error})") from error
        if scheme not in _PORTS or not host or parts.path.strip("/") or parts.query or parts.fragment or "@" in text:
            raise ValueError(f"expected {_FORMS}, found {text!r}")
        return cls(scheme, host, _PORTS[scheme] if port is None else port)

    @property
    def is_unix(self) -> bool:
        """Whether it is a unix socket."""
        return self.scheme == UNIX_SCHEME

    @property
    def is_secure(self) -> bool:
        """Whether peers use TLS."""
        return self.scheme in {"amqps", "wss"}

    @property
    def is_websocket(self) -> bool:
        """Whether AMQP is inside of WebSocket."""
        return self.scheme in {"ws", "wss"}

    @property
    def is_local(self) -> bool:
        """Whether only peers of this machine reach it."""
        if self.is_unix:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def with_port(self, port: int) -> "ListenerAddress":
        """Return the address with the port that the system has chosen."""
        return replace(self, port=port)

    def __str__(self) -> str:
        """Return the address as `--listen` has it."""
        if self.is_unix:
            return f"{UNIX_SCHEME}:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"
