"""A connection: headers, open, close, idle timeouts, scope of its own errors."""

import pytest

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.events import ConnectionClosed, Opened, SessionBegun, SessionEnded
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_HEADER, TLS_HEADER, encode_frame
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import Begin, Close, End, Error, Flow, Open
from tests.protocol.peers import Pair, Wire, conditions, cut


def server(**options: object) -> Connection:
    return Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0, container_id="server", **options)  # type: ignore[arg-type]


def output(connection: Connection) -> bytes:
    return b"".join(map(bytes, connection.take_output()))


@pytest.mark.parametrize("by_byte", [False, True])
def test_open_and_close(by_byte: bool) -> None:
    """Two peers open, begin and close cleanly, however the bytes are cut."""
    pair = Pair(by_byte=by_byte)
    session = pair.opened()
    assert session.is_live
    assert [type(event) for event in pair.server_events] == [Opened, SessionBegun]
    pair.client.close()
    pair.run()
    assert pair.told(ConnectionClosed) == [ConnectionClosed(None)]
    assert pair.told(ConnectionClosed, to_server=False) == [ConnectionClosed(None)]
    assert pair.server.is_ended
    assert pair.client.is_ended


def test_open_is_told_and_answered() -> None:
    """Properties and capabilities pass both ways; limits and half of the idle timeout are advertised."""
    connection = server()
    remote = Open(container_id="peer", hostname="vhost:x", properties={"product": "p"}, desired_capabilities=("A",))
    connection.receive(AMQP_HEADER + encode_frame(0, remote), 0)
    (event,) = connection.take_events()
    assert isinstance(event, Opened)
    assert event.open == remote
    assert connection.remote_container_id == "peer"
    connection.accept(properties={"product": "AmberMQ"}, offered_capabilities=("ANONYMOUS-RELAY",))
    ((_, answer, _),) = cut(output(connection))
    assert isinstance(answer, Open)
    assert (answer.max_frame_size, answer.channel_max, answer.idle_time_out) == (1024 * 1024, 255, 30_000)
    assert answer.properties == {"product": "AmberMQ"}
    assert answer.offered_capabilities == ("ANONYMOUS-RELAY",)


def test_refused_open() -> None:
    """A refused open is an open that says so, and a close with the error; the peer's close ends it."""
    connection = server()
    connection.receive(AMQP_HEADER + encode_frame(0, Open(container_id="peer")), 0)
    connection.take_events()
    error = Error(condition="amqp:not-allowed", description="no")
    connection.refuse(error)
    (_, opened, _), (_, closed, _) = cut(output(connection))
    assert isinstance(opened, Open)
    assert opened.properties == {"amqp:connection-establishment-failed": True}
    assert isinstance(closed, Close)
    assert closed.error == error
    connection.receive(encode_frame(0, Close()), 0)
    assert connection.take_events() == [ConnectionClosed(None)]


@pytest.mark.parametrize(
    "header",
    [b"AMQP\0\0\x09\x01", TLS_HEADER, b"AMQP\0\1\1\0", b"HTTP/1.1", b"\0\0\0\x08\2\0\0\0", SASL_HEADER],
)
def test_wrong_header(header: bytes) -> None:
    """A header that is not spoken here is answered by the one that is, and a close of the transport."""
    connection = server()
    connection.receive(header, 0)
    assert output(connection) == AMQP_HEADER
    (event,) = connection.take_events()
    assert isinstance(event, ConnectionClosed)
    assert event.error is not None
    assert connection.is_ended


def test_bare_header_where_sasl_is_required() -> None:
    """On a port that requires SASL a bare AMQP header is answered by the SASL header and a close of the transport."""
    connection = server(sasl=SaslServer(), allow_bare=False)
    connection.receive(AMQP_HEADER + encode_frame(0, Open(container_id="peer")), 0)
    assert output(connection) == SASL_HEADER
    assert connection.is_ended


def test_bare_header_where_anonymous_is_allowed() -> None:
    """A bare AMQP header is welcome where it is allowed to leave SASL out."""
    connection = server(sasl=SaslServer())
    connection.receive(AMQP_HEADER, 0)
    assert output(connection) == AMQP_HEADER
    assert not connection.is_ended


