"""The group of a message, in any encoding, and what is no group."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.message.group_code import group_code
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.message.message_recogniser import learn_message
from ambermq.protocol.amqp10.message.publish_outline import read_outline
from ambermq.protocol.amqp10.performatives.classes import Properties

LAST = 0xFFFFFFFF
BODY = "005375a000"


def encoded(group_id: str | None, sequence: int | None = None, *, message_id: str = "m", body: bytes = b"x") -> bytes:
    """Return a message with a group."""
    properties = Properties(message_id=message_id, subject="s", group_id=group_id, group_sequence=sequence)
    return Message(properties=properties, body=(Data(body),)).encode()


@given(st.none() | st.text(max_size=300), st.none() | st.integers(0, LAST))
def test_any_group(group_id: str | None, sequence: int | None) -> None:
    """An empty id is none; the last sequence is told by the lowest bit; a code fits into 49 bits."""
    group = read_outline(encoded(group_id, sequence)).group
    assert group == group_code(group_id or "", is_last=sequence == LAST)
    assert (group & 1) == bool(group_id and sequence == LAST)
    assert group < 1 << 49
    assert bool(group) == bool(group_id)


def test_equal_ids_have_one_group() -> None:
    """In the short and the long encoding, whatever is before and behind; the hash never changes, for it is in logs."""
    nulls = "40" * 10
    short = read_outline(bytes.fromhex(f"005373c00e0b{nulls}a10161" + BODY)).group
    long = read_outline(bytes.fromhex(f"005373d0000000140000000b{nulls}b10000000161" + BODY)).group
    last = read_outline(bytes.fromhex(f"005373c0130c{nulls}a1016170ffffffff" + BODY)).group
    assert (short, long, last) == (0x8672238DD61A, 0x8672238DD61A, 0x8672238DD61B)


@pytest.mark.parametrize(
    "fields",
    [
        "40" * 10,
        "40" * 10 + "40",
        "40" * 10 + "a100",
        "40" * 10 + "a001 61",
        "40" * 10 + "a109 61",
        "40" * 9 + "b1000000ff 40",
        "40" * 9 + "00 a10161",
    ],
)
def test_what_is_no_group(fields: str) -> None:
    """Too few properties, null, empty, no string, cut off, no primitive value before it: the message is stored."""
    data = bytes.fromhex(fields)
    count = 10 if data == b"\x40" * 10 else 11
    payload = b"\x00\x53\x73\xc0" + bytes([len(data) + 1, count]) + data + bytes.fromhex(BODY)
    assert read_outline(payload).group == 0


def test_messages_that_are_alike_have_groups_each() -> None:
    """Those of the last message where all is equal but the id and the body, else of each."""
    first = encoded("a", 1)
    recogniser = learn_message(read_outline(first), first)
    assert recogniser is not None
    assert recogniser.may_group
    same = [first, encoded("a", 1, message_id="n", body=b"y")]
    assert recogniser.id_hashes(same) is not None
    assert recogniser.groups(same) == [group_code("a")] * 2
    others = [first, encoded("b", 1), encoded("c", 2)]
    assert recogniser.id_hashes(others) is not None
    assert recogniser.groups(others) == [group_code("a"), group_code("b"), group_code("c")]


def test_messages_that_cannot_have_groups_are_not_asked() -> None:
    """Their properties are too few; of many without a group none is told."""
    few = bytes.fromhex("005373c00401a10161" + BODY)
    recogniser = learn_message(read_outline(few), few)
    assert recogniser is not None
    assert not recogniser.may_group
    many = Message(properties=Properties(message_id="m", group_sequence=0), body=(Data(b"x"),)).encode()
    recogniser = learn_message(read_outline(many), many)
    assert recogniser is not None
    assert recogniser.groups([many, many]) == []
