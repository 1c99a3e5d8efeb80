"""The header of the PROXY protocol: the client's address, and not a byte of what follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.server.listeners.proxy_header import HEADER_BYTES_MAX, ProxyHeader, ProxyHeaderError

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
FOUR = SIGNATURE + b"\x21\x11\x00\x0c" + bytes([203, 0, 113, 7, 10, 0, 0, 1]) + b"\x9c\x40\x16\x28"
SIX = (
    SIGNATURE
    + b"\x21\x21\x00\x27"
    + b"\x20\x01\x0d\xb8"
    + bytes(11)
    + b"\1"
    + bytes(16)
    + b"\x9c\x40\x16\x28"
    + b"\4\0\0"
)
WHOLE = [
    (b"PROXY TCP4 203.0.113.7 10.0.0.1 40000 5672\r\n", ("203.0.113.7", 40000)),
    (b"PROXY TCP6 2001:db8::1 ::1 40000 5672\r\n", ("2001:db8::1", 40000)),
    (b"PROXY UNKNOWN\r\n", None),
    (b"PROXY UNKNOWN ffff:: ffff:: 1 2\r\n", None),
    (FOUR, ("203.0.113.7", 40000)),
    (SIX, ("2001:db8::1", 40000)),
    (SIGNATURE + b"\x20\x00\x00\x00", None),
]


@pytest.mark.parametrize(("header", "source"), WHOLE)
def test_a_header_is_cut_at_each_byte(header: bytes, source: tuple[str, int] | None) -> None:
    """It is complete with its last byte, and takes nothing of what follows."""
    for cut in range(len(header) + 1):
        parser = ProxyHeader()
        taken = parser.take(header[:cut]) if cut else 0
        assert taken == cut
        assert parser.is_done == (cut == len(header))
        if not parser.is_done:
            assert parser.take(header[cut:] + b"AMQP\0\1\0\0") == len(header) - cut
        assert (parser.is_done, parser.source) == (True, source)


@pytest.mark.parametrize(("header", "source"), WHOLE)
def test_a_header_comes_byte_by_byte(header: bytes, source: tuple[str, int] | None) -> None:
    """Each byte is taken when it arrives."""
    parser = ProxyHeader()
    for byte in header:
        assert not parser.is_done
        assert parser.take(bytes([byte])) == 1
    assert (parser.is_done, parser.source) == (True, source)


@pytest.mark.parametrize(
    "header",
    [
        b"AMQP\0\1\0\0",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 40000\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 40000 5672\n",
        b"PROXY TCP4 2001:db8::1 10.0.0.1 40000 5672\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 65536 5672\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 -1 5672\r\n",
        b"PROXY TCP6 fe80::1%lo ::1 1 2\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 \xb2 5672\r\n",
        b"PROXY  TCP4 203.0.113.7 10.0.0.1 1 2\r\n",
        b"PROXY \r\n",
        b"PROXY UNKNOWN" + b" " * 100,
        SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11),
        SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x21\x31\x00\x0c" + bytes(12),
        SIGNATURE + b"\x21\x11" + (HEADER_BYTES_MAX - 15).to_bytes(2),
    ],
)
def test_a_malformed_header_is_refused(header: bytes) -> None:
    """The receiver does not guess: no address of a peer comes from a header that is wrong."""
    parser = ProxyHeader()
    with pytest.raises(ProxyHeaderError):
        parser.take(header)


@given(st.binary(max_size=300), st.sampled_from([b"", b"PROXY ", b"PROXY TCP4 ", SIGNATURE, SIGNATURE + b"\x21\x11"]))
def test_any_bytes_are_a_header_or_an_error(data: bytes, prefix: bytes) -> None:
    """No other exception, and never more bytes than arrived."""
    parser = ProxyHeader()
    try:
        assert 0 <= parser.take(prefix + data) <= len(prefix + data)
    except ProxyHeaderError:
        assert not parser.is_done
