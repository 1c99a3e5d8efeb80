"""Clauses of parts 1, 2 and 5 of the specification, by bytes between a connection and its peer."""

import pytest

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.events import Authenticating, ConnectionClosed, Disposed, SessionEnded, TransferRun
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, TLS_HEADER, encode_frame
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Received,
    SaslInit,
    SaslMechanisms,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from ambermq.protocol.amqp10.types.decode import decode
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Described, Map, Symbol, ULong
from tests.protocol.amqp10.link.test_link import runs, sending
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow, transfer
from tests.protocol.peers import FIRST_ID, Pair, Wire, conditions, cut

EMPTY = b"\0\0\0\x08\2\0"
"""An empty frame without its channel."""
OPEN = Wire.frame(Open(container_id="wire"))
FRAMING = [("close", "amqp:connection:framing-error")]


def server(*, sasl: SaslServer | None = None) -> Connection:
    """Return a server's end."""
    return Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0, sasl=sasl, allow_bare=sasl is None)


def written(connection: Connection) -> bytes:
    """Return what a connection has written."""
    return b"".join(map(bytes, connection.take_output()))


# Part 1


def test_a_reserved_descriptor_is_kept() -> None:
    """A descriptor that is neither a symbol nor an ulong is legal on the wire (types, 1.5)."""
    for descriptor in ("text", 1, None, Described(Symbol("a"), ULong(1))):
        value = Described(descriptor, [1])
        assert decode(encode(value))[0] == value


