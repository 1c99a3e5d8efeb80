"""The header of the PROXY protocol, in pieces: the same result as at once, and not a byte of what follows."""

from typing import Final

from ambermq.protocol.server.listeners.listener import shown_name
from ambermq.protocol.server.listeners.peer_address import address_of
from ambermq.protocol.server.listeners.proxy_header import HEADER_BYTES_MAX, ProxyHeader, ProxyHeaderError
from tests.fuzz.target import Target
from tests.protocol.server.listeners.test_proxy_header import SIGNATURE, WHOLE

Found = tuple[bool, int, tuple[str, int] | None] | None


def run(data: bytes) -> None:
    """Parse the header at once and by byte."""
    found = _parsed(data, len(data) or 1)
    assert found == _parsed(data, 1)
    if found is not None:
        is_done, size, source = found
        assert size <= HEADER_BYTES_MAX
        assert is_done or size == len(data)
        if source is not None:
            address_of(source)
            shown_name(source)


def _parsed(data: bytes, piece: int) -> Found:
    """Return what a header says, and how many bytes it has; None for a wrong one."""
    header, size = ProxyHeader(), 0
    try:
        while size < len(data) and not header.is_done:
            size += header.take(data[size : size + piece])
    except ProxyHeaderError:
        return None
    return header.is_done, size, header.source


def seeds() -> list[bytes]:
    """Return a header of each kind, alone and before AMQP."""
    return [header + rest for header, _ in WHOLE for rest in (b"", b"AMQP\0\1\0\0")]


TARGET: Final = Target(
    run,
    seeds,
    words=(
        SIGNATURE,
        b"PROXY TCP4 ",
        b"PROXY TCP6 ",
        b"PROXY UNKNOWN",
        b"\r\n",
        b"::ffff:",
        b"%eth0",
        b" 65535",
        b"\x21\x21",
    ),
)
