"""What a broker offers to a peer, and who the peer is: both ends of each mechanism, in memory."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import Open, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from ambermq.protocol.auth.exchange import Answer, Challenge, Failure, Success
from ambermq.protocol.auth.identity import Identity, ManagementScope
from ambermq.protocol.auth.peer import LOCAL_PEER, Peer
from ambermq.protocol.auth.sasl.authenticator import BrokerAuthenticator
from ambermq.protocol.auth.sasl.client_credentials import ClientCredentials
from ambermq.protocol.auth.sasl.login_throttle import LoginThrottle
from ambermq.protocol.auth.users import User, Users
from ambermq.protocol.auth.verifier import argon2_verifier, scram_verifier
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.authenticators import InlineLogins
from tests.protocol.gateways import gateway_of
from tests.protocol.peers import cut

_SALT = b"0123456789abcdef"
_REMOTE = Peer("203.0.113.1", "203.0.113.1:5", is_local=False)
_TLS = Peer("203.0.113.1", "203.0.113.1:5", is_local=False, is_encrypted=True, certificate_user="alice")
_UNIX = Peer(is_encrypted=True, uid=1234)
_SCOPE = ManagementScope("default", frozenset())
_SCRAM = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_LIMITS = ServerLimits(login_failures_max=3)


def some_users() -> Users:
    """Return a table with alice, bob for PLAIN alone, and carol, who is disabled."""
    keys = scram_verifier(b"word", (_SALT, _SALT), 4096)
    plain = argon2_verifier(b"word", _SALT)
    return Users(b"s" * 32, (User("alice", keys), User("bob", plain), User("carol", keys, is_enabled=False)))


class Broker:
    """An authenticator with a table of users, and the logins of its peers."""

    def __init__(self, users: Users | None = None, **options: Any) -> None:
        self.work = InlineLogins()
        self.authenticator = BrokerAuthenticator(
            some_users() if users is None else users,
            LoginThrottle(_LIMITS),
            self.work,
            redeem={"token": _SCOPE}.get,
            own_uid=1000,
            name_of_uid={1234: "alice", 1235: "dave"}.get,  # type: ignore[arg-type]  # of known ids alone
            **options,
        )

    def login(self, mechanism: str, *responses: bytes | None, peer: Peer = LOCAL_PEER) -> Answer | None:
        """Return the last answer; None if the mechanism is not offered."""
        exchange = self.authenticator.begin(mechanism, peer)
        found: list[Answer] = []
        for response in responses:
            if exchange is None:
                return None
            exchange.step(response, found.append)
            self.work.advance(10_000)
        return found[-1] if found else None

    def plain(self, text: str, peer: Peer = LOCAL_PEER) -> Answer | None:
        return self.login("PLAIN", text.encode(), peer=peer)

    def scram(self, name: str, password: str, mechanism: str = "SCRAM-SHA-256") -> tuple[Answer, Answer]:
        """Return the first answer and the last one."""
        client = ScramClient([mechanism], name, password)
        exchange = self.authenticator.begin(mechanism, LOCAL_PEER)
        assert exchange is not None
        found: list[Answer] = []
        exchange.step(client.get_client_first().encode(), found.append)
        assert isinstance(found[0], Challenge)
        client.set_server_first(found[0].data.decode())
        exchange.step(client.get_client_final().encode(), found.append)
        self.work.advance(10_000)
        if isinstance(found[1], Success):
            client.set_server_final(found[1].data.decode())
        return found[0], found[1]


@pytest.mark.parametrize(
    ("peer", "offered"),
    [
        (LOCAL_PEER, (*_SCRAM, "PLAIN")),
        (_REMOTE, _SCRAM),
        (_TLS, ("EXTERNAL", *_SCRAM, "PLAIN")),
        (_UNIX, ("EXTERNAL", *_SCRAM, "PLAIN")),
        (Peer(uid=1235), (*_SCRAM, "PLAIN")),
        (Peer(uid=0), ("EXTERNAL", *_SCRAM, "PLAIN")),
    ],
)
def test_mechanisms_with_users(peer: Peer, offered: tuple[str, ...]) -> None:
    """PLAIN needs a hidden transport, EXTERNAL a user, ANONYMOUS is not offered."""
    broker = Broker()
    assert broker.authenticator.mechanisms(peer) == offered
    assert broker.authenticator.bare(peer) is None
    for mechanism in {"PLAIN", "EXTERNAL", "ANONYMOUS", "MSSBCBS", "GSSAPI"} - set(offered):
        assert broker.authenticator.begin(mechanism, peer) is None


def test_mechanisms_without_users() -> None:
    """Local peers are anonymous; remote ones have nothing to log in with."""
    broker = Broker(Users(b"s" * 32))
    assert broker.authenticator.mechanisms(LOCAL_PEER) == ("ANONYMOUS", "MSSBCBS")
    assert broker.authenticator.bare(LOCAL_PEER) == Identity()
    assert broker.authenticator.mechanisms(_REMOTE) == _SCRAM
    assert broker.authenticator.bare(_REMOTE) is None
    assert Broker(Users(b"s" * 32), allows_anonymous=False).authenticator.bare(LOCAL_PEER) is None
    remote = Success(Identity(is_remote=True))
    assert Broker(Users(b"s" * 32), allows_anonymous=True).login("ANONYMOUS", None, peer=_REMOTE) == remote


def test_an_allowed_anonymous_peer_has_a_name_where_users_are() -> None:
    """So that rules can name it."""
    broker = Broker(allows_anonymous=True, plain_without_tls=True)
    assert broker.authenticator.mechanisms(_REMOTE) == (*_SCRAM, "PLAIN", "ANONYMOUS", "MSSBCBS")
    assert broker.login("MSSBCBS", b"", peer=_REMOTE) == Success(Identity("anonymous"))
    assert broker.authenticator.bare(_REMOTE) == Identity("anonymous")


def test_external() -> None:
    """The own user id and root are `local`; others need a user; no peer acts as another user."""
    broker = Broker()
    assert broker.login("EXTERNAL", b"", peer=Peer(uid=1000)) == Success(Identity("local", is_local=True))
    assert broker.login("EXTERNAL", None, peer=_UNIX) == Success(Identity("alice"))
    assert broker.login("EXTERNAL", b"alice", peer=_TLS) == Success(Identity("alice"))
    assert isinstance(broker.login("EXTERNAL", b"bob", peer=_TLS), Failure)


def test_plain() -> None:
    """Against SCRAM keys and argon2id; every failure is one."""
    broker = Broker()
    assert broker.plain("\0alice\0word") == broker.plain("alice\0alice\0word") == Success(Identity("alice"))
    assert broker.plain("\0bob\0word") == Success(Identity("bob"))
    for text in ("\0alice\0wrong", "\0mallory\0word", "\0carol\0word", "alice\0bob\0word", "no", "\0alice\0", "\0\0"):
        assert isinstance(broker.plain(text), Failure), text
    for response in (b"\0\xff\xfe\0word", b"\0alice\0\xff", b"\0alice\0" + bytes(2000), b"\0\xed\xa0\x80\0x"):
        assert isinstance(broker.login("PLAIN", response), Failure)
    assert broker.login("PLAIN", None) == Challenge(b"")
    assert broker.login("PLAIN", None, b"\0alice\0word") == Success(Identity("alice"))


def test_an_unknown_user_and_a_wrong_password_are_the_same_work() -> None:
    """One check each, one answer, after one delay."""
    broker = Broker()
    answers = [broker.plain("\0alice\0wrong"), broker.plain("\0mallory\0wrong")]
    assert broker.work.checks == 2
    assert {str(answer.reason) for answer in answers if isinstance(answer, Failure)} == {
        "the user is unknown, or the password is wrong"
    }


@pytest.mark.parametrize("mechanism", _SCRAM)
def test_scram(mechanism: str) -> None:
    """Another implementation logs in, and checks the signature of the server."""
    broker = Broker()
    assert broker.scram("alice", "word", mechanism)[1][0] == Identity("alice")
    for name, password in (("alice", "wrong"), ("mallory", "word"), ("carol", "word"), ("bob", "word")):
        assert isinstance(broker.scram(name, password, mechanism)[1], Failure)


def test_scram_of_an_unknown_user_looks_the_same_each_time() -> None:
    """Its salt and its iterations are those of a user."""
    broker = Broker()

    def salt_of(name: str) -> str:
        first = broker.scram(name, "x")[0]
        assert isinstance(first, Challenge)
        return first.data.decode().partition(",s=")[2]

    assert salt_of("mallory") == salt_of("mallory") != salt_of("trudy")
    assert salt_of("mallory").partition(",i=")[2] == salt_of("alice").partition(",i=")[2] == "4096"
    assert len(salt_of("mallory")) == len(salt_of("alice"))


def test_a_token_is_not_offered_and_has_a_scope() -> None:
    """A child process knows of it."""
    broker = Broker()
    assert broker.login("AMBERMQ-TOKEN", b"token") == Success(Identity(scope=_SCOPE))
    assert isinstance(broker.login("AMBERMQ-TOKEN", b"\xff"), Failure)


def test_a_failure_is_delayed_and_a_remote_address_is_locked() -> None:
    """A locked login is refused without a check, though the password is right."""
    broker = Broker()
    exchange = broker.authenticator.begin("PLAIN", _TLS)
    assert exchange is not None
    found: list[Answer] = []
    exchange.step(b"\0alice\0wrong", found.append)
    assert found == []
    broker.work.advance(_LIMITS.login_delay_ms)
    assert len(found) == 1
    for _ in range(2):
        broker.plain("\0alice\0wrong", _TLS)
    checks = broker.work.checks
    assert isinstance(broker.plain("\0alice\0word", _TLS), Failure)
    assert broker.work.checks == checks
    assert broker.plain("\0alice\0word") == Success(Identity("alice"))


def test_a_user_who_is_deleted_during_the_check_is_refused() -> None:
    """The table is asked again after the work."""
    broker = Broker()
    broker.work.held = []
    exchange = broker.authenticator.begin("PLAIN", LOCAL_PEER)
    assert exchange is not None
    found: list[Answer] = []
    exchange.step(b"\0alice\0word", found.append)
    broker.authenticator.users.remove("alice")
    broker.work.held[0]()
    broker.work.advance(10_000)
    assert isinstance(found[0], Failure)


def test_a_password_that_changes_during_scram_is_the_old_one_no_more() -> None:
    """A stranger who holds the old password cannot wait with its proof until the password is another one."""
    broker, client = Broker(), ScramClient(["SCRAM-SHA-256"], "alice", "word")
    exchange = broker.authenticator.begin("SCRAM-SHA-256", LOCAL_PEER)
    assert exchange is not None
    found: list[Answer] = []
    exchange.step(client.get_client_first().encode(), found.append)
    assert isinstance(found[0], Challenge)
    client.set_server_first(found[0].data.decode())
    broker.authenticator.users.put(User("alice", scram_verifier(b"other", (_SALT, _SALT), 4096)))
    exchange.step(client.get_client_final().encode(), found.append)
    broker.work.advance(10_000)
    assert isinstance(found[1], Failure)


def test_a_peer_that_has_gone_costs_no_check() -> None:
    """Guesses that hang up at once do not fill the threads; they count as failures."""
    broker, asked = Broker(), list[bool]()
    broker.work.held = []
    for _ in range(_LIMITS.login_failures_max):
        exchange = broker.authenticator.begin("PLAIN", _TLS)
        assert exchange is not None
        exchange.step(b"\0alice\0word", lambda found: asked.append(isinstance(found, Success)))
        exchange.end()
    for check in broker.work.held:
        check()
    broker.work.advance(10_000)
    assert asked == [False] * _LIMITS.login_failures_max
    assert isinstance(broker.plain("\0alice\0word", _TLS), Failure), "the address is locked"


def connected(broker: Broker, late: Callable[[], None] | None = None) -> tuple[Connection, ConnectionGateway]:
    """Return a server's connection of a peer on this machine."""
    connection = Connection(
        ConnectionRole.SERVER,
        ConnectionLimits(),
        now_ms=0,
        container_id="broker",
        sasl=SaslServer(broker.authenticator.mechanisms(LOCAL_PEER)),
        allow_bare=False,
    )
    return connection, ConnectionGateway(gateway_of(Rig().loop), connection, broker.authenticator, LOCAL_PEER, late)