def test_header_and_open_apart() -> None:
    """The header is answered before the open comes: some clients write them apart and wait in between."""
    connection = server()
    connection.receive(AMQP_HEADER, 0)
    assert output(connection) == AMQP_HEADER
    connection.receive(encode_frame(0, Open(container_id="peer")), 0)
    assert [type(event) for event in connection.take_events()] == [Opened]


def test_missing_fields_of_open() -> None:
    """Missing trailing fields of open are their defaults: no frame limit but 2**32 - 1, no heartbeat."""
    wire = Wire(opened=False)
    wire.give(AMQP_HEADER + wire.frame(Open(container_id="x")))
    assert wire.server.remote_frame_bytes_max == 0xFFFFFFFF
    assert wire.server.poll(1000) == 60_000


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\0\0\0\x07\2\0\0\0",
        b"\0\0\0\x08\1\0\0\0",
        b"\0\0\0\x08\3\0\0\0",
        b"\0\0\0\x08\2\1\0\0",
        b"\0\0\0\x08\2\7\0\0",
        b"\xff\xff\xff\xff\2\0\0\0",
        (1024 * 1024 + 1).to_bytes(4, "big") + b"\2\0\0\0",
        b"\0\0\0\x08\2\0\1\0",
    ],
)
def test_frame_nonsense(nonsense: bytes) -> None:
    """A frame whose size, offset, type or channel cannot be closes the connection with framing-error."""
    wire = Wire()
    wire.give(nonsense)
    assert wire.error() == ("close", "amqp:connection:framing-error")
    (event,) = wire.events
    assert isinstance(event, ConnectionClosed)


@pytest.mark.parametrize(
    "body", [b"\xff", b"\0\x53", b"\0\x53\x14\x45", b"\0\x53\x10\xc0\1\0", b"\0\xa3\4oops\x45", b"\x40"]
)
def test_undecodable(body: bytes) -> None:
    """What cannot be decoded closes the connection with decode-error."""
    wire = Wire()
    wire.give((8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body)
    assert wire.error() == ("close", "amqp:decode-error")


@pytest.mark.parametrize("performative", [Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=0), End()])
def test_unknown_channel(performative: Flow | End) -> None:
    """What comes on a channel without a session closes the connection with framing-error."""
    wire = Wire()
    assert conditions(wire.say(performative, channel=7)) == [("close", "amqp:connection:framing-error")]


def test_channel_in_use_and_second_open() -> None:
    """A begin on a channel in use and a second open close the connection with framing-error."""
    for performative in (Wire.begin(), Open(container_id="again")):
        assert conditions(Wire().say(performative)) == [("close", "amqp:connection:framing-error")]


def test_channel_is_reusable() -> None:
    """After end and end a channel can be begun again, as often as one likes."""
    wire = Wire()
    for _ in range(3):
        (ended,) = wire.say(End())
        assert isinstance(ended, End)
        (begun,) = wire.say(wire.begin())
        assert isinstance(begun, Begin)
        assert begun.remote_channel == 0
    assert len(wire.server.sessions()) == 1


def test_sessions_up_to_channel_max() -> None:
    """Every channel up to channel-max may be used, and the one above closes the connection."""
    wire = Wire(ConnectionLimits(channel_max=3))
    for channel in (1, 2, 3):
        assert isinstance(wire.say(wire.begin(), channel=channel)[0], Begin)
    assert conditions(wire.say(wire.begin(), channel=4)) == [("close", "amqp:connection:framing-error")]


def test_peer_above_its_own_channel_max() -> None:
    """A peer that begins more sessions than it can take answers to closes the connection, and nothing is raised."""
    wire = Wire(opened=False)
    wire.give(AMQP_HEADER + wire.frame(Open(container_id="x", channel_max=0)) + wire.frame(wire.begin()))
    wire.read()
    assert conditions(wire.say(wire.begin(), channel=1)) == [("close", "amqp:connection:framing-error")]


def test_frame_limit_of_the_peer_below_the_minimum() -> None:
    """A max-frame-size below 512 is refused."""
    wire = Wire(opened=False)
    wire.give(AMQP_HEADER + wire.frame(Open(container_id="x", max_frame_size=511)))
    (closed,) = wire.events
    assert isinstance(closed, ConnectionClosed)
    assert closed.error is not None
    assert closed.error.condition == "amqp:invalid-field"


