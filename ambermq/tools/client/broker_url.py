"""The URL of a broker: amqp://[USER[:PASSWORD]@]HOST[:PORT][/vhost:NAME].

Any other path is ignored, as many clients put one there.
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
    """Where a broker listens, and who comes."""

    host: str
    """A name or an address, without brackets."""
    port: int = PORT
    """TCP port, 5672 unless named."""
    username: str | None = None
    """None: anonymous."""
    password: str = ""
    """Sent in clear by SASL PLAIN; never shown."""
    vhost: str = ""
    """The virtual host; empty: whichever the broker takes for the host's name, the default one."""

    @classmethod
    def parse(cls, text: str) -> "BrokerUrl":
        """Read a URL. Raises UsageError that says what is wrong."""
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise _wrong(text, str(error)) from error
        if parts.scheme == "amqps":
            raise _wrong(text, "TLS is not spoken here")
        if parts.scheme != "amqp" or not parts.hostname:
            raise _wrong(text, "no amqp:// with a host behind it")
        username = unquote(parts.username) if parts.username else None
        vhost = parts.path.removeprefix(_VHOST_PATH) if parts.path.startswith(_VHOST_PATH) else ""
        return cls(parts.hostname, port or PORT, username, unquote(parts.password or ""), unquote(vhost))

    def with_user(self, username: str | None, password: str) -> str:
        """Write it with a user and a password, which are not for anybody's eyes."""
        if username is None:
            return str(self)
        return str(self).replace("amqp://", f"amqp://{quote(username, safe='')}:{quote(password, safe='')}@", 1)

    def __str__(self) -> str:
        """Write it without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"amqp://{host}:{self.port}{vhost_path(self.vhost) if self.vhost else ''}"


def vhost_path(name: str) -> str:
    """Return the path of a URL that means a virtual host."""
    return f"{_VHOST_PATH}{quote(name, safe='')}"


def _wrong(text: str, found: str) -> click.UsageError:
    shown = text.rsplit("@", 1)[-1]
    return click.UsageError(f"{shown!r} is no broker's URL: expected amqp://[USER:PASSWORD@]HOST:PORT, found {found}")
