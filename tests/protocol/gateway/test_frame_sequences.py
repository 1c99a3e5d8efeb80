"""Random sequences of frames at real connections before one gateway: only errors of the protocol end them.

Two peers of one container take turns, so that links are stolen. A read carries several frames, and ticks, lost
transports and deleted queues come between reads. `make fuzz` tries other sequences than `make test`.
"""

import random
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import DeleteQueue
from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.message.message import AmqpValue, Message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Begin,
    Close,
    Coordinator,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Open,
    Properties,
    Rejected,
    Released,
    SaslInit,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Described, Symbol
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.authenticators import AnyPeer
from tests.protocol.gateways import gateway_of
from tests.protocol.peers import Wire, cut

_SMALL: Final = 512
_NEXT: Final = 0x7FFFFFFF
"""A delivery-id that stands for the one after the last."""
_BODY: Final = b"\x00\x53\x77\xa1\x01x"
_LIMITS: Final = ConnectionLimits(
    channel_max=2, handle_max=4, links_max=6, window_frames=8, unsettled_max=6, message_bytes_max=2000,
    partial_bytes_max=3000,
)  # fmt: skip


class _Peer:
    """One connection, and the bytes that it answers."""

    def __init__(self, gateway: Gateway) -> None:
        self.connection = Connection(
            ConnectionRole.SERVER, _LIMITS, now_ms=0, container_id="broker", sasl=SaslServer(), allow_bare=True
        )
        self.gateway = ConnectionGateway(gateway, self.connection, AnyPeer())
        self.output = bytearray()
        self._next_id = 0

    def frame(self, performative: Composite | None, payload: bytes, channel: int) -> bytes:
        """Return the bytes of a frame; a transfer with the id `_NEXT` gets the id after the last."""
        if performative is None:
            return payload
        if isinstance(performative, Transfer) and performative.delivery_id == _NEXT:
            tag = b"%d" % self._next_id
            performative = Transfer(**{**vars_of(performative), "delivery_id": self._next_id, "delivery_tag": tag})
            self._next_id += 1
        return Wire.frame(performative, payload, channel=channel)

    def receive(self, data: bytes) -> None:
        """Process a read, as the transport does."""
        self.connection.receive(data, 0)
        self.gateway.handle_events()

    def flush(self) -> None:
        """Collect the output, as the transport does."""
        self.output += b"".join(map(bytes, self.connection.take_output()))


def vars_of(performative: Composite) -> dict[str, Any]:
    """Return the fields of a performative."""
    return {name: getattr(performative, name) for name in performative.FIELDS}


_Frame: TypeAlias = tuple[Composite | None, bytes, int]
"""A performative, its payload and its channel; without a performative the bytes themselves."""