def test_nothing_after_the_end() -> None:
    """After ConnectionClosed nothing is told and nothing is sent, whatever comes."""
    wire = Wire()
    wire.say(Close())
    wire.events.clear()
    wire.give(b"\xff" * 100 + wire.frame(wire.begin(), channel=1))
    wire.server.close()
    wire.server.lost()
    assert wire.events == []
    assert wire.read() == []


def test_our_close_discards() -> None:
    """After our close everything but the peer's close is ignored."""
    wire = Wire()
    wire.server.close(Error(condition="amqp:connection:forced"))
    assert conditions([performative for _, performative, _ in wire.read()]) == [("close", "amqp:connection:forced")]
    assert wire.say(wire.attach(role=True), wire.begin()) == []
    assert wire.events == []
    wire.say(Close())
    assert wire.events == [ConnectionClosed(None)]


def test_silent_peer_is_dropped() -> None:
    """A peer is dropped after the whole idle timeout, not after the half that was advertised; empty frames keep it."""
    wire = Wire()
    assert wire.server.poll(59_999) == 60_000
    wire.server.receive(b"\0\0\0\x08\2\0\0\0", 59_999)
    assert wire.server.poll(60_000) == 119_999
    assert wire.server.take_events() == []
    assert wire.server.poll(119_999) is None
    assert wire.error() == ("close", "amqp:resource-limit-exceeded")


def test_unanswered_close() -> None:
    """A peer that sends heartbeats but never answers our close is dropped after `close_ms`, and told nothing more."""
    wire = Wire(ConnectionLimits(close_ms=100))
    wire.server.close()
    wire.read()
    assert wire.server.poll(1000) == 1100
    wire.server.receive(b"\0\0\0\x08\2\0\0\0", 1099)
    assert wire.server.poll(1099) == 1100
    assert not wire.server.is_ended
    assert wire.server.poll(1100) is None
    assert wire.server.is_ended
    (event,) = wire.server.take_events()
    assert isinstance(event, ConnectionClosed)
    assert event.error is not None
    assert event.error.condition == "amqp:connection:forced"
    assert wire.read() == []


def test_heartbeats() -> None:
    """A peer with an idle timeout is sent something within each half of it, and nothing extra when there was output."""
    wire = Wire(opened=False)
    wire.give(AMQP_HEADER + wire.frame(Open(container_id="x", idle_time_out=1000)))
    wire.read()
    assert wire.server.poll(499) == 500
    assert wire.read() == []
    assert wire.server.poll(500) == 1000
    assert wire.read() == [(0, None, b"")]
    wire.give(wire.frame(wire.begin()))
    wire.server.poll(900)
    wire.read()
    assert wire.server.poll(1100) == 1400
    assert wire.read() == []


def test_no_timeouts() -> None:
    """Without timeouts there is no deadline."""
    wire = Wire(ConnectionLimits(idle_timeout_ms=0))
    assert wire.server.poll(10**9) is None
    assert not wire.server.is_ended


def test_lost_transport() -> None:
    """A lost transport ends the connection with an error, once."""
    wire = Wire()
    wire.server.lost()
    wire.server.lost()
    (event,) = wire.server.take_events()
    assert isinstance(event, ConnectionClosed)
    assert event.error is not None


def test_end_of_the_connection_is_told_once() -> None:
    """ConnectionClosed stands for everything within: no SessionEnded besides."""
    wire = Wire()
    wire.say(wire.attach(role=False), Close())
    assert not [event for event in wire.events if isinstance(event, SessionEnded)]


def test_begin_without_open_is_our_fault() -> None:
    """Our own misuse raises LocalError, and sends nothing."""
    connection = server()
    with pytest.raises(LocalError):
        connection.begin()
    assert output(connection) == b""


def test_begin_by_the_server() -> None:
    """The broker may begin sessions too: the classes are the same for both roles."""
    pair = Pair()
    pair.opened()
    session = pair.server.begin()
    pair.run()
    assert session.is_live
    session.end()
    pair.run()
    assert len(pair.told(SessionEnded, to_server=False)) == 1
    assert len(pair.server.sessions()) == 1
