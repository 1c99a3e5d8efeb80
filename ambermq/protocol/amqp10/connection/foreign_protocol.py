"""Other protocols that peers speak to a listener of AMQP, by their first bytes, and an answer that a person can read.

Rule. A peer of another protocol is a common mistake of configuration. So the log names the protocol, not its bytes.
"""

from typing import Final, NamedTuple

__all__ = ["ForeignProtocol", "foreign_protocol", "may_be_foreign"]

_METHODS: Final = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"PRI * HT")
_METHOD_BYTES: Final = 8
"""The size of a protocol header, which is all that is seen."""
_TEXT: Final = b"This port speaks AMQP 1.0, not HTTP. Connect an AMQP client to it.\n"
_HTTP_ANSWER: Final = b"\r\n".join(
    (
        b"HTTP/1.1 400 Bad Request",
        b"Content-Type: text/plain; charset=utf-8",
        b"Connection: close",
        b"Content-Length: %d" % len(_TEXT),
        b"",
        _TEXT,
    )
)
_PROXY_TEXT: Final = b"PROXY "
_PROXY_BINARY: Final = b"\r\n\r\n\0\r\nQ"
_TLS_RECORD: Final = b"\x16\x03"


class ForeignProtocol(NamedTuple):
    """A protocol that is not AMQP."""

    name: str
    """What the peer has sent, in words."""
    answer: bytes
    """The answer in that protocol; empty: that of AMQP."""


def foreign_protocol(header: bytes) -> ForeignProtocol | None:
    """Return the protocol that begins with these bytes, None if it is unknown."""
    if any(header.startswith(method[:_METHOD_BYTES]) for method in _METHODS):
        return ForeignProtocol("an HTTP request on a listener of AMQP", _HTTP_ANSWER)
    if header.startswith((_PROXY_TEXT, _PROXY_BINARY)):
        return ForeignProtocol("a header of the PROXY protocol from a peer that is not in proxy_trusted", b"")
    if header.startswith(_TLS_RECORD):
        return ForeignProtocol("a TLS handshake on a listener without TLS: use amqp://, or a listener amqps://", b"")
    return None


def may_be_foreign(start: bytes) -> bool:
    """Return whether less than a header may be the beginning of a protocol that has a name here."""
    return any(
        method.startswith(start) or start.startswith(method) for method in (*_METHODS, _PROXY_TEXT, _PROXY_BINARY)
    )