def test_an_unknown_format_code_is_malformed() -> None:
    """A code that no primitive type has, below and within the ranges of the encodings (types, 1.2)."""
    body = b"\0\x53\x10\xc0\x03\x01\x3f\x00"
    wire = Wire(opened=False)
    wire.give(AMQP_HEADER + (8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body)
    assert wire.error() == ("close", "amqp:decode-error")


def test_maps_differ_by_the_order_of_their_pairs() -> None:
    """The order of pairs is part of a map's value: it is kept (types, 1.6.23)."""
    for pairs in (((1, "a"), (2, "b")), ((2, "b"), (1, "a"))):
        assert list(decode(encode(dict(pairs)))[0].items()) == list(pairs)
        assert decode(encode(Map(pairs)))[0] == dict(pairs)


def test_a_string_has_no_byte_order_mark() -> None:
    """The encoding of a string is its UTF-8 alone (types, 1.6.20)."""
    assert encode("\u00e4") == b"\xa1\x02\xc3\xa4"


@pytest.mark.parametrize("field", [b"\x40", b"\xe0\x02\x00\xa3", b""])
def test_null_and_an_empty_array_mean_no_value(field: bytes) -> None:
    """Both mean the absence of a value in a field with several values, as a missing field does (types, 1.3.4)."""
    fields = [b"\xa1\x01x", *[b"\x40"] * 6, field]
    contents = b"".join(fields)
    body = b"\0\x53\x10\xc0" + bytes((len(contents) + 1, len([one for one in fields if one]))) + contents
    connection = server()
    connection.receive(AMQP_HEADER + (8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body, 0)
    assert connection.remote_open is not None
    assert connection.remote_open.offered_capabilities == ()


def test_too_many_fields_are_malformed() -> None:
    """A composite has no more fields than its type (types, 1.4)."""
    body = b"\0\x53\x18\xc0\x03\x02\x40\x40"
    wire = Wire()
    wire.give((8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body)
    assert wire.error() == ("close", "amqp:decode-error")


def test_our_fields_have_symbols_as_keys() -> None:
    """The keys of the type fields are symbols, however our code writes them (transport, 2.8.13)."""
    assert b"\xa3\x07product" in Open(container_id="x", properties={"product": "y"}).encode()
    assert b"\xa3\x01a" in Error(condition="amqp:not-found", info={"a": 1}).encode()


# Part 2


@pytest.mark.parametrize("frame", [Wire.frame(Wire.begin()), Wire.frame(Close()), Wire.frame(End())])
def test_the_first_frame_is_an_open(frame: bytes) -> None:
    """Any other frame before the open is a fault, told by open and close (2.4.1)."""
    wire = Wire(opened=False)
    wire.give(AMQP_HEADER + frame + OPEN)
    said = [performative for _, performative, _ in wire.read()]
    assert isinstance(said[0], Open)
    assert conditions(said) == FRAMING


def test_an_open_on_another_channel_is_a_fault() -> None:
    """An open comes on channel 0 (2.4.1)."""
    wire = Wire(opened=False)
    wire.give(AMQP_HEADER + Wire.frame(Open(container_id="wire"), channel=1))
    assert wire.error() == ("close", "amqp:connection:framing-error")


def test_empty_frames_are_ignored_on_any_channel() -> None:
    """Before the open and after it, with and without a session on the channel (2.4.5)."""
    limits = ConnectionLimits(channel_max=7)
    wire = Wire(limits, opened=False)
    wire.give(AMQP_HEADER + EMPTY + b"\0\0" + OPEN + EMPTY + b"\0\0" + Wire.frame(Wire.begin()))
    wire.give(b"".join(EMPTY + bytes((0, channel)) for channel in (0, 1, 7)))
    assert [type(performative) for _, performative, _ in wire.read()] == [Open, Begin]


@pytest.mark.parametrize("channel", [0, 1, 7])
def test_a_close_may_come_on_any_channel(channel: int) -> None:
    """It is answered on channel 0 (2.4.3)."""
    wire = Wire(ConnectionLimits(channel_max=7))
    wire.give(Wire.frame(Close(), channel=channel))
    assert [(on, type(said)) for on, said, _ in wire.read()] == [(0, Close)]
    assert wire.events == [ConnectionClosed(None)]


def test_simultaneous_closes_are_one_end() -> None:
    """Each close stands for the answer to the other one (2.4.4)."""
    pair = Pair()
    pair.opened()
    pair.server.close(Error(condition="amqp:connection:forced"))
    pair.client.close(Error(condition="amqp:internal-error"))
    pair.run()
    for to_server, condition in ((True, "amqp:internal-error"), (False, "amqp:connection:forced")):
        (event,) = pair.told(ConnectionClosed, to_server=to_server)
        assert event.error is not None
        assert event.error.condition == condition
    assert written(pair.server) == written(pair.client) == b""


def test_simultaneous_ends_are_one_end() -> None:
    """Each end stands for the answer to the other one, and the channel is free (2.5.3)."""
    pair = Pair()
    session = pair.opened()
    (other,) = pair.server.sessions()
    session.end()
    other.end()
    pair.run()
    assert pair.server.sessions() == pair.client.sessions() == []
    assert pair.told(SessionEnded) == pair.told(SessionEnded, to_server=False) == []
    again = pair.client.begin()
    pair.run()
    assert again.is_live
    assert again.channel == 0


def test_a_begin_that_answers_nothing_is_a_fault() -> None:
    """remote-channel is set in an answer alone (2.5.1)."""
    assert conditions(Wire().say(Wire.begin(remote_channel=0), channel=3)) == FRAMING


def test_an_answered_begin_names_the_channel() -> None:
    """Our begin has the peer's channel, on the lowest channel that is free (2.5.1)."""
    wire = Wire()
    wire.give(Wire.frame(Wire.begin(), channel=9))
    ((channel, begin, _),) = wire.read()
    assert channel == 1
    assert isinstance(begin, Begin)
    assert begin.remote_channel == 9


def test_our_begin_answers_nothing() -> None:
    """A session that we begin has no remote-channel (2.5.1)."""
    pair = Pair()
    pair.opened()
    pair.server.begin()
    (begin,) = [said for _, said, _ in cut(written(pair.server)) if isinstance(said, Begin)]
    assert begin.remote_channel is None


def test_an_attach_of_a_sender_has_its_delivery_count() -> None:
    """initial-delivery-count is set by senders, and not by receivers (2.7.3)."""
    wire = Wire()
    (ours,) = wire.say(wire.attach(role=RECEIVER, name="a"))
    assert isinstance(ours, Attach)
    assert (ours.role, ours.initial_delivery_count) == (SENDER, 0)
    (ours, *_) = wire.say(wire.attach(role=SENDER, name="b", handle=1, initial_delivery_count=5))
    assert isinstance(ours, Attach)
    assert (ours.role, ours.initial_delivery_count) == (RECEIVER, None)


def test_a_sender_without_a_delivery_count_begins_at_0() -> None:
    """A peer must set initial-delivery-count as a sender; without it the broker takes 0 (2.7.3)."""
    wire = Wire(credit=10)
    said = wire.say(wire.attach(role=SENDER, name="a"))
    assert [(one.delivery_count, one.link_credit) for one in said if isinstance(one, Flow)] == [(0, 10)]


def test_a_resumed_delivery_that_is_unknown_is_ignored() -> None:
    """It is not in our unsettled map, which is empty; its credit and its delivery-id are used (2.6.13, 2.7.5)."""
    wire = Wire()
    attach = wire.attach(role=SENDER, initial_delivery_count=0, unsettled={b"tag": Accepted()})
    answer = wire.say(attach)[0]
    assert isinstance(answer, Attach)
    assert not answer.unsettled
    assert not answer.incomplete_unsettled
    wire.events.clear()
    assert conditions(wire.say(transfer(FIRST_ID, resume=True))) == []
    assert wire.events == []
    assert conditions(wire.say(transfer(FIRST_ID + 1))) == []
    assert [type(event) for event in wire.events] == [TransferRun]


@pytest.mark.parametrize(
    ("flags", "settled"),
    [
        ((None, None), False),
        ((True, None), True),
        ((True, False), True),
        ((False, True), True),
        ((None, True, None), True),
        ((False, False), False),
    ],
)
def test_settled_counts_on_any_frame(flags: tuple[bool | None, ...], settled: bool) -> None:
    """Unset on the first frame is false; later an unset flag is that of the frames before (2.7.5)."""
    wire = sending()
    *first, last = flags
    for number, flag in enumerate(first):
        wire.say(transfer(FIRST_ID if not number else None, more=True, settled=flag), payload=b"a")
    wire.say(transfer(None, settled=last), payload=b"b")
    assert [run[2] for run in runs(wire)] == [settled]


def test_aborted_goes_before_more() -> None:
    """A transfer with both flags ends the delivery, and its payload is ignored (2.7.5)."""
    wire = sending()
    wire.say(transfer(FIRST_ID, more=True), payload=b"a")
    wire.say(transfer(None, aborted=True, more=True), payload=b"b")
    wire.say(transfer(FIRST_ID + 1), payload=b"c")
    assert runs(wire) == [(FIRST_ID + 1, [b"c"], False)]


def test_the_receivers_mode_of_a_settled_transfer_is_ignored() -> None:
    """On a link where first was agreed, second is a fault of an unsettled delivery alone (2.7.5)."""
    wire = sending()
    assert conditions(wire.say(transfer(FIRST_ID, rcv_settle_mode=1, settled=True), payload=b"a")) == []
    wire.say(transfer(FIRST_ID + 1, rcv_settle_mode=1, more=True), payload=b"b")
    assert conditions(wire.say(transfer(None, settled=True), payload=b"c")) == []
    assert runs(wire) == [(FIRST_ID, [b"a"], True), (FIRST_ID + 1, [b"bc"], True)]
    assert wire.session().received.count == 0
    said = wire.say(transfer(FIRST_ID + 2, rcv_settle_mode=1), payload=b"d")
    assert conditions(said) == [("detach", "amqp:invalid-field")]


def test_a_flow_of_a_session_has_no_fields_of_a_link() -> None:
    """delivery-count, link-credit and available are unset without a handle; next-incoming-id is set (2.7.4)."""
    (ours,) = Wire().say(flow(echo=True))
    assert isinstance(ours, Flow)
    assert ours.next_incoming_id == FIRST_ID
    assert (ours.handle, ours.delivery_count, ours.link_credit, ours.available) == (None, None, None, None)
    assert not ours.echo


def test_a_flow_before_the_peers_begin_has_no_next_incoming_id() -> None:
    """next-incoming-id is unset, and so is delivery-count before the sender's attach (2.7.4)."""
    pair = Pair()
    pair.client.open("localhost")
    receiver = pair.client.begin().attach_receiver("down", Source(address="q"), Target())
    receiver.grant(7)
    (ours,) = [said for _, said, _ in cut(written(pair.client)) if isinstance(said, Flow)]
    assert (ours.next_incoming_id, ours.delivery_count, ours.link_credit) == (None, None, 7)


def test_echoes_do_not_echo() -> None:
    """An answer to echo has no echo, for a session and for a link (2.7.4)."""
    wire = sending()
    for one in (flow(echo=True), flow(handle=0, delivery_count=0, echo=True)):
        assert [(type(said), said.echo) for said in wire.say(one) if isinstance(said, Flow)] == [(Flow, False)]


def test_a_state_that_is_no_outcome_settles_nothing() -> None:
    """The state received is progress: the delivery goes on, and credit stays (2.7.6; messaging, 3.4.1)."""
    pair = Pair()
    _, sender = pair.receiver(pair.opened())
    sender.send_run([1], [b"x"])
    pair.run()
    (session,) = pair.client.sessions()
    state = Received(section_number=0, section_offset=1)
    session.send(Disposition(role=True, first=FIRST_ID, settled=False, state=state))
    pair.run()
    assert pair.told(Disposed) == []
    assert sender.session.sent.count == 1


def test_what_is_batchable_is_what_it_is() -> None:
    """The flag is a hint: a disposition with it has its effect (2.7.6)."""
    pair = Pair()
    _, sender = pair.receiver(pair.opened())
    sender.send_run([1], [b"x"])
    pair.run()
    (session,) = pair.client.sessions()
    session.send(Disposition(role=True, first=FIRST_ID, settled=True, state=Accepted(), batchable=True))
    pair.run()
    assert [one.state for one in pair.told(Disposed)] == [Accepted()]


def test_a_closed_link_is_another_one_when_it_attaches_again() -> None:
    """A closing detach destroys the endpoint: the same name and handle are a new link (2.6.6)."""
    wire = Wire(credit=10)
    for _ in range(3):
        answer, granted = wire.say(wire.attach(role=SENDER, initial_delivery_count=0))
        assert isinstance(answer, Attach)
        assert isinstance(granted, Flow)
        (detach,) = wire.say(Detach(handle=0, closed=True))
        assert detach == Detach(handle=0, closed=True)
    assert wire.session().links() == []


def test_an_idle_time_out_of_0_is_none() -> None:
    """Such a peer needs no heartbeats (2.7.1)."""
    wire = Wire(ConnectionLimits(idle_timeout_ms=0), opened=False)
    wire.give(AMQP_HEADER + Wire.frame(Open(container_id="wire", idle_time_out=0)))
    wire.read()
    assert wire.server.poll(10**9) is None
    assert wire.read() == []


# Part 4


def test_a_transfer_in_a_transaction_is_reported_with_it() -> None:
    """Its owner decides what becomes of it (4.4.1); transfers like it are not taken as plain ones."""
    wire = sending()
    for number, text in enumerate((b"t", b"t", b"u")):
        state = TransactionalState(txn_id=text)
        wire.say(transfer((FIRST_ID + number) & 0xFFFFFFFF, state=state), payload=b"a")
    assert [event.state for event in wire.events if isinstance(event, TransferRun)] == [
        TransactionalState(txn_id=text) for text in (b"t", b"t", b"u")
    ]


def test_an_outcome_in_a_transaction_is_reported_and_settles_nothing() -> None:
    """A rollback makes it void, so another one may follow (4.4.2)."""
    pair = Pair()
    _, sender = pair.receiver(pair.opened())
    sender.send_run([1], [b"x"])
    pair.run()
    (session,) = pair.client.sessions()
    for text in (b"t", b"u"):
        state = TransactionalState(txn_id=text, outcome=Accepted())
        session.send(Disposition(role=True, first=FIRST_ID, settled=False, state=state))
    pair.run()
    told = [(event.state, event.settled) for event in pair.told(Disposed)]
    assert told == [(TransactionalState(txn_id=text, outcome=Accepted()), False) for text in (b"t", b"u")]
    assert sender.session.sent.count == 1


# Part 5


def test_a_tls_header_is_answered_by_what_is_spoken() -> None:
    """TLS within a connection is not offered: the answer is the AMQP header (5.2.1)."""
    for sasl in (SaslServer(), None):
        connection = server(sasl=sasl)
        connection.receive(TLS_HEADER, 0)
        assert written(connection) == AMQP_HEADER
        assert connection.is_ended


def test_the_head_of_a_sasl_frame_is_ignored() -> None:
    """Its channel bytes and its extended header have no meaning (5.3.1)."""
    init = encode_frame(0, SaslInit(mechanism="ANONYMOUS"), frame_type=SASL_FRAME)[8:]
    connection = server(sasl=SaslServer())
    size = (12 + len(init)).to_bytes(4, "big")
    connection.receive(SASL_HEADER + size + b"\x03\x01\xff\xff" + b"ext." + init, 0)
    assert connection.take_events() == [Authenticating("ANONYMOUS", None)]


@pytest.mark.parametrize("second", [b"", encode_frame(0, SaslInit(mechanism="PLAIN"), frame_type=SASL_FRAME)[8:]])
def test_a_sasl_frame_has_one_performative(second: bytes) -> None:
    """An empty one, or two performatives in one body, end the connection (5.3.1)."""
    body = encode_frame(0, SaslInit(mechanism="ANONYMOUS"), frame_type=SASL_FRAME)[8:] + second if second else b""
    connection = server(sasl=SaslServer())
    connection.receive(SASL_HEADER + (8 + len(body)).to_bytes(4, "big") + b"\2\1\0\0" + body, 0)
    assert connection.is_ended
    assert not any(isinstance(event, Authenticating) for event in connection.take_events())


def test_our_sasl_frames_are_small_and_plain() -> None:
    """At most 512 bytes, with data offset 2 and channel bytes 0; the mechanisms in order of preference (5.3.1)."""
    connection = server(sasl=SaslServer())
    connection.receive(SASL_HEADER, 0)
    data = written(connection).removeprefix(SASL_HEADER)
    assert len(data) <= 512
    assert data[4:8] == b"\2\1\0\0"
    ((_, mechanisms, _),) = cut(data)
    assert mechanisms == SaslMechanisms(sasl_server_mechanisms=("PLAIN", "ANONYMOUS", "MSSBCBS"))


def test_a_transfer_of_an_unknown_format_is_whole() -> None:
    """The message format is passed on to the owner of the link, which decides about it (2.6.14)."""
    wire = sending()
    wire.say(Transfer(handle=0, delivery_id=FIRST_ID, delivery_tag=b"t", message_format=7), payload=b"x")
    assert [event.message_format for event in wire.events if isinstance(event, TransferRun)] == [7]
