"""The bytes of a direction as parts: nothing is lost, and nothing raises."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, EMPTY_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.performatives.classes import Begin, Open, Transfer
from ambermq.tools.proxy.frame_stream import FRAME_BYTES_MAX, FramePart, FrameStream, HeaderPart, Part, UnreadablePart

PIECES = [
    AMQP_HEADER,
    SASL_HEADER,
    EMPTY_FRAME,
    encode_frame(0, Open(container_id="c")),
    encode_frame(3, Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)),
    encode_frame(3, Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), b"payload"),
]


def parts(data: bytes, cuts: list[int]) -> list[Part]:
    stream, found, position = FrameStream(), [], 0
    for cut in [*sorted(cuts), len(data)]:
        found += stream.feed(data[position:cut])
        position = max(position, cut)
    return [*found, *stream.finish()]


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.lists(st.integers(0, 300), max_size=5))
def test_parts_do_not_depend_on_the_reads(pieces: list[bytes], cuts: list[int]) -> None:
    """A frame may be cut anywhere."""
    data = b"".join(pieces)
    found = parts(data, [min(cut, len(data)) for cut in cuts])
    assert [part.data for part in found] == pieces
    assert not any(isinstance(part, UnreadablePart) for part in found)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=3))
def test_any_bytes_are_parts(data: bytes, cuts: list[int]) -> None:
    """What does not parse is shown, with all of its bytes."""
    found = parts(data, [min(cut, len(data)) for cut in cuts])
    assert b"".join(part.data for part in found) == data


def test_a_performative_that_does_not_decode_ends_no_stream() -> None:
    """The next frame is read."""
    bad = bytes([0, 0, 0, 12, 2, 0, 0, 0, 0, 0x53, 0x99, 0x45])
    first, second = parts(bad + AMQP_HEADER, [])
    assert isinstance(first, UnreadablePart)
    assert "descriptor" in first.reason
    assert isinstance(second, HeaderPart)


def test_after_an_illegal_size_nothing_parses() -> None:
    """No boundary is known."""
    size = (FRAME_BYTES_MAX + 1).to_bytes(4)
    first, second = [*(stream := FrameStream()).feed(size + b"\2\0\0\0"), *stream.feed(AMQP_HEADER)]
    assert isinstance(first, UnreadablePart)
    assert isinstance(second, UnreadablePart)


def test_the_payload_of_a_transfer_is_told_apart() -> None:
    """The performative is the rest."""
    (part,) = parts(PIECES[-1], [])
    assert isinstance(part, FramePart)
    assert (part.channel, part.payload) == (3, b"payload")
