"""The gateway: events of connections become commands, effects of the engine become calls on links.

It only translates: it has no clock, no socket and no log. One gateway serves all connections of a virtual host; each
connection has a `ConnectionGateway`.

Rule 1. The gateway makes no decision about messages. It validates what only AMQP defines: termini, states, encodings.
Rule 2. A peer's fault ends its link, session or connection, and nothing else.
Rule 3. A connection that may have output is in `touched` until the server has flushed it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Protocol, final

from ambermq.engine.effects import (
    ActiveChanged,
    Answered,
    ChunkStored,
    CommandFailed,
    ConsumerEnded,
    ConsumerReady,
    CutThroughBegun,
    CutThroughEnded,
    Deliver,
    Drained,
    Effect,
    LocksExpired,
    OutcomeApplied,
    ProducerReady,
    ProducersEnded,
    PublishDone,
    QueueBlocked,
    RefusedCommand,
)
from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.access import EVERYTHING, Access
from ambermq.protocol.auth.audit import NO_AUDIT, AuditTrail
from ambermq.protocol.gateway.access_checks import AccessChecks
from ambermq.protocol.gateway.connection_peer import ConnectionPeer
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.gateway.large.upload_gate import UploadGate
from ambermq.protocol.gateway.link_names import LinkNames
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.gateway.links.temporary_owners import TemporaryOwners
from ambermq.protocol.gateway.links.traffic import Traffic
from ambermq.protocol.gateway.lost_links import LostLinks
from ambermq.protocol.gateway.opening.container_ids import ContainerIds
from ambermq.protocol.gateway.opening.user_connections import UserConnections
from ambermq.protocol.gateway.producers.producer_credit import ProducerCredit
from ambermq.protocol.gateway.producers.producer_link import ProducerLink
from ambermq.protocol.gateway.sources.source_scheduler import SourceScheduler
from ambermq.protocol.management.access.rules import RulePort
from ambermq.protocol.management.access.users import UserPort
from ambermq.protocol.management.administration.configuration import ConfigPort
from ambermq.protocol.management.peers.ports import PeerPort
from ambermq.protocol.management.sorted_ids import SortedIds
from ambermq.protocol.management.vhosts import VhostPort
from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["Gateway", "VhostGateways"]

_UNSYNCED: Final = "unsynced"
"""The reason of `blocked` while too much of the log is not durable."""


class VhostGateways(VhostPort, Protocol):
    """The virtual hosts of a server, by the hostname of an open."""

    def gateway_of(self, hostname: str | None) -> "Gateway":
        """Return the gateway of the virtual host that an open's hostname names."""

    def peers(self) -> Collection[PeerPort]:
        """Return the connections of all virtual hosts, in the order of acceptance."""

    def state_of(self, vhost: str) -> State | None:
        """Return the state of a virtual host; None if there is none of that name."""

    def states(self) -> Sequence[tuple[str, State]]:
        """Return the names and states of all virtual hosts."""


