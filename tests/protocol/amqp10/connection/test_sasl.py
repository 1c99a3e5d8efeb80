"""SASL: who may enter, from both ends."""

import pytest

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import RESPONSES_MAX, SaslServer
from ambermq.protocol.amqp10.events import Authenticating, ConnectionClosed, Event, Opened
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import (
    Begin,
    Open,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from ambermq.protocol.auth.sasl.client_credentials import ClientCredentials
from tests.protocol.peers import Pair, cut


def sasl(frame: SaslInit | SaslResponse | SaslMechanisms | SaslOutcome) -> bytes:
    return encode_frame(0, frame, frame_type=SASL_FRAME)


def server() -> Connection:
    return Connection(
        ConnectionRole.SERVER, ConnectionLimits(), now_ms=0, container_id="s", sasl=SaslServer(), allow_bare=False
    )


def answers(connection: Connection) -> list[object]:
    return [performative for _, performative, _ in cut(b"".join(map(bytes, connection.take_output())))]


def closed(events: list[Event]) -> str | None:
    (event,) = events
    assert isinstance(event, ConnectionClosed)
    return None if event.error is None else str(event.error.condition)


@pytest.mark.parametrize("by_byte", [False, True])
@pytest.mark.parametrize("client", [ClientCredentials(), ClientCredentials("user", "secret")])
def test_enter(client: ClientCredentials, by_byte: bool) -> None:
    """Our client enters our server, anonymously and by name."""
    pair = Pair(sasl=SaslServer(), client_sasl=client, allow_bare=False, by_byte=by_byte)
    assert pair.opened().is_live
    (asked,) = pair.told(Authenticating)
    anonymous, plain = Authenticating("ANONYMOUS", b"anonymous"), Authenticating("PLAIN", b"\0user\0secret")
    assert asked == (anonymous if client.username is None else plain)


def test_wrong_password() -> None:
    """A wrong password is answered by the outcome auth and a close; both ends are told."""
    pair = Pair(sasl=SaslServer(), client_sasl=ClientCredentials("user", "wrong"), password="right")
    pair.client.open()
    pair.run()
    for to_server in (True, False):
        (event,) = pair.told(ConnectionClosed, to_server=to_server)
        assert event.error is not None
        assert event.error.condition == "amqp:unauthorized-access"


def test_mechanisms_are_an_array_and_offered_at_once() -> None:
    """The mechanisms follow the header without being asked for, as an array even when there is only one."""
    connection = Connection(
        ConnectionRole.SERVER, ConnectionLimits(), now_ms=0, sasl=SaslServer(("ANONYMOUS",)), allow_bare=False
    )
    connection.receive(SASL_HEADER, 0)
    written = b"".join(map(bytes, connection.take_output()))
    assert written.startswith(SASL_HEADER)
    assert b"\xe0" in written or b"\xf0" in written
    ((_, mechanisms, _),) = cut(written)
    assert mechanisms == SaslMechanisms(sasl_server_mechanisms=("ANONYMOUS",))


def test_pipelined_everything() -> None:
    """Init, AMQP header, open and begin in the segment of the SASL header need no round trip."""
    connection = server()
    connection.receive(
        SASL_HEADER
        + sasl(SaslInit(mechanism="PLAIN", initial_response=b"\0user\0secret"))
        + AMQP_HEADER
        + encode_frame(0, Open(container_id="x"))
        + encode_frame(0, Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)),
        0,
    )
    assert connection.take_events() == [Authenticating("PLAIN", b"\0user\0secret")]
    connection.authenticated(True)
    assert [type(event) for event in connection.take_events()] == [Opened]
    connection.accept()
    written = b"".join(map(bytes, connection.take_output()))
    assert written.startswith(SASL_HEADER)
    assert AMQP_HEADER in written
    assert [type(performative) for _, performative, _ in cut(written)] == [SaslMechanisms, SaslOutcome, Open, Begin]


def test_pipelined_and_refused() -> None:
    """What was pipelined behind a refused init is never read."""
    connection = server()
    connection.receive(
        SASL_HEADER + sasl(SaslInit(mechanism="ANONYMOUS")) + AMQP_HEADER + encode_frame(0, Open(container_id="x")), 0
    )
    connection.take_events()
    connection.authenticated(False)
    assert closed(connection.take_events()) == "amqp:unauthorized-access"
    assert isinstance(answers(connection)[-1], SaslOutcome)


