"""The exchanges of SASL at the server's end, and the frames around them.

    line 1     the mechanism, `!` before it: of a peer over TLS with a certificate
    line 2-    a response each; `-` is a frame without one

    {first} and {final} in a response are the messages of a SCRAM client that knows the password, {r} the server's nonce

Rule 1. Each response gets at most one answer, after the delay of a failure at the latest.
Rule 2. No response makes a peer an identity but the right one: an input with neither {final} nor the password fails.
"""

from functools import cache
from typing import Any, Final

from scramp import ScramClient, ScramException

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.performatives.classes import Open, SaslInit, SaslResponse
from ambermq.protocol.auth.exchange import Answer, Challenge, Success
from ambermq.protocol.auth.peer import LOCAL_PEER, Peer
from ambermq.protocol.auth.users import Users
from tests.fuzz.target import Target
from tests.protocol.auth.sasl.test_authenticator import Broker, connected, some_users

_TLS: Final = Peer("203.0.113.1", "203.0.113.1:5", is_local=False, is_encrypted=True, certificate_user="alice")
_PASSWORD: Final = b"word"
_NONE: Final = b"-"
_STEP_MS: Final = 3_600_000


def run(data: bytes) -> None:
    """Log in by the exchange alone, and over a connection; then send the bytes as frames."""
    first, *responses = data.split(b"\n")
    peer = _TLS if first.startswith(b"!") else LOCAL_PEER
    mechanism = first.removeprefix(b"!").decode("ascii", "replace")
    found = _exchange(mechanism, responses, peer)
    if isinstance(found, Success) and mechanism not in {"EXTERNAL", "AMBERMQ-TOKEN"}:
        assert _PASSWORD in data or b"{final}" in data, "a login without the password"
    _connect(mechanism, responses)
    _connect_raw(data)


@cache
def _users() -> Users:
    return some_users()


def _exchange(mechanism: str, responses: list[bytes], peer: Peer) -> Answer | None:
    broker = Broker(_users())
    exchange = broker.authenticator.begin(mechanism, peer)
    if exchange is None:
        return None
    client = _Client(mechanism)
    found: list[Answer] = []
    for count, response in enumerate(responses, 1):
        exchange.step(client.filled(response), found.append)
        broker.work.advance(_STEP_MS)
        assert len(found) == count, "a response without an answer"
        last = found[-1]
        if not isinstance(last, Challenge):
            return last
        client.challenge = last.data
    return None


class _Client:
    """A SCRAM client that knows the password, where the input asks for it."""

    def __init__(self, mechanism: str) -> None:
        self._scram: Any = ScramClient([mechanism], "alice", "word") if mechanism.startswith("SCRAM-SHA-") else None
        self.challenge = b""

    def filled(self, response: bytes) -> bytes | None:
        """Return a response with its messages."""
        if response == _NONE:
            return None
        nonce = self.challenge.partition(b"r=")[2].partition(b",")[0]
        response = response.replace(b"{r}", nonce)
        if self._scram is None:
            return response
        if b"{first}" in response:
            response = response.replace(b"{first}", self._scram.get_client_first().encode())
        if b"{final}" in response:
            try:
                self._scram.set_server_first(self.challenge.decode())
                response = response.replace(b"{final}", self._scram.get_client_final().encode())
            except (ScramException, UnicodeDecodeError):
                return response
        return response


def _connect(mechanism: str, responses: list[bytes]) -> None:
    """Send the responses in frames; the connection answers or ends."""
    broker = Broker(_users())
    server, gateway = connected(broker)
    server.receive(SASL_HEADER, 0)
    for number, response in enumerate(responses or [b""]):
        value = None if response == _NONE else response
        init = SaslInit(mechanism=mechanism.encode("ascii", "replace").decode(), initial_response=value)
        frame = SaslResponse(response=response) if number else init
        server.receive(encode_frame(0, frame, frame_type=SASL_FRAME), 0)
        gateway.handle_events()
        broker.work.advance(_STEP_MS)
    server.receive(AMQP_HEADER + encode_frame(0, Open(container_id="x")), 0)
    gateway.handle_events()
    server.take_output()
    gateway.lost()


def _connect_raw(data: bytes) -> None:
    """Send the input itself behind the header."""
    broker = Broker(_users())
    server, gateway = connected(broker)
    server.receive(SASL_HEADER + data, 0)
    gateway.handle_events()
    broker.work.advance(_STEP_MS)
    gateway.handle_events()
    assert server.remote_open is None or _PASSWORD in data
    gateway.lost()


def seeds() -> list[bytes]:
    """Return the exchanges of each mechanism, and a frame of SASL."""
    frame = encode_frame(0, SaslInit(mechanism="PLAIN", initial_response=b"\0alice\0wrong"), frame_type=SASL_FRAME)
    return [
        frame,
        b"PLAIN\n\0alice\0word",
        b"PLAIN\n-\n\0bob\0word",
        b"PLAIN\nalice\0alice\0wrong",
        b"!PLAIN\n\0carol\0word",
        b"EXTERNAL\n",
        b"!EXTERNAL\nalice",
        b"!EXTERNAL\n-",
        b"AMBERMQ-TOKEN\ntoken",
        b"ANONYMOUS\n-",
        *(b"%s\n%s" % (name, rest) for name in (b"SCRAM-SHA-256", b"SCRAM-SHA-512") for rest in _SCRAM),
    ]


_SCRAM: Final = (
    b"{first}\n{final}",
    b"-\n{first}\n{final}\n",
    b"n,,n=alice,r=abc\nc=biws,r={r},p=YQ==",
    b"n,a=alice,n=alice,r=abc\nc=biws,r={r},p=YQ==",
    b"y,,n=mallory,r=abc\nc=eSws,r={r},p=YQ==",
    b"p=tls-unique,,n=alice,r=abc",
    b"n,,n==2C=3D,r=abc",
    b"n,,m=ext,n=alice,r=abc",
    b"n,,n=,r=\nn,,n=,r=",
    b"n,,n=\xc3\xa4\xe2\x85\xa8,r=x",
)

TARGET: Final = Target(
    run,
    seeds,
    words=(
        *(b"PLAIN", b"EXTERNAL", b"ANONYMOUS", b"MSSBCBS", b"SCRAM-SHA-256", b"SCRAM-SHA-512", b"AMBERMQ-TOKEN"),
        *(
            b"{first}",
            b"{final}",
            b"{r}",
            b"n,,",
            b"y,,",
            b"p=tls-exporter,,",
            b"n=alice",
            b"r=",
            b"c=biws",
            b"p=",
            b"i=4096",
        ),
        *(b"=2C", b"=3D", b"\0", b"\n-\n", b"\xc2\xad", b"\xe2\x85\xa8", b"\0\x53\x41", b"\0\x53\x43", b"\2\1\0\0"),
    ),
)
