"""The structure of a message that is fed in pieces is judged as that of the whole one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.body_walk import BodyWalk, head_end
from ambermq.protocol.amqp10.message.sections import Section, check_sections
from tests.protocol.amqp_payloads import payloads


def _is_accepted(payload: bytes, start: int, previous: int) -> bool:
    try:
        check_sections(payload, start, previous)
    except DecodeError:
        return False
    return True


def _is_walked(payload: bytes, start: int, previous: int, cuts: list[int]) -> bool:
    walk = BodyWalk(previous)
    places = sorted({start, *(start + cut % (len(payload) - start) for cut in cuts)})
    try:
        for begin, end in zip(places, [*places[1:], len(payload)], strict=True):
            walk.feed(memoryview(payload)[begin:end], is_last=end == len(payload))
    except DecodeError:
        return False
    return True


@given(payloads, st.binary(max_size=3), st.lists(st.integers(0, 400), max_size=12), st.integers(0, 300))
def test_a_message_in_pieces_is_accepted_as_the_whole_one(
    payload: bytes, trailing: bytes, cuts: list[int], cut_off: int
) -> None:
    """For any message, also cut off or with bytes behind it, and for any pieces."""
    for body in (payload, payload + trailing, payload[: len(payload) - cut_off % (len(payload) or 1)]):
        try:
            start, previous = head_end(body)
        except DecodeError:
            continue
        assert _is_walked(body, start, previous, cuts) == _is_accepted(body, start, previous)


def test_contents_are_not_kept() -> None:
    """Of a section of many bytes only its beginning is, while it is cut off."""
    walk = BodyWalk(Section.PROPERTIES)
    walk.feed(b"\x00\x53\x75\xb0\x00\x10")
    assert walk._kept == b"\x00\x53\x75\xb0\x00\x10"
    walk.feed(b"\x00\x00" + bytes(1000))
    for _ in range(100):
        walk.feed(bytes(10_000))
        assert not walk._kept
    walk.feed(bytes((1 << 20) - 1_001_000), is_last=True)


@pytest.mark.parametrize("payload", [b"\x00\x53\x70\x45", b"\x00\x53\x74\xd1\x00\x00\xff\xff\x00\x00\x00\x00", b""])
def test_a_head_without_the_beginning_of_a_body_is_refused(payload: bytes) -> None:
    """The sections before the body do not fit into the first piece."""
    with pytest.raises(DecodeError, match=rf"in the first {len(payload)} bytes \(chunk_bytes\) of a large message"):
        head_end(payload)
