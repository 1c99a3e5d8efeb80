"""The property absolute-expiry-time, in any encoding, and what is none."""

import pytest

from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.message.message_recogniser import learn_message
from ambermq.protocol.amqp10.message.publish_outline import read_outline
from ambermq.protocol.amqp10.performatives.classes import Header, Properties

BODY = "005375a000"
_LAST_MS = (1 << 63) - 1


def encoded(expires_ms: int | None, *, ttl_ms: int | None = None, subject: str = "s", body: bytes = b"x") -> bytes:
    """Return a message with an expiry, and a time of creation behind it."""
    properties = Properties(message_id="m", subject=subject, absolute_expiry_time=expires_ms, creation_time=5)
    return Message(header=Header(ttl=ttl_ms), properties=properties, body=(Data(body),)).encode()


def of_fields(fields: str, count: int) -> bytes:
    """Return a message with encoded properties."""
    data = bytes.fromhex(fields)
    return b"\x00\x53\x73\xc0" + bytes([len(data) + 1, count]) + data + bytes.fromhex(BODY)


@pytest.mark.parametrize(
    ("time_ms", "expires_ms"),
    [(None, 0), (0, 0), (1, 1), (-1, 1), (-(1 << 63), 1), (1_900_000_000_000, 1_900_000_000_000), (_LAST_MS, _LAST_MS)],
)
def test_any_time(time_ms: int | None, expires_ms: int) -> None:
    """Times before 1970 have passed; 0 is none; a time to live has precedence, one of 0 is none."""
    assert read_outline(encoded(time_ms)).expires_ms == expires_ms
    assert read_outline(encoded(time_ms, ttl_ms=0)).expires_ms == expires_ms
    assert read_outline(encoded(time_ms, ttl_ms=1)).expires_ms == 0


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ("40" * 8, 8),
        ("40" * 8, 9),
        ("40" * 9, 9),
        ("40" * 8 + "81 0000000000000001", 9),
        ("40" * 8 + "80 0000000000000001", 9),
        ("40" * 8 + "5501", 9),
        ("40" * 8 + "a10131", 9),
        ("40" * 8 + "83 00000000000001", 9),
        ("40" * 8 + "83", 9),
        ("40" * 7 + "a1ff 83 0000000000000001", 9),
        ("40" * 7 + "00 83 0000000000000001", 9),
        ("40" * 7 + "83 0000000000000001", 8),
    ],
)
def test_what_is_no_time(fields: str, count: int) -> None:
    """Too few properties, null, no timestamp, cut off, no primitive value before it: the message is stored."""
    assert read_outline(of_fields(fields, count)).expires_ms == 0


def test_messages_with_one_time_are_alike() -> None:
    """Whatever their subjects are; another time is read from the message."""
    first = encoded(77)
    recogniser = learn_message(read_outline(first), first)
    assert recogniser is not None
    assert recogniser.expires_ms == 77
    hashes = [read_outline(first).id_hash] * 2
    assert recogniser.id_hashes([first, encoded(77, body=b"other")]) == hashes
    assert recogniser.id_hashes([first, encoded(77, subject="t", body=b"other")]) == hashes
    assert recogniser.id_hashes([first, encoded(78)]) is None
    assert recogniser.id_hashes([first, encoded(78, subject="t", body=b"other")]) is None


def test_with_a_time_to_live_the_time_is_not_looked_at() -> None:
    """Clients of JMS set both: their messages are alike, with a new time each."""
    first = encoded(77, ttl_ms=5)
    recogniser = learn_message(read_outline(first), first)
    assert recogniser is not None
    assert recogniser.id_hashes([first, encoded(78, ttl_ms=5)]) is not None
    assert (recogniser.expires_ms, recogniser.ttl_ms) == (0, 5)
