"""A peer of frames that receives on links which take nothing, before the gateway and an engine stepped by hand."""

import random
from typing import Any

from ambermq.engine.config import EngineConfig
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage
from ambermq.log.storage.worker_threads import InlineWorkers
from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.message.message import Message, decode_message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Flow, Open, Source, Target, Transfer
from ambermq.protocol.amqp10.types.values import Described, Symbol
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.log.lives import DIRECTORY
from tests.log.simulated import SimulatedStorage
from tests.protocol.authenticators import AnyPeer
from tests.protocol.gateways import gateway_of
from tests.protocol.peers import FIRST_ID, Wire, cut

__all__ = ["AT", "DiskRig", "Watching", "at", "bodies"]

AT = Symbol("ambermq:at")


def at(value: Any, *, is_bare: bool = False) -> dict[Any, Any]:
    """A source's filter for a moment."""
    return {AT: value if is_bare else Described(AT, value)}


class Watching:
    """One peer, and the engine that it browses."""

    def __init__(
        self,
        rig: Rig | None = None,
        *,
        limits: ServerLimits | None = None,
        connection: ConnectionLimits | None = None,
        directory: str = DIRECTORY,
        readers: tuple[str | None, ...] = (None,),
        window: int = 1 << 20,
        container: str | None = "wire",
        gateway: Gateway | None = None,
        idle_time_out: int | None = None,
    ) -> None:
        """`gateway` is that of another peer, of the same rig. Without a container no open is sent."""
        self.rig = rig or Rig()
        self.rig.is_linkless = False
        self.gateway = gateway or gateway_of(self.rig.loop, limits=limits, directory=directory, readers=readers)
        server = Connection(
            ConnectionRole.SERVER, connection or ConnectionLimits(), now_ms=0, container_id="broker", allow_bare=True
        )
        self.peer = ConnectionGateway(self.gateway, server, AnyPeer())
        self.turns = 0
        """Turns given so far."""
        self.window = window
        self.directory = directory
        self.give(AMQP_HEADER)
        self.opening: list[Composite | None] = []
        """What the broker has answered to the open."""
        if container is not None:
            begin = Wire.begin(incoming_window=window)
            self.opening = self.say(Open(container_id=container, idle_time_out=idle_time_out), begin)

    def give(self, data: bytes) -> list[tuple[Composite | None, bytes]]:
        """Send bytes in one read; returns what comes back once all is quiet, as (performative, payload)."""
        self.peer.connection.receive(data, 0)
        self.peer.handle_events()
        return self.settle()

    def settle(self) -> list[tuple[Composite | None, bytes]]:
        """Run ticks, syncs, jobs and turns until none is left; return the messages that arrive."""
        sources = self.gateway.sources
        while self.gateway.lost_links.links:
            self.gateway.lost_links.detach()
        for _ in range(3):
            self.gateway.carry_out(self.rig.do())
            sources.wake_waiters()
            sources.take_answers()
            while sources.ready:
                sources.serve()
                self.turns += 1
                self.gateway.carry_out(self.rig.completed())
                sources.wake_waiters()
                sources.take_answers()
        assert not self.gateway.mistakes, self.gateway.mistakes
        output = b"".join(map(bytes, self.peer.connection.take_output()))
        return [(performative, payload) for _, performative, payload in cut(output)]

    def say(self, *performatives: Composite) -> list[Composite | None]:
        """Send frames; returns the performatives that come back."""
        return [performative for performative, _ in self.give(b"".join(map(Wire.frame, performatives)))]

    def attach(self, address: str, *, handle: int = 0, mode: str | None = "copy", **fields: Any) -> Attach:
        """Attach a link to browse; returns the answer."""
        source = Source(address=address, distribution_mode=mode, filter=fields.pop("filter", None))
        attach = Attach(name=f"l{handle}", handle=handle, role=True, source=source, target=Target(), **fields)
        (answer,) = [said for said in self.say(attach) if isinstance(said, Attach)]
        return answer

    def refused(self, address: str, *, mode: str | None = "copy", filters: Any = None) -> tuple[str, str]:
        """Attach a link that is refused; returns condition and description."""
        source = Source(address=address, distribution_mode=mode, filter=filters)
        said = self.say(Attach(name="no", handle=99, role=True, source=source, target=Target()))
        answer, goodbye = [each for each in said if isinstance(each, Attach | Detach)]
        assert isinstance(answer, Attach)
        assert answer.source is None
        assert isinstance(goodbye, Detach)
        assert goodbye.closed
        assert goodbye.error is not None
        self.say(Detach(handle=99, closed=True))
        return str(goodbye.error.condition), str(goodbye.error.description)

    def flow(self, credit: int, *, handle: int = 0, count: int = 0, **fields: Any) -> list[tuple[Any, bytes]]:
        """Grant credit; return the messages that arrive."""
        windows = {"next_incoming_id": 0, "incoming_window": self.window, "next_outgoing_id": FIRST_ID}
        flow = Flow(
            **{**windows, "outgoing_window": 1000, **fields}, handle=handle, delivery_count=count, link_credit=credit
        )
        return self.give(Wire.frame(flow))

    def drain(self, *, handle: int = 0, credit: int = 1 << 20) -> list[bytes]:
        """Receive all that comes until the drain is answered; returns the payloads."""
        said = self.flow(credit, handle=handle, drain=True)
        flows = [each for each, _ in said if isinstance(each, Flow)]
        assert flows
        assert flows[-1].drain
        assert flows[-1].link_credit == 0
        return bodies(said)

    def browse(self, address: str, *, handle: int = 0, **fields: Any) -> list[bytes]:
        """Attach, drain and detach: everything that the source shows."""
        self.attach(address, handle=handle, **fields)
        found = self.drain(handle=handle)
        self.say(Detach(handle=handle, closed=True))
        return found

    def events(self, address: str = "/log", **fields: Any) -> list[Message]:
        """Every event that there is, decoded."""
        return [decode_message(payload) for payload in self.browse(address, mode=None, **fields)]


def bodies(said: list[tuple[Any, bytes]]) -> list[bytes]:
    """The messages among what came; the frames of one follow each other."""
    whole: list[bytes] = []
    is_more = False
    for performative, payload in said:
        if isinstance(performative, Transfer):
            if is_more:
                whole[-1] += payload
            else:
                whole.append(payload)
            is_more = bool(performative.more)
    return whole


class DiskRig(Rig):
    """A rig over a directory of the real disk, which the past can be read from."""

    def __init__(self, directory: str, *, config: EngineConfig | None = None, **sizes: int) -> None:
        """`sizes` are those of LogConfig."""
        self.storage = SimulatedStorage(random.Random(0))
        self.now_us = 1_000_000
        storage: Storage = DiskStorage()
        recovery = Recovery.open(storage, directory, LogConfig(ballast_bytes=0, **sizes), self.now_us)
        self.recovered = fold_log(recovery)
        self.loop = DurableLoop(recovery.log(InlineWorkers()), self.recovered, config or EngineConfig())
        self.loop.start(self.now_us)
