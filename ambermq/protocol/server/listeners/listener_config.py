"""The listeners of a server, from the keys of `[listeners]`."""

from dataclasses import dataclass
from typing import Final

from ambermq.protocol.amqp10.limits import bounded

__all__ = ["CERTIFICATE_NAMES", "ListenerConfig"]

CERTIFICATE_NAMES: Final = ("uri", "dns", "email", "cn")
"""The names of a client certificate that can be its user, in the order in which the first one is taken."""


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """Where a broker listens, and what peers must prove before the first byte of AMQP."""

    listen: tuple[str, ...] = ()
    """Addresses: amqp://HOST:PORT, amqps://HOST:PORT, ws://HOST:PORT, wss://HOST:PORT, unix:PATH. Empty: --host and
    --port."""
    tls_cert: str = ""
    """File with the certificate of the broker and its chain, in PEM."""
    tls_key: str = ""
    """File with the private key, in PEM, which other users must not read; empty: the key is in `tls_cert`."""
    tls_ca: str = ""
    """File with the authorities of client certificates, in PEM; empty: client certificates are not asked for."""
    tls_crl: str = ""
    """File with the revocation lists of these authorities, in PEM; empty: none."""
    tls_client_required: bool = False
    """Whether a client without a certificate is refused, if `tls_ca` is set."""
    tls_user_from: str = ""
    """The name of a client certificate that is its user: uri, dns, email or cn; empty: the first of them."""
    proxy_protocol: bool = False
    """Whether connections from `proxy_trusted` begin with a header of the PROXY protocol, version 1 or 2."""
    proxy_trusted: tuple[str, ...] = ()
    """Addresses and networks of the proxies; all other peers connect without the header."""
    websocket_origins: tuple[str, ...] = ()
    """Origins of web pages that may connect by WebSocket; "*" is every page. Empty: programs only, no web page."""
    websocket_message_bytes_max: int = bounded(64 << 20, least=1)
    """The largest WebSocket message. It is processed as it arrives; a larger one ends the connection."""
