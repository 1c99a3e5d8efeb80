"""A peer that we did not write: qpid proton's transport, in memory, in both roles of the messages."""

from collections.abc import Callable
from typing import Any

import proton
import pytest

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.events import (
    Authenticating,
    ConnectionClosed,
    CreditChanged,
    Disposed,
    Event,
    LinkAttached,
    Opened,
    TransferRun,
)
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Accepted, Error, Modified, Rejected, Released
from ambermq.protocol.amqp10.session.session import Session


class Peers:
    """A server of ours, and a client of proton's."""

    def __init__(self, *, sasl: bool = False, limits: ConnectionLimits | None = None, max_frame_size: int = 0) -> None:
        self.server = Connection(
            ConnectionRole.SERVER,
            limits or ConnectionLimits(),
            now_ms=0,
            container_id="server",
            sasl=SaslServer() if sasl else None,
            first_delivery_id=0xFFFFFFFD,
        )
        self.events: list[Event] = []
        self.connection = proton.Connection()
        self.connection.container = "proton"
        self.connection.hostname = "localhost"
        self.transport = proton.Transport()
        if sasl:
            self.transport.sasl().allowed_mechs("ANONYMOUS")
        if max_frame_size:
            self.transport.max_frame_size = max_frame_size
        self.transport.bind(self.connection)
        self.connection.open()
        self.session = self.connection.session()
        self.session.open()

    def run(self) -> None:
        """Pass bytes until neither side has output."""
        while True:
            size = self.transport.pending()
            up = self.transport.peek(size) if size > 0 else b""
            if up:
                self.transport.pop(len(up))
                self.server.receive(up, 0)
                self._answer()
            down = b"".join(map(bytes, self.server.take_output()))
            for start in range(0, len(down), 4096):
                self.transport.push(down[start : start + 4096])
            if not up and not down:
                return

    def _answer(self) -> None:
        while events := self.server.take_events():
            self.events += events
            for event in events:
                if isinstance(event, Authenticating):
                    self.server.authenticated(True)
                elif isinstance(event, Opened):
                    self.server.accept(offered_capabilities=("ANONYMOUS-RELAY",))
                elif isinstance(event, LinkAttached) and event.link.remote is not None:
                    event.link.accept(event.link.remote.source, event.link.remote.target)
                    if isinstance(event.link, Receiver):
                        event.link.grant(1000)

    def told(self, kind: type[Any]) -> list[Any]:
        found = [event for event in self.events if isinstance(event, kind)]
        self.events.clear()
        return found

    def ours(self) -> Session:
        return self.server.sessions()[0]

    def sender(self) -> Any:
        """A link on which proton sends."""
        link = self.session.sender("up")
        link.target.address = "q"
        link.open()
        self.run()
        return link

    def receiver(self, credit: int) -> tuple[Any, Sender]:
        """A link on which proton receives, and our end of it."""
        link = self.session.receiver("down")
        link.source.address = "q"
        link.open()
        link.flow(credit)
        self.run()
        (ours,) = (each for each in self.ours().links() if isinstance(each, Sender))
        return link, ours


@pytest.mark.parametrize("sasl", [False, True])
def test_open_and_close(sasl: bool) -> None:
    """Proton opens, begins and closes, with SASL and without."""
    peers = Peers(sasl=sasl)
    peers.run()
    assert peers.connection.state & proton.Endpoint.REMOTE_ACTIVE
    assert peers.session.state & proton.Endpoint.REMOTE_ACTIVE
    assert peers.connection.remote_container == "server"
    assert peers.server.remote_container_id == "proton"
    peers.connection.close()
    peers.run()
    assert peers.connection.state & proton.Endpoint.REMOTE_CLOSED
    assert peers.told(ConnectionClosed) == [ConnectionClosed(None)]


def test_proton_sends() -> None:
    """Proton's deliveries arrive in runs, and each learns its outcome."""
    peers = Peers()
    link = peers.sender()
    assert link.credit == 1000
    sent = []
    for index in range(300):
        sent.append(link.delivery(f"tag {index}"))
        link.send(b"message %d" % index)
        link.advance()
    peers.run()
    runs = peers.told(TransferRun)
    assert [bytes(payload) for run in runs for payload in run.payloads] == [
        b"message %d" % index for index in range(300)
    ]
    assert len(runs) < 20
    first = runs[0].first_id
    states = [Accepted(), Released(), Rejected(error=Error(condition="amqp:not-found")), Modified(delivery_failed=True)]
    peers.ours().settle(first, 100, states[0])
    peers.ours().settle(first + 100, 100, states[1])
    peers.ours().settle(first + 200, 50, states[2])
    peers.ours().settle(first + 250, 50, states[3])
    peers.run()
    assert all(delivery.settled for delivery in sent)
    codes = [int(delivery.remote_state) for delivery in sent]
    assert codes == [0x24] * 100 + [0x26] * 100 + [0x25] * 50 + [0x27] * 50


