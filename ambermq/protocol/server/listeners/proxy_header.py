r"""The header of the PROXY protocol, by which a trusted proxy names its client (HAProxy, version 1 and 2).

    version 1   "PROXY " ("TCP4" | "TCP6") " " source " " destination " " source port " " destination port "\r\n",
                or "PROXY UNKNOWN" ... "\r\n"; at most 107 bytes
    version 2   12 bytes signature | 1 version 2, command | 1 family, transport | 2 length | addresses | further values

Rule 1. The parser takes only bytes of the header: what follows is the first byte of TLS, WebSocket or AMQP.
Rule 2. A header that is longer than its bound or malformed is an error: the receiver does not guess.
Rule 3. The commands LOCAL and UNKNOWN name no client: the proxy itself connects, as for a check of its own.
"""

import ipaddress
from typing import Final, final

__all__ = ["HEADER_BYTES_MAX", "ProxyHeader", "ProxyHeaderError"]

_TEXT: Final = b"PROXY "
_TEXT_BYTES_MAX: Final = 107
_SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
_FIXED_BYTES: Final = 16
HEADER_BYTES_MAX: Final = 2048
"""The longest header of version 2: the addresses, and values of the proxy that are skipped."""
_LOCAL_COMMAND, _PROXY_COMMAND = 0x20, 0x21
_ADDRESS_BYTES: Final = {0x11: 4, 0x21: 16}
"""TCP over IPv4 and over IPv6."""
_PORT_MAX: Final = 65535


class ProxyHeaderError(Exception):
    """The header is malformed or too long."""


@final
class ProxyHeader:
    """The header of one connection, as its bytes arrive."""

    __slots__ = ("_received", "is_done", "source")

    def __init__(self) -> None:
        self._received = bytearray()
        self.is_done = False
        """Whether the header is complete."""
        self.source: tuple[str, int] | None = None
        """The address and port of the client; None if the header names none."""

    def take(self, data: bytes) -> int:
        """Process bytes, and return how many of them belong to the header. Raises ProxyHeaderError."""
        before, received = len(self._received), self._received + data
        size = self._size(bytes(received))
        self._received = received[:size] if size else received
        if size and len(received) >= size:
            self._read(bytes(self._received))
            self.is_done = True
        return len(self._received) - before

    def _size(self, received: bytes) -> int:
        """Return the size of the header, 0 while it is not known."""
        if _TEXT.startswith(received[: len(_TEXT)]):
            end = received.find(b"\n", 0, _TEXT_BYTES_MAX)
            if end < 0 and len(received) >= _TEXT_BYTES_MAX:
                raise ProxyHeaderError(f"a line of more than {_TEXT_BYTES_MAX} bytes")
            return end + 1
        if not _SIGNATURE.startswith(received[: len(_SIGNATURE)]):
            raise ProxyHeaderError("the first bytes are no header of the PROXY protocol")
        if len(received) < _FIXED_BYTES:
            return _FIXED_BYTES
        size = _FIXED_BYTES + int.from_bytes(received[14:16])
        if size > HEADER_BYTES_MAX:
            raise ProxyHeaderError(f"{size} bytes, at most {HEADER_BYTES_MAX}")
        return size

    def _read(self, header: bytes) -> None:
        self.source = _read_text(header) if header.startswith(_TEXT) else _read_binary(header)


def _read_text(header: bytes) -> tuple[str, int] | None:
    if not header.endswith(b"\r\n"):
        raise ProxyHeaderError("the line does not end with CR LF")
    try:
        words = header[:-2].decode("ascii").split(" ")
    except UnicodeDecodeError as error:
        raise ProxyHeaderError("the line is not ASCII") from error
    if words[1] == "UNKNOWN":
        return None
    if words[1] not in {"TCP4", "TCP6"} or len(words) != 6:
        raise ProxyHeaderError("the line has not the form TCP4 or TCP6, two addresses, two ports")
    version = 4 if words[1] == "TCP4" else 6
    _address(words[3], version)
    _port(words[5])
    return _address(words[2], version), _port(words[4])


def _read_binary(header: bytes) -> tuple[str, int] | None:
    command, family = header[12], header[13]
    if command == _LOCAL_COMMAND:
        return None
    if command != _PROXY_COMMAND:
        raise ProxyHeaderError(f"version and command 0x{command:02x}, expected 0x20 or 0x21")
    size = _ADDRESS_BYTES.get(family)
    if size is None:
        raise ProxyHeaderError(f"address family and transport 0x{family:02x}, expected TCP over IPv4 or IPv6")
    if len(header) < _FIXED_BYTES + 2 * size + 4:
        raise ProxyHeaderError(f"{len(header) - _FIXED_BYTES} bytes of addresses, expected {2 * size + 4}")
    source = ipaddress.ip_address(header[_FIXED_BYTES : _FIXED_BYTES + size])
    port = _FIXED_BYTES + 2 * size
    return str(source), int.from_bytes(header[port : port + 2])


def _address(text: str, version: int) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise ProxyHeaderError(f"{text!r:.60} is no address") from error
    if address.version != version or "%" in text:
        raise ProxyHeaderError(f"{text!r:.60} is no address of IPv{version}")
    return text


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= _PORT_MAX):
        raise ProxyHeaderError(f"{text!r:.60} is no port")
    return int(text)
