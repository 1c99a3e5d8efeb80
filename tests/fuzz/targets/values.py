"""The decoder of values and of composites: what it reads can be encoded, and is read again as the same."""

from typing import Any, Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.types.decode import decode
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.tools.messages.message_text import plain
from tests.fuzz.target import Target
from tests.golden.amqp_types import NESTED, PRIMITIVES
from tests.protocol.amqp10.connection.test_bad_input import SPOKEN


def run(data: bytes) -> None:
    """Decode the bytes as a value and as a composite."""
    for buffer in (data, memoryview(bytearray(data))):
        try:
            value, end = decode(buffer)
        except DecodeError:
            continue
        assert 0 < end <= len(data)
        plain(value)
        _check_again(value)
    try:
        composite, end = decode_composite(data, 0, len(data))
    except DecodeError:
        return
    assert 0 < end <= len(data)
    encoded = composite.encode()
    again, _ = decode_composite(encoded, 0, len(encoded))
    assert again.encode() == encoded


def _check_again(value: Any) -> None:
    encoded = encode(value)
    again, end = decode(encoded)
    assert end == len(encoded)
    assert encode(again) == encoded


def seeds() -> list[bytes]:
    """Return an encoding of each format code, and the performatives of a conversation."""
    golden = [bytes.fromhex(text) for text, _ in (*PRIMITIVES, *NESTED)]
    return [*golden, *(one.encode() for one in SPOKEN), *(one.encode(full_width=False) for one in SPOKEN)]


TARGET: Final = Target(
    run,
    seeds,
    words=(
        b"\0\x53",
        b"\0\xa3",
        b"\xc0\x02\x01",
        b"\xc1\x05\x02",
        b"\xd0\0\0\0\x08\0\0\0\x01",
        b"\xd1\0\0\0\x0c\0\0\0\x02",
        b"\xe0\x04\x02\x50",
        b"\xf0\0\0\0\x05\0\0\xff\xff\x45",
        b"\xf0\0\0\0\x05\0\0\xff\xff\x40",
        b"\xa1\x01",
        b"\xa3\x01",
        b"\xb0\xff\xff\xff\xff",
        b"\x73\0\x10\xff\xff",
        b"\x98" + bytes(16),
        b"\x74" + bytes(4),
        b"\x82\x7f\xf8" + bytes(6),
    ),
)
