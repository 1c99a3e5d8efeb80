"""The URL of a broker: amqp://[USER[:PASSWORD]@]HOST[:PORT][/IGNORED]."""

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import click

from protocol.spec import PORT

__all__ = ["BrokerUrl"]


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

    @classmethod
    def parse(cls, text: str) -> "BrokerUrl":
        """Read a URL; what follows the port is ignored. Raises UsageError that says what is wrong."""
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
        return cls(parts.hostname, port or PORT, username, unquote(parts.password or ""))

    def __str__(self) -> str:
        """Write it without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"amqp://{host}:{self.port}"


def _wrong(text: str, found: str) -> click.UsageError:
    shown = text.rsplit("@", 1)[-1]
    return click.UsageError(f"{shown!r} is no broker's URL: expected amqp://[USER:PASSWORD@]HOST:PORT, found {found}")