@final
class Gateway:
    """All connections of one virtual host, in front of its engine."""

    def __init__(
        self,
        engine: EnginePort,
        limits: ServerLimits,
        *,
        container_id: str,
        queries: BackgroundQueries,
        access: Access = EVERYTHING,
        vhost: str = "default",
        vhosts: VhostGateways | None = None,
        users: UserConnections | None = None,
    ) -> None:
        self.engine = engine
        self.limits = limits
        self.container_id = container_id
        self.queries = queries
        """Answers queries that would block the event loop."""
        self.access = access
        """The rules; `set_access` changes them."""
        self.owners = TemporaryOwners()
        """The users of the temporary nodes."""
        self.rules: RulePort | None = None
        """The part of the broker that changes rules; None without one."""
        self.vhost = vhost
        """The name of the virtual host."""
        self.vhosts = vhosts
        """The virtual hosts of the server; None without a server."""
        self.audit: AuditTrail = NO_AUDIT
        """The audit log; the server sets it."""
        self.accounts: UserPort | None = None
        """Carries out commands about users; the server sets it."""
        self.configuration: ConfigPort | None = None
        """Carries out commands about the configuration; the server sets it."""
        self.users = users or UserConnections(limits.user_connections_max)
        """The connections of each user, in all virtual hosts."""
        self.orders = SortedIds(engine.matching)
        """The sorted ids that listings page through."""
        self.sources = SourceScheduler(self)
        """The links that browse, or follow the log."""
        self.uploads = UploadGate(self)
        """The large messages that arrive."""
        self.low: frozenset[Resource] = frozenset()
        """The resources of which little is left."""
        self.is_low = False
        """Whether there are such resources: sessions are closed to new deliveries."""
        self.is_credit_stopped = False
        """Whether producers get no credit. While peers hold much memory they do: it lasts for moments."""
        self.is_unsynced = False
        """Whether too much of the log is not durable, so that sockets are not read."""
        self.blocked = ""
        """Why producers are held back: disk, memory, descriptors or unsynced; empty while they are not."""
        self.queue_full_blocks = self.queue_full_ends = 0
        """The producers that were told of a full queue, or of its end, since the server read the numbers last."""
        self.full_queues: dict[str, dict[ProducerCredit, None]] = {}
        """The full queues with the policy `block`, by name, each with the links that wait for credit."""
        self.age_us: Callable[[Queue], int | None] = lambda _queue: None
        """The age of the oldest message that waits on a queue; the server sets it. None: not known."""
        self.now_s: Callable[[], int] = _no_clock
        """The time in Unix seconds, by which tokens expire; the server sets it."""
        self.traffic = Traffic()
        """The messages that passed the links."""
        self.figures: dict[str, Callable[[], object]] = {}
        """The figures of the management type `org.ambermq.broker` by name; the server adds them."""
        self.observe: Callable[[Sequence[Effect]], None] | None = None
        """Sees effects before they are carried out; None without telemetry."""
        self.touched: dict[LinkPeer, None] = {}
        """The connections that may have output."""
        self.consumers: dict[int, ConsumerLink] = {}
        """The consumers by the engine's id."""
        self.producers: dict[int, ProducerLink] = {}
        """The producers by the engine's id."""
        self.lost_links = LostLinks(self)
        """The links of lost connections that are detached in later turns."""
        self.peers: dict[ConnectionPeer, None] = {}
        self.access_checks = AccessChecks(self)
        """The connections that are checked by changed rules in later turns."""
        self.containers = ContainerIds(id_bytes_max=limits.container_id_bytes_max)
        self.links = LinkNames(name_bytes_max=limits.link_name_bytes_max)
        """The links of all connections; a new attach of a name steals the link."""
        self.mistakes: list[tuple[LinkPeer | None, Exception]] = []
        """Exceptions of our own code with the connection that each ended, for the server to log."""

    def all_peers(self) -> Collection[PeerPort]:
        """Return the connections of the server; without a server those of this virtual host."""
        return list(self.peers) if self.vhosts is None else self.vhosts.peers()

    def states(self) -> Sequence[tuple[str, State]]:
        """Return the names and states of the virtual hosts of the server."""
        return [(self.vhost, self.engine.state)] if self.vhosts is None else self.vhosts.states()

    def is_named_by(self, hostname: str) -> bool:
        """Return whether a host name means this virtual host."""
        return self.vhosts is None or self.vhosts.gateway_of(hostname) is self

    def state_of(self, peer: PeerPort) -> State:
        """Return the state of the virtual host of a connection."""
        found = None if self.vhosts is None or peer.vhost == self.vhost else self.vhosts.state_of(peer.vhost)
        return self.engine.state if found is None else found

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Carry out effects in order. An exception of our code ends only the connection of its effect."""
        touched = self.touched
        if self.observe is not None:
            effects = tuple(effects)
            self.observe(effects)
        for effect in effects:
            try:
                if type(effect) is Deliver:
                    consumer_link: ConsumerLink = effect.link
                    if consumer_link.deliver(effect):
                        consumer_link.top_up()
                    touched[consumer_link.peer] = None
                elif type(effect) is PublishDone:
                    producer_link: ProducerLink = effect.link
                    producer_link.finish(effect)
                    touched[producer_link.peer] = None
                else:
                    self._carry_out(effect)
            except Exception as mistake:  # noqa: BLE001 - the other effects must leave in any case
                self.blame(_peer_of(getattr(effect, "key", None), getattr(effect, "link", None)), mistake)

    def blame(self, peer: LinkPeer | None, mistake: Exception) -> None:
        """End a connection because of an exception of our code, and store the exception for the server's log."""
        self.mistakes.append((peer, mistake))
        if peer is not None:
            peer.lost()
            error = Error(
                condition=Symbol(AmqpCondition.INTERNAL_ERROR),
                description="an internal error of the broker; its log has the details",
            )
            peer.connection.close(error)
            self.touched[peer] = None

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case OutcomeApplied(reply=None):
                # The end of its transaction has the answer.
                pass
            case OutcomeApplied():
                ConsumerLink.answer(effect)
                answered: ConsumerLink = effect.reply[0]
                if answered.link.session.is_awaited:
                    answered.peer.relieve(answered.link.session)
                self.touched[answered.peer] = None
            case ChunkStored():
                uploading: ProducerLink = effect.link
                uploading.piece_stored(effect)
                self.uploads.stored(effect.size)
                self.touched[uploading.peer] = None
                if effect.upload.cut_through is not None:
                    effect.upload.cut_through.link.follow()
            case CutThroughBegun() | CutThroughEnded():
                receiving: ConsumerLink = effect.link
                receiving.deliver_early(effect) if isinstance(effect, CutThroughBegun) else receiving.end_early(effect)
                self.touched[receiving.peer] = None
            case LocksExpired():
                locked = self.consumers.get(effect.consumer)
                if locked is not None:
                    locked.expire(effect)
            case Drained():
                self._drained(effect)
            case ActiveChanged():
                told: ConsumerLink = effect.link
                if told.is_open:
                    told.link.tell_active(is_active=effect.is_active)
                    self.touched[told.peer] = None
            case QueueBlocked():
                self._queue_blocked(effect)
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

    def set_access(self, access: Access) -> None:
        """Change the rules, and end the links and connections that they do not allow any more (access_checks.py)."""
        self.access = access
        self.access_checks.begin(self.peers)

    def set_low(self, resource: Resource, *, is_low: bool) -> None:
        """Hold producers back because little of a resource is left, or end that."""
        low = self.low | {resource} if is_low else self.low - {resource}
        if low == self.low:
            return
        self.low, self.is_low = low, bool(low)
        self.is_credit_stopped = bool(low - {Resource.MEMORY})
        for peer in self.peers:
            peer.set_low(is_low=self.is_low)
            self.touched[peer] = None
        self._tell_blocked()

    def set_unsynced(self, *, is_unsynced: bool) -> None:
        """Report to all producers that too much of the log is not durable, or that this is over."""
        self.is_unsynced = is_unsynced
        self._tell_blocked()

    def _tell_blocked(self) -> None:
        """Report to all producers the first reason why they are held back, if it has changed."""
        reasons = [one.reason for one in Resource if one in self.low]
        reason = reasons[0] if reasons else _UNSYNCED if self.is_unsynced else ""
        if reason == self.blocked:
            return
        self.blocked = reason
        for peer in self.peers:
            peer.tell_blocked(reason)
            self.touched[peer] = None

    def _queue_blocked(self, effect: QueueBlocked) -> None:
        """Hold the producers of a queue back from now on, or grant their credit again."""
        if effect.is_blocked:
            self.full_queues.setdefault(effect.queue, {})
            return
        for credit in self.full_queues.pop(effect.queue, {}):
            credit.resume()
            self.touched[credit.peer] = None

    def _drained(self, effect: Drained) -> None:
        consumer_link: ConsumerLink = effect.link
        # A backlog still needs its credit; the drain continues when the window opens.
        if consumer_link.is_open and not consumer_link.backlog_count:
            consumer_link.link.drained()
            # The engine may have a grant of the drained credit: it is revoked.
            consumer_link.top_up()
            self.touched[consumer_link.peer] = None

    def _consumer_ready(self, effect: ConsumerReady) -> None:
        consumer_link: ConsumerLink = effect.key
        self.consumers[effect.consumer] = consumer_link
        consumer_link.peer.consumer_ready(consumer_link, effect)
        if effect.follows and consumer_link.is_open and not self.sources.follow_queue(consumer_link, effect.follows):
            self.consumers.pop(effect.consumer, None)
        self.touched[consumer_link.peer] = None

    def _consumer_ended(self, effect: ConsumerEnded) -> None:
        consumer_link = self.consumers.pop(effect.consumer, None)
        if consumer_link is not None and consumer_link.is_open:
            consumer_link.peer.consumer_ended(
                consumer_link, Error(condition=Symbol(effect.condition), description=effect.description)
            )
            self.touched[consumer_link.peer] = None

    def _producers_ended(self, effect: ProducersEnded) -> None:
        error = Error(condition=Symbol(effect.condition), description=effect.description)
        for producer in sorted(effect.producers):
            producer_link = self.producers.pop(producer, None)
            if producer_link is not None and producer_link.is_open:
                producer_link.peer.producer_ended(producer_link, error)
                self.touched[producer_link.peer] = None

    def _command_failed(self, effect: CommandFailed) -> None:
        command = effect.command
        consumer_link = self.consumers.get(getattr(command, "consumer", 0))
        # The key comes first: a command with both has the name of the link in `link`.
        self.blame(_peer_of(getattr(command, "key", None), getattr(command, "link", None), consumer_link), effect.error)


def _peer_of(*sources: object) -> LinkPeer | None:
    """Return the connection of the first of `sources` that has one."""
    return next((peer for peer in (getattr(source, "peer", None) for source in sources) if peer is not None), None)


def _no_clock() -> int:
    """Return a time at which every token has expired: without a clock none holds."""
    return 1 << 62