class _Broker:
    """Two peers, their gateway and its engine."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.gateway = gateway_of(self.rig.loop, limits=ServerLimits(credit_max=4, link_name_bytes_max=1024))
        self.peers = [_Peer(self.gateway), _Peer(self.gateway)]

    def connect(self, peer: int) -> None:
        """Replace an ended peer by a new connection."""
        self.peers[peer].gateway.lost()
        _check_output(self.peers[peer])
        self.peers[peer] = _Peer(self.gateway)

    def settle(self) -> None:
        """Run ticks and turns until none is left, and flush the peers."""
        sources = self.gateway.sources
        for _ in range(2):
            self.gateway.carry_out(self.rig.do())
            sources.wake_waiters()
            sources.take_answers()
            for _ in range(50):
                if not sources.ready:
                    break
                sources.serve()
                self.gateway.carry_out(self.rig.completed())
                sources.wake_waiters()
                sources.take_answers()
        for peer in self.peers:
            peer.flush()
        self.check()

    def delete(self, name: str) -> None:
        """Delete a queue, as another client does."""
        effects = self.rig.do(DeleteQueue("key", name))
        self.gateway.carry_out([each for each in effects if getattr(each, "key", "") != "key"])

    def check(self) -> None:
        """Check that no exception of our code was stored."""
        if self.gateway.mistakes:
            raise self.gateway.mistakes[0][1]

    def end(self) -> None:
        """End all peers, and check that nothing of them is left."""
        for peer in self.peers:
            peer.connection.lost()
            peer.gateway.handle_events()
            peer.gateway.lost()
        self.settle()
        gateway, state = self.gateway, self.rig.loop.state
        assert (len(gateway.links), gateway.consumers, gateway.producers, gateway.peers) == (0, {}, {}, {})
        assert not state.consumers
        assert not state.producers
        for peer in self.peers:
            _check_output(peer)


def _check_output(peer: _Peer) -> None:
    """Check that a peer can read all frames, that each fits, and that none follows our close."""
    frames = cut(bytes(peer.output))
    opened = [index for index, (_, each, _) in enumerate(frames) if isinstance(each, Open)]
    closed = [index for index, (_, each, _) in enumerate(frames) if isinstance(each, Close)]
    assert len(opened) <= 1
    assert closed in ([], [len(frames) - 1])
    remote = peer.connection.remote_open
    if remote is not None:
        for _, each, payload in frames:
            if each is not None and not isinstance(each, Open):
                assert len(Wire.frame(each, payload)) <= remote.max_frame_size


_NAMES: Final = (*"abcdefghabcdefgh", "n" * 300, "n" * 470, "n" * 1000, "n" * 1100, "n" * 5000)
_HANDLES: Final = (0, 1, 2, 3, 4)
_ADDRESSES: Final = (
    *(None, "", *["q"] * 16, "r", "/topics/t", "/queues/q", "/muxers/m/x", "$management", "$management", "$cbs"),
    *("/log", "x" * 600, "$none", "r;a", "/queues/" + "y" * 300),
)
_SELECTOR: Final = {Symbol("s"): Described(Symbol("apache.org:selector-filter:string"), "a = 1")}
_OUTCOMES: Final = (
    *(None, Accepted(), Accepted(), Released(), Modified(delivery_failed=True, undeliverable_here=True)),
    Rejected(error=Error(condition=Symbol("amqp:x"), description="y" * 600)),
)
_SASL: Final = encode_frame(0, SaslInit(mechanism=Symbol("ANONYMOUS")), frame_type=SASL_FRAME)
_RAWS: Final = (AMQP_HEADER, SASL_HEADER, _SASL, b"\0\0\0\x08\x02\0\0\0", b"\0\0\0\x08\x02\0\0\1", b"\0\0")
_REQUESTS: Final = tuple(
    Message(
        properties=Properties(message_id=1, reply_to=reply_to),
        application_properties={"operation": operation, "type": kind, "name": name},
        body=(AmqpValue({}),),
    ).encode()
    for reply_to in ("a", "q", "me")
    for operation, kind, name in (
        ("READ", "org.ambermq.queue", "q"),
        ("QUERY", "org.ambermq.queue", None),
        ("PURGE", "org.ambermq.queue", "q"),
        ("DELETE", "org.ambermq.queue", "q"),
        ("NONSENSE", "x", 5),
    )
)
_PAYLOADS: Final = (_BODY, _BODY, _BODY, b"", b"\xff", _BODY + bytes(1500), *_REQUESTS)


class _Script:
    """Random steps of one seed, described in `told` for a failure."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._pick = self._random.choice
        self._broker = _Broker()
        self.told: list[object] = []
        self._used: set[int] = set()
        """The peer's handles that have a link, as far as the script knows."""

    def run(self) -> None:
        """Open two connections, take random steps, and end."""
        for peer in (0, 1):
            self._read(peer, self._opening())
        for _ in range(self._random.randrange(20)):
            self._step()
        self._broker.settle()
        self._broker.end()

    def _step(self) -> None:
        broker, peer = self._broker, self._pick((0, 0, 0, 1))
        gateway = broker.peers[peer].gateway
        steps: tuple[tuple[int, str, Callable[[], object]], ...] = (
            (60, "read", lambda: self._read(peer, self._frames(peer))),
            (30, "settle", broker.settle),
            (2, "lost", gateway.lost),
            (2, "pause", gateway.pause),
            (2, "resume", gateway.resume),
            (1, "low", lambda: broker.gateway.set_low(Resource.DISK, is_low=True)),
            (1, "room", lambda: broker.gateway.set_low(Resource.DISK, is_low=False)),
            (2, "delete", lambda: broker.delete(self._pick(("q", "r")))),
        )
        ((_, name, step),) = self._random.choices(steps, [weight for weight, _, _ in steps])
        self.told.append((name, peer))
        step()

    def _read(self, peer: int, frames: list[_Frame]) -> None:
        """Send frames in one read or in several."""
        receiver = self._broker.peers[peer]
        pieces = [receiver.frame(*frame) for frame in frames]
        self.told += [(peer, performative or data) for performative, data, _ in frames]
        for data in pieces if self._random.random() < 0.3 else [b"".join(pieces)]:
            receiver.receive(data)
            self._broker.check()

    def _opening(self) -> list[_Frame]:
        """Open, mostly without an error, begin a session and attach, so that later frames have a scope."""
        is_plain = self._random.random() < 0.9
        size = self._pick((_SMALL, _SMALL, 700, 1 << 20))
        opening = Open(container_id=self._pick("ccd"), max_frame_size=size) if is_plain else self._open()
        begin = Wire.begin(incoming_window=self._pick((0, 2, 100)), next_outgoing_id=0) if is_plain else self._begin()
        header = self._pick((AMQP_HEADER, AMQP_HEADER, SASL_HEADER + _SASL + AMQP_HEADER))
        attaches = [self._attach() for _ in range(self._random.randrange(4))]
        return [(None, header, 0), *((each, b"", 0) for each in (opening, begin, *attaches))]

    def _frames(self, peer: int) -> list[_Frame]:
        """Return frames for a peer; it connects again or begins another session if it has none."""
        connection = self._broker.peers[peer].connection
        if connection.is_ended and self._random.random() < 0.8:
            self._broker.connect(peer)
            return self._opening()
        live = [session for session in connection.sessions() if session.is_live]
        self._used = set(live[0]._links.by_handle) if live else set()
        frames = [self._frame() for _ in range(self._random.randint(1, 6))]
        end: list[_Frame] = [(End(), b"", 0)] if 0 in connection._channels.by_channel else []
        return frames if live else [*end, (Wire.begin(next_outgoing_id=0), b"", 0), *frames]

    def _handle(self, *, is_used: bool) -> int:
        """Return a handle that mostly has a link, or has none."""
        handles = [each for each in _HANDLES if (each in self._used) == is_used]
        handle = self._pick(handles if handles and self._random.random() < 0.97 else _HANDLES)
        self._used.add(handle)
        return handle

    def _frame(self) -> _Frame:
        if self._random.random() < 0.01:
            return None, self._pick(_RAWS), 0
        makers = (self._attach, self._flow, self._transfer, self._disposition, self._detach, self._fatal)
        (make,) = self._random.choices(makers, (30, 20, 25, 15, 20, 3))
        performative = make()
        payload = self._pick(_PAYLOADS) if isinstance(performative, Transfer) else b""
        return performative, payload, self._pick([0] * 50 + [1, 2])

    def _fatal(self) -> Composite:
        """Return a frame that ends a session or a connection, or is an error where it comes."""
        make = self._pick((self._begin, self._open, lambda: End(error=self._error()), Close))
        return make()

    def _error(self) -> Error | None:
        return self._pick((None, Error(condition=Symbol("amqp:internal-error"), description="d" * 600)))

    def _open(self) -> Open:
        return Open(
            container_id=self._pick(("c", "c", "", "d", "c" * 400, "c" * 1100)),
            max_frame_size=self._pick((_SMALL, _SMALL, 700, 4096, (1 << 32) - 1, 511)),
            channel_max=self._pick((0, 1, 65535)),
            desired_capabilities=self._pick((None, (Symbol("sole-connection-for-container"),))),
        )

    def _begin(self) -> Begin:
        return Begin(
            remote_channel=self._pick((None, None, None, 0, 7)),
            next_outgoing_id=0,
            incoming_window=self._pick((0, 1, 100)),
            outgoing_window=100,
            handle_max=self._pick((0, 1, 100)),
        )

    def _attach(self) -> Attach:
        return Attach(
            name=self._pick(_NAMES),
            handle=self._handle(is_used=False),
            role=self._pick((False, True)),
            snd_settle_mode=self._pick((0, 1, 2, 2, 2)),
            rcv_settle_mode=self._pick((0, 0, 1)),
            source=self._pick((None, *[self._source()] * 9)),
            target=self._pick((None, Coordinator(), *[self._target()] * 18)),
            initial_delivery_count=0,
        )

    def _source(self) -> Source:
        return Source(
            address=self._pick(_ADDRESSES),
            durable=self._pick((0, 0, 2)),
            expiry_policy=self._pick(("session-end", "never", "link-detach")),
            dynamic=self._pick((*[False] * 9, True)),
            distribution_mode=self._pick((None, None, "move", "copy", "copy", "other")),
            filter=self._pick((None, None, {}, {}, _SELECTOR)),
            capabilities=self._pick((*[None] * 6, (Symbol("shared"),), (Symbol("queue"),), (Symbol("topic"),))),
        )

    def _target(self) -> Target:
        return Target(
            address=self._pick((*_ADDRESSES, "a", "me")),
            dynamic=self._pick((*[False] * 9, True)),
            capabilities=self._pick((None, (Symbol("queue"),))),
        )

    def _flow(self) -> Flow:
        return Flow(
            next_incoming_id=self._pick((None, 0, 5)),
            incoming_window=self._pick((0, 1, 100, 100)),
            next_outgoing_id=0,
            outgoing_window=100,
            handle=self._pick((None, *[self._handle(is_used=True)] * 4)),
            delivery_count=self._pick((None, 0, 1)),
            link_credit=self._pick((None, 0, 1, 5)),
            drain=self._pick((False, False, True)),
            echo=self._pick((False, True)),
        )

    def _transfer(self) -> Transfer:
        return Transfer(
            handle=self._handle(is_used=True),
            delivery_id=self._pick((*[_NEXT] * 12, None, 0)),
            delivery_tag=self._pick((*[b"t"] * 9, b"t" * 33, None)),
            settled=self._pick((None, False, False, True)),
            more=self._pick((*[False] * 5, True)),
            aborted=self._pick((*[False] * 9, True)),
            rcv_settle_mode=self._pick((*[None] * 9, 0, 1)),
            state=self._pick((None, None, Accepted())),
        )

    def _disposition(self) -> Disposition:
        first = self._random.randrange(5)
        return Disposition(
            role=self._pick((False, True, True)),
            first=first,
            last=self._pick((None, first, first + 3, first - 1 if first else 0)),
            settled=self._pick((False, True)),
            state=self._pick(_OUTCOMES),
        )

    def _detach(self) -> Detach:
        handle = self._handle(is_used=True)
        self._used.discard(handle)
        return Detach(handle=handle, closed=self._pick((False, True)), error=self._error())