@pytest.mark.parametrize(
    ("credentials", "mechanism"),
    [
        (ClientCredentials("alice", "word"), "SCRAM-SHA-512"),
        (ClientCredentials("alice", "word", is_plain=True), "PLAIN"),
        (ClientCredentials("alice", "wrong"), ""),
        (ClientCredentials("alice"), ""),
        (ClientCredentials(), ""),
        (ClientCredentials("alice", "\u0007"), ""),
    ],
)
def test_our_client_logs_in_at_our_server(credentials: ClientCredentials, mechanism: str) -> None:
    """By the best mechanism; a wrong password ends both ends."""
    broker = Broker()
    server, gateway = connected(broker)
    client = Connection(ConnectionRole.CLIENT, ConnectionLimits(), now_ms=0, container_id="c", sasl=credentials)
    client.open()
    for _ in range(10):
        server.receive(b"".join(map(bytes, client.take_output())), 0)
        gateway.handle_events()
        broker.work.advance(10_000)
        client.receive(b"".join(map(bytes, server.take_output())), 0)
    assert (client.remote_open is not None) is bool(mechanism)
    if mechanism:
        assert (gateway.mechanism, gateway.identity) == (mechanism, Identity("alice"))
    else:
        assert client.is_ended


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    """It accepts the proof without a signature of its own."""
    client = Connection(ConnectionRole.CLIENT, ConnectionLimits(), now_ms=0, sasl=ClientCredentials("alice", "word"))
    client.open()
    offered = encode_frame(0, SaslMechanisms(sasl_server_mechanisms=("SCRAM-SHA-256",)), frame_type=SASL_FRAME)
    client.receive(SASL_HEADER + offered, 0)
    client.receive(encode_frame(0, SaslOutcome(code=0), frame_type=SASL_FRAME), 0)
    assert client.is_ended


