"""The URL of a broker: amqp://[USER[:PASSWORD]@]HOST[:PORT][/vhost:NAME].

Any other path, a query or a fragment is an error: a command that ignored it would reach another virtual host.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import click

from ambermq.protocol.amqp10.spec import PORT
from ambermq.protocol.management.vhosts import HOSTNAME_PREFIX

__all__ = ["BrokerUrl", "vhost_path"]


_VHOST_PATH: Final = f"/{HOSTNAME_PREFIX}"


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    """The address of a broker, and the user and virtual host of the client."""

    host: str
    """A host name or an address, without brackets."""
    port: int = PORT
    """TCP port, 5672 by default."""
    username: str | None = None
    """None: anonymous."""
    password: str = ""
    """SASL PLAIN sends it as clear text; it is never printed."""
    vhost: str = ""
    """The virtual host; empty: the broker chooses by the host name, which gives the default one."""

    @classmethod
    def parse(cls, text: str) -> "BrokerUrl":
        """Return the parts of a URL; raise UsageError if it is invalid."""
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise _invalid(text, str(error)) from error
        if parts.scheme == "amqps":
            raise _invalid(text, "amqps, but the client has no TLS")
        if parts.scheme != "amqp":
            raise _invalid(text, "no amqp:// at the start")
        if not parts.hostname:
            raise _invalid(text, "no host after amqp://")
        if parts.query or parts.fragment:
            raise _invalid(text, "a query or a fragment")
        has_vhost = parts.path.startswith(_VHOST_PATH)
        vhost = parts.path.removeprefix(_VHOST_PATH) if has_vhost else ""
        if parts.path not in {"", "/"} and not vhost:
            raise _invalid(text, "no name after /vhost:" if has_vhost else "another path")
        username = unquote(parts.username) if parts.username else None
        return cls(parts.hostname, port or PORT, username, unquote(parts.password or ""), unquote(vhost))

    def with_user(self, username: str | None, password: str) -> str:
        """Return the URL with user and password; do not print or log it."""
        if username is None:
            return str(self)
        return str(self).replace("amqp://", f"amqp://{quote(username, safe='')}:{quote(password, safe='')}@", 1)

    def __str__(self) -> str:
        """Return the URL without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"amqp://{host}:{self.port}{vhost_path(self.vhost) if self.vhost else ''}"


def vhost_path(name: str) -> str:
    """Return the path of a URL for a virtual host."""
    return f"{_VHOST_PATH}{quote(name, safe='')}"


def _invalid(text: str, found: str) -> click.UsageError:
    shown = text.rsplit("@", 1)[-1]
    return click.UsageError(
        f"{shown!r} is not the URL of a broker: expected amqp://[USER:PASSWORD@]HOST:PORT[/vhost:NAME], found {found}"
    )