@settings(max_examples=600)
@given(st.integers(0, (1 << 64) - 1))
def test_any_sequence_of_frames_ends_by_errors_of_the_protocol(seed: int) -> None:
    """No exception of our code; nothing is left of a lost peer; every answer fits and none follows the close."""
    script = _Script(seed)
    try:
        script.run()
    except BaseException as error:
        error.add_note("\n".join(map(repr, script.told)))
        raise


@pytest.mark.parametrize("is_accepted", [False, True])
@pytest.mark.parametrize("size", [300, 1000])
def test_an_answer_that_fits_into_no_frame_ends_the_connection_alone(size: int, *, is_accepted: bool) -> None:
    """Open, begin, attach and detach in one read or in two: a close with the condition, and no exception."""
    broker = _Broker()
    peer = broker.peers[0]
    opening = (Open(container_id="c", max_frame_size=_SMALL), Wire.begin(), Wire.attach(role=True, name="n" * size))
    attach = AMQP_HEADER + b"".join(map(Wire.frame, opening))
    detach = Wire.frame(Detach(handle=0, closed=True))
    if is_accepted:
        peer.receive(attach)
        broker.settle()
        peer.receive(detach)
    else:
        peer.receive(attach + detach)
    broker.settle()
    closes = [each for _, each, _ in cut(bytes(peer.output)) if isinstance(each, Close)]
    told = [str(each.error.condition) for each in closes if each.error]
    assert told == (["amqp:frame-size-too-small"] if size > _SMALL else [])
    broker.end()