@pytest.mark.parametrize("mechanism", ["GSSAPI", "ANONYMOUS", "EXTERNAL", ""])
def test_a_mechanism_that_is_not_offered_ends_the_connection(mechanism: str) -> None:
    """With the outcome auth (5.3.3.2); what follows is not processed."""
    broker = Broker()
    server, gateway = connected(broker)
    init = encode_frame(0, SaslInit(mechanism=mechanism, initial_response=b"x"), frame_type=SASL_FRAME)
    server.receive(SASL_HEADER + init + AMQP_HEADER + encode_frame(0, Open(container_id="x")), 0)
    gateway.handle_events()
    frames = [each for _, each, _ in cut(b"".join(map(bytes, server.take_output())))]
    assert [each.code for each in frames if isinstance(each, SaslOutcome)] == [1]
    assert server.is_ended
    assert server.remote_open is None


def test_the_input_waits_for_a_late_answer() -> None:
    """What was pipelined is processed when the check has ended; a connection that has gone is left alone."""
    for is_gone in (False, True):
        broker, called = Broker(), list[int]()
        broker.work.held = []
        server, gateway = connected(broker, lambda called=called: called.append(1))  # type: ignore[misc]
        init = SaslInit(mechanism="PLAIN", initial_response=b"\0alice\0word")
        frames = encode_frame(0, init, frame_type=SASL_FRAME) + AMQP_HEADER + encode_frame(0, Open(container_id="x"))
        server.receive(SASL_HEADER + frames, 0)
        gateway.handle_events()
        assert server.remote_open is None
        if is_gone:
            gateway.lost()
        broker.work.held[0]()
        assert called == ([] if is_gone else [1])
        assert (server.remote_open is None) is is_gone