@pytest.mark.parametrize("size", [0, 10, 5000, 300_000])
def test_any_size_both_ways(size: int) -> None:
    """Messages of any size pass both ways through small frames."""
    peers = Peers(limits=ConnectionLimits(frame_bytes_max=4096), max_frame_size=4096)
    link = peers.sender()
    message = bytes(range(256)) * (size // 256 + 1)
    link.delivery("tag")
    link.send(message[:size])
    link.advance()
    peers.run()
    assert [bytes(payload) for run in peers.told(TransferRun) for payload in run.payloads] == [message[:size]]
    theirs, ours = peers.receiver(10)
    ours.send_run([1], [message[:size]])
    peers.run()
    assert theirs.recv(theirs.current.pending) == message[:size] if size else theirs.queued == 1


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (proton.Delivery.ACCEPTED, Accepted()),
        (proton.Delivery.RELEASED, Released()),
        (proton.Delivery.REJECTED, Rejected()),
    ],
)
def test_proton_receives(outcome: int, expected: object) -> None:
    """Proton gets what it has credit for, and its outcomes are told in runs, with our tokens."""
    peers = Peers()
    theirs, ours = peers.receiver(50)
    assert ours.sendable == 50
    first = ours.send_run(range(1000, 1050), [b"message %d" % index for index in range(50)])
    peers.run()
    got = []
    while (delivery := theirs.current) is not None and delivery.readable:
        got.append(theirs.recv(delivery.pending))
        theirs.advance()
        delivery.update(outcome)
        delivery.settle()
    assert got == [b"message %d" % index for index in range(50)]
    peers.run()
    said = peers.told(Disposed)
    assert [token for event in said for token in event.tokens] == list(range(1000, 1050))
    assert {(repr(event.state), event.settled) for event in said} == {(repr(expected), True)}
    assert said[0].first_id == first
    assert ours.session.sent.count == 0


def test_proton_drains() -> None:
    """Proton's drain ends: what there is, then no credit."""
    peers = Peers()
    theirs, ours = peers.receiver(0)
    theirs.drain(10)
    peers.run()
    assert ours.drain
    assert isinstance(peers.events[-1], CreditChanged)
    ours.send_run([1], [b"only"])
    ours.drained()
    peers.run()
    assert theirs.credit - theirs.queued == 0
    assert theirs.queued == 1
    assert theirs.drained() == 9


def _detach(peers: Peers, ours: Sender) -> None:
    ours.detach(error=Error(condition="amqp:resource-deleted", description="gone"))


def _end(peers: Peers, ours: Sender) -> None:
    peers.ours().end(Error(condition="amqp:resource-deleted", description="gone"))


def _close(peers: Peers, ours: Sender) -> None:
    peers.server.close(Error(condition="amqp:resource-deleted", description="gone"))


@pytest.mark.parametrize("goodbye", [_detach, _end, _close])
def test_our_goodbyes(goodbye: Callable[[Peers, Sender], None]) -> None:
    """Proton understands our detach, end and close, with their errors."""
    peers = Peers()
    theirs, ours = peers.receiver(1)
    goodbye(peers, ours)
    peers.run()
    endpoint = {_detach: theirs, _end: peers.session, _close: peers.connection}[goodbye]
    assert endpoint.state & proton.Endpoint.REMOTE_CLOSED
    assert endpoint.remote_condition.name == "amqp:resource-deleted"
    endpoint.close()
    peers.run()
    assert peers.server.is_ended == (goodbye is _close)


def test_pre_settled() -> None:
    """Pre-settled deliveries are told as such, and no disposition is due."""
    peers = Peers()
    link = peers.sender()
    for index in range(3):
        delivery = link.delivery(str(index))
        link.send(b"x")
        delivery.settle()
    peers.run()
    assert [run.settled for run in peers.told(TransferRun)].count(False) == 0
    assert peers.ours().received.count == 0
