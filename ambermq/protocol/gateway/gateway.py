"""The gateway: what connections tell becomes commands, what the engine lets leave becomes calls on links.

Pure translation: no clock, no socket, no log. One gateway serves all connections of a virtual host; a
`ConnectionGateway` is one.

Rule 1. The gateway decides nothing about messages; it validates what only AMQP knows (termini, states, encodings).
Rule 2. What a peer did wrong ends its link, session or connection, and nothing else.
Rule 3. A connection whose output may have grown stands in `touched` until the server has flushed it.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, final

from ambermq.engine.effects import (
    Answered,
    CommandFailed,
    ConsumerEnded,
    ConsumerReady,
    Deliver,
    Drained,
    Effect,
    OutcomeApplied,
    ProducerReady,
    ProducersEnded,
    PublishDone,
    RefusedCommand,
)
from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.protocol.amqp10.endpoints import LinkEndpoint
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.connection_peer import ConnectionPeer
from ambermq.protocol.gateway.container_ids import ContainerIds
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.gateway.links.consumer_link import ConsumerLink
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.gateway.links.producer_link import ProducerLink
from ambermq.protocol.gateway.sources.source_scheduler import SourceScheduler
from ambermq.protocol.management.sorted_ids import SortedIds
from ambermq.protocol.management.vhosts import VhostPort
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["Gateway", "VhostGateways"]


LinkName = tuple[str, str, bool]
"""Container id, name, and whether we send on it (transport, 2.6.1)."""


class VhostGateways(VhostPort, Protocol):
    """The virtual hosts of a server, by the hostname of an open."""

    def gateway_of(self, hostname: str | None) -> "Gateway":
        """Return the gateway of the virtual host that an open's hostname means."""


@final
class Gateway:
    """All peers of one virtual host, before its engine."""

    def __init__(
        self,
        engine: EnginePort,
        limits: ServerLimits,
        *,
        container_id: str,
        beside: BackgroundQueries,
        may_read_log: Callable[[str | None], bool],
        vhost: str = "default",
        vhosts: VhostGateways | None = None,
    ) -> None:
        self.engine = engine
        self.limits = limits
        self.container_id = container_id
        self.beside = beside
        """Answers what would hold the loop up."""
        self.may_read_log = may_read_log
        """A user's name, None for the nameless -> may this one read `/log`?"""
        self.vhost = vhost
        """The virtual host that all of it belongs to."""
        self.vhosts = vhosts
        """Knows the others; None where there are none."""
        self.orders = SortedIds()
        """What listings go through."""
        self.sources = SourceScheduler(self)
        """The links that take nothing."""
        self.is_room_low = False
        """Little disk is left: no new credit, and sessions are closed to transfers."""
        self.touched: dict[LinkPeer, None] = {}
        """Connections that may have output."""
        self.consumers: dict[int, ConsumerLink] = {}
        """By the engine's id."""
        self.producers: dict[int, ProducerLink] = {}
        """By the engine's id."""
        self.peers: dict[ConnectionPeer, None] = {}
        self.containers = ContainerIds(id_bytes_max=limits.container_id_bytes_max)
        self.links: dict[LinkName, tuple[ConnectionPeer, LinkEndpoint]] = {}
        """Those of all connections; who attaches one anew steals it."""
        self.mistakes: list[Exception] = []
        """Our own, for the server to log."""

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Do what the engine lets leave, in order; a mistake of ours costs the connection that the effect was for."""
        touched = self.touched
        for effect in effects:
            try:
                if type(effect) is Deliver:
                    consuming: ConsumerLink = effect.link
                    if consuming.deliver(effect):
                        consuming.top_up()
                    touched[consuming.peer] = None
                elif type(effect) is PublishDone:
                    producing: ProducerLink = effect.link
                    producing.finish(effect)
                    touched[producing.peer] = None
                else:
                    self._carry_out(effect)
            except Exception as mistake:  # noqa: BLE001 - whatever it is, the other effects must leave
                self.blame(_peer_of(getattr(effect, "key", None), getattr(effect, "link", None)), mistake)

    def blame(self, peer: LinkPeer | None, mistake: Exception) -> None:
        """End a connection for a mistake of ours; the server logs what is kept here."""
        self.mistakes.append(mistake)
        if peer is not None:
            peer.lost()
            error = Error(condition=Symbol(AmqpCondition.INTERNAL_ERROR), description="the broker made a mistake")
            peer.connection.close(error)
            self.touched[peer] = None

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case OutcomeApplied():
                ConsumerLink.answer(effect)
                answered: ConsumerLink = effect.reply[0]
                if answered.link.session.is_awaited:
                    answered.peer.relieve(answered.link.session)
                self.touched[answered.peer] = None
            case Drained():
                self._drained(effect)
            case ConsumerReady():
                self._consumer_ready(effect)
            case ProducerReady():
                effect.key.peer.producer_ready(effect.key, effect)
                self.touched[effect.key.peer] = None
            case Answered() | RefusedCommand():
                effect.key.peer.answered(effect)
                self.touched[effect.key.peer] = None
            case ConsumerEnded():
                self._consumer_ended(effect)
            case ProducersEnded():
                self._producers_ended(effect)
            case CommandFailed():
                self._command_failed(effect)

    def set_room_low(self, *, is_low: bool) -> None:
        """Close every session to transfers, or open them again."""
        if is_low is self.is_room_low:
            return
        self.is_room_low = is_low
        for peer in self.peers:
            peer.set_room_low(is_low=is_low)
            self.touched[peer] = None

    def _drained(self, effect: Drained) -> None:
        consuming: ConsumerLink = effect.link
        # What waits for the session's window still needs its credit; when that opens, the drain goes on.
        if consuming.is_open and not consuming.backlog_count:
            consuming.link.drained()
            # The engine may have been told of the rest of the credit meanwhile: it is gone.
            consuming.top_up()
            self.touched[consuming.peer] = None

    def _consumer_ready(self, effect: ConsumerReady) -> None:
        consuming: ConsumerLink = effect.key
        self.consumers[effect.consumer] = consuming
        consuming.peer.consumer_ready(consuming, effect)
        self.touched[consuming.peer] = None

    def _consumer_ended(self, effect: ConsumerEnded) -> None:
        consuming = self.consumers.pop(effect.consumer, None)
        if consuming is not None and consuming.is_open:
            consuming.peer.consumer_ended(
                consuming, Error(condition=Symbol(effect.condition), description=effect.description)
            )
            self.touched[consuming.peer] = None

    def _producers_ended(self, effect: ProducersEnded) -> None:
        error = Error(condition=Symbol(effect.condition), description=effect.description)
        for producer in sorted(effect.producers):
            producing = self.producers.pop(producer, None)
            if producing is not None:
                producing.peer.producer_ended(producing, error)
                self.touched[producing.peer] = None

    def _command_failed(self, effect: CommandFailed) -> None:
        command = effect.command
        consuming = self.consumers.get(getattr(command, "consumer", 0))
        # The key comes first: where a command has both, its link is a name.
        self.blame(_peer_of(getattr(command, "key", None), getattr(command, "link", None), consuming), effect.error)


def _peer_of(*sources: object) -> LinkPeer | None:
    """Return the connection behind the first of these that belongs to one."""
    return next((peer for peer in (getattr(source, "peer", None) for source in sources) if peer is not None), None)
