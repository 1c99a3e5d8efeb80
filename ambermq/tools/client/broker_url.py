"""The URL of a broker: amqp[s]://[USER[:PASSWORD]@]HOST[:PORT][/vhost:NAME], or unix:PATH[/vhost:NAME].

amqps is TLS. The path of a unix socket is percent-encoded if it has unusual characters; @NAME is an abstract name.
Any other path, a query or a fragment is an error: a command that ignored it would reach another virtual host.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import click

from ambermq.protocol.amqp10.spec import PORT, SECURE_PORT
from ambermq.protocol.management.vhosts import HOSTNAME_PREFIX

__all__ = ["BrokerUrl", "vhost_path"]

_UNIX: Final = "unix"
_PORTS: Final = {"amqp": PORT, "amqps": SECURE_PORT}
_VHOST_PATH: Final = f"/{HOSTNAME_PREFIX}"


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    """The address of a broker, and the user and virtual host of the client."""

    host: str
    """A host name or an address, without brackets."""
    port: int = PORT
    """TCP port, 5672 by default, 5671 for amqps."""
    username: str | None = None
    """None: anonymous."""
    password: str = ""
    """SASL PLAIN sends it as clear text; it is never printed."""
    vhost: str = ""
    """The virtual host; empty: the broker chooses by the host name, which gives the default one."""
    scheme: str = "amqp"
    """amqp, amqps or unix."""
    path: str = ""
    """The path of a unix socket, @NAME for an abstract name."""

    @classmethod
    def of_socket(cls, path: str, vhost: str = "") -> "BrokerUrl":
        """Return the URL of a unix socket."""
        return cls("localhost", 0, vhost=vhost, scheme=_UNIX, path=path)

    @property
    def is_secure(self) -> bool:
        """Whether the client uses TLS."""
        return self.scheme == "amqps"

    @property
    def is_unix(self) -> bool:
        """Whether the broker is behind a unix socket."""
        return self.scheme == _UNIX

    @classmethod
    def parse(cls, text: str) -> "BrokerUrl":
        """Return the parts of a URL; raise UsageError if it is invalid."""
        if text.startswith(f"{_UNIX}:"):
            return cls._parse_socket(text)
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            # The text of the error may be a part of a password: what comes before a `/` looks like a port.
            raise _invalid(
                _scheme_of(text), "no valid host and port; write / and @ of a password as %2F and %40"
            ) from error
        if parts.scheme not in _PORTS:
            raise _invalid(text, "no amqp:// at the start")
        if not parts.hostname:
            raise _invalid(text, f"no host after {parts.scheme}://")
        if parts.query or parts.fragment:
            raise _invalid(text, "a query or a fragment")
        has_vhost = parts.path.startswith(_VHOST_PATH)
        vhost = parts.path.removeprefix(_VHOST_PATH) if has_vhost else ""
        if parts.path not in {"", "/"} and not vhost:
            raise _invalid(text, "no name after /vhost:" if has_vhost else "another path")
        username = unquote(parts.username) if parts.username else None
        port = port or _PORTS[parts.scheme]
        return cls(parts.hostname, port, username, unquote(parts.password or ""), unquote(vhost), parts.scheme)

    @classmethod
    def _parse_socket(cls, text: str) -> "BrokerUrl":
        path, separator, vhost = text.removeprefix(f"{_UNIX}:").partition(_VHOST_PATH)
        if not path or path.startswith("//"):
            raise _invalid(text, "no path after unix:")
        if separator and not vhost:
            raise _invalid(text, "no name after /vhost:")
        return cls.of_socket(unquote(path), unquote(vhost))

    @property
    def hides_bytes(self) -> bool:
        """Whether no other machine can read what the client sends: TLS, a unix socket, or the loopback interface."""
        if self.is_secure or self.is_unix:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def with_user(self, username: str | None, password: str) -> str:
        """Return the URL with user and password; do not print or log it."""
        if username is None or self.is_unix:
            return str(self)
        return str(self).replace("://", f"://{quote(username, safe='')}:{quote(password, safe='')}@", 1)

    def __str__(self) -> str:
        """Return the URL without user and password."""
        vhost = vhost_path(self.vhost) if self.vhost else ""
        if self.is_unix:
            return f"{_UNIX}:{quote(self.path, safe='/@')}{vhost}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{vhost}"


def vhost_path(name: str) -> str:
    """Return the path of a URL for a virtual host."""
    return f"{_VHOST_PATH}{quote(name, safe='')}"


def _scheme_of(text: str) -> str:
    scheme, separator, _ = text.partition("://")
    return f"{scheme}://..." if separator and scheme in _PORTS else "the text"


def _invalid(text: str, found: str) -> click.UsageError:
    shown = text.rsplit("@", 1)[-1]
    expected = "amqp://[USER:PASSWORD@]HOST:PORT[/vhost:NAME]"
    return click.UsageError(f"{shown!r} is not the URL of a broker: expected {expected}, found {found}")
