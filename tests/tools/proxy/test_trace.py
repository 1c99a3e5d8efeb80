"""The trace: frames as a person reads them, and no secret in it."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.framing.frames import EMPTY_FRAME, SASL_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Begin,
    Detach,
    Disposition,
    Error,
    Flow,
    Open,
    Rejected,
    SaslChallenge,
    SaslInit,
    SaslResponse,
    Source,
    Target,
    Transfer,
)
from ambermq.tools.proxy.broker_facts import DynamicAddresses
from ambermq.tools.proxy.connection_model import ConnectionModel
from ambermq.tools.proxy.frame_stream import FrameStream
from ambermq.tools.proxy.recording import Kind, Record
from ambermq.tools.proxy.trace import Trace, TraceLine

SECRET = "correct horse"
SAMPLES = [
    encode_frame(0, Begin(remote_channel=0, next_outgoing_id=0, incoming_window=9, outgoing_window=9)),
    encode_frame(0, Attach(name="l", handle=0, role=True, source=Source(address="q", filter={"f": 1.5}))),
    encode_frame(
        0, Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), Message(body=(AmqpValue([1, {"a": 2}]),)).encode()
    ),
    encode_frame(
        0, Transfer(handle=0, delivery_id=0, delivery_tag=b"t", more=True), Message(body=(Data(b"x"),)).encode()
    ),
    encode_frame(0, Disposition(role=True, first=0, last=9, settled=True, state=Rejected())),
    encode_frame(0, Flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1, handle=0, link_credit=3)),
    encode_frame(0, SaslInit(mechanism="PLAIN", initial_response=b"\0a\0b"), frame_type=SASL_FRAME),
    encode_frame(0, Open(container_id="c", properties={"product": "p"})),
]


def lines(*contents: bytes, kind: Kind = Kind.CLIENT) -> list[TraceLine]:
    trace = Trace()
    return [line for content in contents for line in trace.lines(Record(1_700_000_000_123_456, 7, kind, content))]


def text(performative: Composite, payload: bytes = b"", frame_type: int = 0) -> str:
    (line,) = lines(encode_frame(0, performative, payload, frame_type))
    assert SECRET not in json.dumps(line.document)
    return line.line


def test_a_line_has_time_connection_direction_channel_and_fields() -> None:
    """The format is that of the traces that clients print."""
    sent = lines(encode_frame(5, Open(container_id="client-1", channel_max=9)))
    assert sent[0].line == "2023-11-14T22:13:20.123456Z #7 SEND (ch=5) open(container-id:client-1, channel-max:9)"
    (received,) = lines(encode_frame(0, Open(container_id="b")), kind=Kind.BROKER)
    assert " RECV (ch=0) open(container-id:b)" in received.line


def test_headers_heartbeats_and_ends() -> None:
    """They are lines of their own."""
    assert [line.text for line in lines(SASL_HEADER, EMPTY_FRAME)] == ["header(SASL 1.0.0)", "(ch=0) heartbeat"]
    assert lines(b"reset", kind=Kind.BROKER_END)[0].text == "the broker ended the connection: reset"
    assert lines(b"127.0.0.1:1", kind=Kind.OPENED)[0].text == "connected from 127.0.0.1:1"


def test_nested_values_and_errors() -> None:
    """A composite in a field is written as the frame is."""
    error = Error(condition="amqp:not-found", description='no "queue"')
    shown = text(Detach(handle=0, closed=True, error=error))
    assert shown.endswith(
        'detach(handle:0, closed:true, error:error(condition:amqp:not-found, description:"no \\"queue\\""))'
    )


def test_a_transfer_shows_the_start_of_its_body() -> None:
    """One line, without control characters."""
    payload = Message(body=(Data(b"hello\x1b[2J" + b"x" * 500),)).encode()
    shown = text(Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), payload)
    assert f'{len(payload)} bytes "hello\\x1b[2Jxxx' in shown
    assert len(shown) < 300


def test_text_of_a_peer_is_escaped_and_cut() -> None:
    """No client forges a line."""
    shown = text(Open(container_id="a\nSEND (ch=0) close()" + "b" * 1000))
    assert "\n" not in shown
    assert len(shown) < 300


def test_passwords_are_masked() -> None:
    """PLAIN shows its user; all other responses show nothing."""
    plain = SaslInit(mechanism="PLAIN", initial_response=f"\0alice\0{SECRET}".encode())
    assert "initial-response:(user alice, masked)" in text(plain, frame_type=SASL_FRAME)
    for secret in (
        SaslInit(mechanism="AMBERMQ-TOKEN", initial_response=SECRET.encode()),
        SaslResponse(response=SECRET.encode()),
        SaslChallenge(challenge=SECRET.encode()),
    ):
        assert "(masked)" in text(secret, frame_type=SASL_FRAME)


def test_a_sasl_frame_that_does_not_parse_is_masked() -> None:
    """Its bytes may have a password."""
    frame = bytearray(encode_frame(0, SaslResponse(response=SECRET.encode()), frame_type=SASL_FRAME))
    frame[11] = 0x99
    _, broken = lines(SASL_HEADER, bytes(frame))
    assert broken.name == "unreadable"
    assert SECRET.encode().hex() not in broken.line


def test_tokens_and_changes_of_users_are_masked() -> None:
    """A token for `$cbs` and the attributes of a user are secrets."""
    token = Message(body=(AmqpValue(SECRET),)).encode()
    attach = Attach(name="cbs", handle=4, role=False, target=Target(address="$cbs"), initial_delivery_count=0)
    transfer = encode_frame(0, Transfer(handle=4, delivery_id=0, delivery_tag=b"t"), token)
    _, line = lines(encode_frame(0, attach), transfer)
    assert "(masked)" in line.line
    assert SECRET not in json.dumps(line.document)
    change = Message(application_properties={"type": "org.ambermq.user"}, body=(AmqpValue(SECRET),)).encode()
    assert "(masked)" in text(Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), change)


def test_what_does_not_parse_is_hex_with_the_reason() -> None:
    """HTTP on the port, for example."""
    (line,) = lines(b"GET / HTTP/1.1\r\n\r\n")
    assert "unreadable(18 bytes: no AMQP: a size of" in line.line
    assert line.line.endswith("0x474554202f20485454502f312e310d0a0d0a")


def test_a_document_has_the_fields() -> None:
    """Names are those of the specification."""
    (line,) = lines(encode_frame(2, Open(container_id="c")))
    assert line.document == {
        "time": "2023-11-14T22:13:20.123456Z",
        "connection": 7,
        "direction": "SEND",
        "name": "open",
        "channel": 2,
        "fields": {"container-id": "c"},
    }


@given(st.sampled_from(SAMPLES), st.data())
def test_any_bytes_of_a_peer_are_a_line(frame: bytes, data: st.DataObject) -> None:
    """No changed frame ends the trace, for people or for programs; a model of the connection takes it as well."""
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(8, len(changed) - 1))] = data.draw(st.integers(0, 255))
    model = ConnectionModel(1, DynamicAddresses())
    stream = FrameStream()
    for part in (*stream.feed(SAMPLES[0] + SAMPLES[1] + bytes(changed)), *stream.finish()):
        model.sent(part)
        list(model.facts(part))
    for line in lines(SAMPLES[0], bytes(changed)):
        assert line.line.isprintable()
        assert msgspec.json.encode(line.document)