_FRAMES = st.one_of(
    st.builds(
        SaslInit,
        mechanism=st.sampled_from(("PLAIN", "SCRAM-SHA-256", "EXTERNAL", "ANONYMOUS", "AMBERMQ-TOKEN", "", "X")),
        initial_response=st.none() | st.sampled_from((b"n,,n=alice,r=x", b"\0alice\0word")) | st.binary(max_size=40),
    ),
    st.builds(SaslResponse, response=st.sampled_from((b"c=biws,r=x,p=YQ==", b"\0bob\0word")) | st.binary(max_size=40)),
    st.builds(SaslOutcome, code=st.sampled_from((0, 1))),
    st.builds(SaslMechanisms, sasl_server_mechanisms=st.just(("PLAIN",))),
)


@settings(deadline=None)
@given(frames=st.lists(_FRAMES, max_size=6))
def test_no_sequence_of_frames_gets_in_without_a_password(frames: list[Any]) -> None:
    """A server answers or ends; only the right response of PLAIN is an identity; nothing raises."""
    broker = Broker()
    server, gateway = connected(broker)
    server.receive(SASL_HEADER, 0)
    for frame in frames:
        server.receive(encode_frame(0, frame, frame_type=SASL_FRAME), 0)
        gateway.handle_events()
        broker.work.advance(10_000)
    outcomes = [each for _, each, _ in cut(b"".join(map(bytes, server.take_output()))) if isinstance(each, SaslOutcome)]
    is_in = any(outcome.code == 0 for outcome in outcomes)
    assert is_in is (gateway.identity.username is not None)
    if is_in:
        assert b"word" in b"".join(getattr(frame, "initial_response", None) or b"" for frame in frames) + b"".join(
            getattr(frame, "response", b"") for frame in frames
        )
    assert server.remote_open is None