def test_plain_by_challenge() -> None:
    """A challenge of the owner is sent; its response is asked about like an init."""
    connection = server()
    connection.receive(SASL_HEADER + sasl(SaslInit(mechanism="PLAIN")), 0)
    assert connection.take_events() == [Authenticating("PLAIN", None)]
    connection.challenge(b"now")
    assert answers(connection)[-1] == SaslChallenge(challenge=b"now")
    connection.receive(sasl(SaslResponse(response=b"\0user\0secret")), 0)
    assert connection.take_events() == [Authenticating("PLAIN", b"\0user\0secret")]
    connection.authenticated(True, b"signature")
    assert answers(connection)[-1] == SaslOutcome(code=0, additional_data=b"signature")


def test_responses_are_bounded() -> None:
    """No authentication goes on for ever."""
    connection = server()
    connection.receive(SASL_HEADER + sasl(SaslInit(mechanism="PLAIN")), 0)
    for _ in range(RESPONSES_MAX):
        connection.challenge(b"")
        connection.receive(sasl(SaslResponse(response=b"")), 0)
    assert not connection.is_ended
    connection.challenge(b"")
    connection.receive(sasl(SaslResponse(response=b"")), 0)
    assert connection.is_ended


def test_mssbcbs_is_anonymous() -> None:
    """The owner is asked about every mechanism."""
    connection = server()
    connection.receive(SASL_HEADER + sasl(SaslInit(mechanism="MSSBCBS")), 0)
    assert connection.take_events() == [Authenticating("MSSBCBS", None)]


@pytest.mark.parametrize("by_byte", [False, True])
def test_a_token_enters_though_it_is_not_offered(by_byte: bool) -> None:
    """A client with a token uses it though it is not offered; the owner of the server is asked about it."""
    client = ClientCredentials(token="secret")
    pair = Pair(sasl=SaslServer(("PLAIN",)), client_sasl=client, allow_bare=False, by_byte=by_byte)
    assert pair.opened().is_live
    assert pair.told(Authenticating) == [Authenticating("AMBERMQ-TOKEN", b"secret")]


def test_a_token_is_not_shown() -> None:
    """Not by the value that holds it."""
    assert "secret" not in repr(ClientCredentials(token="secret"))


@pytest.mark.parametrize(
    "behind",
    [
        encode_frame(0, Open(container_id="x")),
        b"\0\0\0\x08\2\1\0\0",
        sasl(SaslResponse(response=b"early")),
        sasl(SaslOutcome(code=0)),
        (9000).to_bytes(4, "big") + b"\2\1\0\0",
    ],
)
def test_out_of_place(behind: bytes) -> None:
    """AMQP frames before SASL is done, and SASL frames out of place or too large, end the connection."""
    connection = server()
    connection.receive(SASL_HEADER + behind, 0)
    assert closed(connection.take_events()) in {"amqp:connection:framing-error", "amqp:decode-error"}


def test_second_sasl_header() -> None:
    """SASL is done once: a second SASL header is wrong, and answered by the AMQP header."""
    connection = server()
    connection.receive(SASL_HEADER + sasl(SaslInit(mechanism="ANONYMOUS")), 0)
    connection.take_events()
    connection.authenticated(True)
    connection.take_output()
    connection.receive(SASL_HEADER, 0)
    assert b"".join(map(bytes, connection.take_output())) == AMQP_HEADER
    assert closed(connection.take_events()) == "amqp:connection:framing-error"


def test_held_input_is_bounded() -> None:
    """What waits for an answer is bounded."""
    connection = Connection(
        ConnectionRole.SERVER, ConnectionLimits(held_bytes_max=1000), now_ms=0, sasl=SaslServer(), allow_bare=False
    )
    connection.receive(SASL_HEADER + sasl(SaslInit(mechanism="ANONYMOUS")), 0)
    connection.take_events()
    connection.receive(bytes(600), 0)
    assert not connection.is_ended
    connection.receive(bytes(600), 0)
    assert closed(connection.take_events()) == "amqp:resource-limit-exceeded"


def test_client_takes_no_for_an_answer() -> None:
    """A client whose mechanism is not offered, or whose server leaves SASL out, ends and says why."""
    for reply in (SASL_HEADER + sasl(SaslMechanisms(sasl_server_mechanisms=("GSSAPI",))), AMQP_HEADER):
        client = Connection(ConnectionRole.CLIENT, ConnectionLimits(), now_ms=0, sasl=ClientCredentials())
        client.open()
        assert client.take_output() == [SASL_HEADER]
        client.receive(reply, 0)
        assert closed(client.take_events()) is not None
        assert client.take_output() == []
