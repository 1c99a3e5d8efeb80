"""Frames: headers, bodies, and what belongs in which."""

import pytest

from ambermq.protocol.amqp10.errors import DecodeError, FramingError
from ambermq.protocol.amqp10.framing.frames import (
    AMQP_HEADER,
    EMPTY_FRAME,
    FRAME_HEADER_SIZE,
    SASL_FRAME,
    SASL_HEADER,
    TLS_HEADER,
    decode_frame_body,
    encode_frame,
)
from ambermq.protocol.amqp10.performatives.classes import Accepted, Close, End, SaslOutcome, Transfer


def test_protocol_headers() -> None:
    """AMQP, then the protocol's id and version 1.0.0."""
    assert AMQP_HEADER == b"AMQP\x00\x01\x00\x00"
    assert TLS_HEADER == b"AMQP\x02\x01\x00\x00"
    assert SASL_HEADER == b"AMQP\x03\x01\x00\x00"


def test_a_frame_says_its_size() -> None:
    """Size, data offset, type and channel, then the performative at full width, then the payload."""
    assert bytes.fromhex("0000000f 02 00 0102 00 53 17 c0 02 01 40") == encode_frame(258, End())
    assert bytes.fromhex("00000008 02 00 0000") == EMPTY_FRAME


def test_payload_is_what_follows_a_transfer() -> None:
    """A transfer's payload begins where the performative ends."""
    frame = encode_frame(1, Transfer(handle=0), memoryview(b"payload"))
    performative, start = decode_frame_body(frame, FRAME_HEADER_SIZE, len(frame))
    assert Transfer(handle=0) == performative
    assert frame[start:] == b"payload"


def test_only_a_transfer_has_a_payload() -> None:
    """Bytes behind any other performative are a DecodeError."""
    frame = encode_frame(1, End(), b"x")
    with pytest.raises(DecodeError, match="no payload"):
        decode_frame_body(frame, FRAME_HEADER_SIZE, len(frame))


def test_a_frame_has_performatives_of_its_type() -> None:
    """SASL performatives travel in SASL frames, others in AMQP frames, and outcomes in none."""
    outcome = SaslOutcome(code=0)
    frame = encode_frame(0, outcome, frame_type=SASL_FRAME)
    assert frame[5] == 1
    assert outcome == decode_frame_body(frame, 8, len(frame), SASL_FRAME)[0]
    for composite, frame_type in ((outcome, 0), (Close(), 1), (Accepted(), 0)):
        body = composite.encode()
        with pytest.raises(DecodeError, match="in a frame of type"):
            decode_frame_body(body, 0, len(body), frame_type)


def test_a_body_does_not_reach_into_the_next_frame() -> None:
    """Bytes behind `end` are not this frame's, even where they would complete the performative."""
    two = encode_frame(1, End()) + encode_frame(1, End())
    for end in range(8, 15):
        with pytest.raises(DecodeError):
            decode_frame_body(two, 8, end)


def test_errors_carry_their_condition() -> None:
    """The condition is what close, end or detach will say."""
    assert DecodeError("x").condition == "amqp:decode-error"
    assert FramingError("x").condition == "amqp:connection:framing-error"
    assert str(FramingError("x")) == "amqp:connection:framing-error: x"
