"""One connection in front of the engine: its events become commands, and the engine's answers become frames.

Rule 1. A link is answered after the engine's answer: the reply to an attach waits for the log, like any other promise.
Rule 2. What concerns the attached links as a whole, and their end, is in connection_links.py. Their attaches are in
        attaches.py, and the login in connection_login.py.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import assert_never, final

from ambermq.engine.commands import Transaction
from ambermq.engine.effects import Answered, ConsumerReady, ProducerReady, RefusedCommand
from ambermq.engine.entries.outcome import Outcome
from ambermq.engine.model.state import State
from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.endpoints import LinkEndpoint, SessionEndpoint
from ambermq.protocol.amqp10.errors import AmqpError
from ambermq.protocol.amqp10.events import (
    Authenticating,
    ConnectionClosed,
    CreditChanged,
    Disposed,
    LinkAttached,
    LinkDetached,
    Opened,
    SessionBegun,
    SessionEnded,
    TransferAborted,
    TransferPiece,
    TransferRun,
)
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition, LinkCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.exchange import Authenticator, Failure
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import LOCAL_PEER, Peer
from ambermq.protocol.gateway.attaches import Attaches
from ambermq.protocol.gateway.broker_nodes import BrokerNodes
from ambermq.protocol.gateway.connection_links import ConnectionLinks
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.gateway.internal_publisher import AnswerPublisher, InternalPublisher
from ambermq.protocol.gateway.large.connection_uploads import ConnectionUploads
from ambermq.protocol.gateway.links.attach_terms import Refusal
from ambermq.protocol.gateway.links.detached_nodes import DetachedNodes
from ambermq.protocol.gateway.nodes import cbs_node as claims
from ambermq.protocol.gateway.nodes import management_node as management
from ambermq.protocol.gateway.nodes.connection_tokens import ConnectionTokens, unauthorized
from ambermq.protocol.gateway.nodes.node_peer import PutToken
from ambermq.protocol.gateway.opening.connection_login import ConnectionLogin
from ambermq.protocol.gateway.opening.connection_opening import ConnectionOpening, OpenPeer
from ambermq.protocol.gateway.producers.producer_link import ProducerLink
from ambermq.protocol.gateway.recovery.link_keeping import LinkEnd
from ambermq.protocol.gateway.sources.queue_browser import QueueBrowser
from ambermq.protocol.gateway.sources.source import Source
from ambermq.protocol.gateway.transactions.connection_transactions import ConnectionTransactions, DischargeRequest
from ambermq.protocol.management.peers.ports import LinkRow, TransportPort

__all__ = ["ConnectionGateway"]


@final
class ConnectionGateway:
    """The gateway's side of one connection."""

    __slots__ = (
        *(
            "_answers",
            "_attaches",
            "_detached_nodes",
            "_links",
            "_login",
            "_nodes",
            "_opening",
            "_transactions",
        ),
        *("closed_by", "connection", "container", "gateway", "identity", "is_paused"),
        *("end_error", "login_failure", "mechanism", "peer_info", "refusal", "tokens", "transport"),
        "uploads",
    )

    def __init__(
        self,
        gateway: Gateway,
        connection: Connection,
        authenticator: Authenticator,
        peer_info: Peer = LOCAL_PEER,
        answered_late: Callable[[], None] | None = None,
    ) -> None:
        """`answered_late` is called when an answer of SASL has come later than its frame, and made events."""
        self.gateway = gateway
        self.connection = connection
        self.container = ""
        self.peer_info = peer_info
        """Where the connection comes from."""
        self.identity = authenticator.bare(peer_info) or Identity()
        """Who the peer is; until it has authenticated, what a peer without SASL is."""
        self.tokens: ConnectionTokens | None = None
        """The tokens of a connection that logs in by them; None for another one."""
        self.mechanism = ""
        """The SASL mechanism that the peer has chosen; empty without SASL."""
        self.closed_by = ""
        """The user that closes a link or the connection for its client; empty while there is none."""
        self.end_error: Error | None = None
        """Why the connection has ended, for the log of the server; None for a close of the peer without an error."""
        self.login_failure: Failure | None = None
        """Why the peer was refused, for the log of the server."""
        self.refusal: Error | None = None
        """Why the open was refused; None if it was not."""
        self.transport: TransportPort | None = None
        """The transport, for listings; None without one, and when the connection is freed."""
        self.uploads = ConnectionUploads(gateway)
        """The large messages that are arriving."""
        self.is_paused = False
        """Whether no deliveries are wanted: too much output is unsent."""
        self._login = ConnectionLogin(self, authenticator, answered_late)
        self._opening = ConnectionOpening(self)
        self._detached_nodes = DetachedNodes(self)
        self._links = ConnectionLinks(gateway, self._detached_nodes)
        self._nodes = BrokerNodes(self)
        self._transactions = ConnectionTransactions(self)
        self._attaches = Attaches(self, self._links, self._nodes, self._detached_nodes, self._transactions)
        self._answers = AnswerPublisher(self, management.ADDRESS)
        gateway.peers[self] = None

    def handle_events(self) -> None:
        """Translate the events of the connection into commands and answers."""
        events = self.connection.events
        try:
            # An answer lets the connection process held input, whose events are appended to the list during the loop.
            for event in events:
                match event:
                    case TransferRun():
                        self._transferred(event)
                    case TransferPiece() | TransferAborted():
                        self._piece_transferred(event)
                    case Disposed():
                        self._disposed(event)
                    case CreditChanged():
                        consumer_link = self._links.consumers.get(event.link)
                        if consumer_link is not None:
                            consumer_link.top_up()
                        else:
                            self._credit_changed(event)
                    case LinkAttached():
                        self._attaches.attach(event.link)
                    case LinkDetached():
                        self._detached(event)
                    case SessionBegun():
                        if self.gateway.is_low:
                            event.session.pause()
                    case SessionEnded():
                        self._session_ended(event)
                    case Authenticating():
                        self._login.ask(event)
                    case Opened():
                        self._opened(event)
                    case ConnectionClosed():
                        self.end_error = event.error
                        self.lost()
                    case _:
                        assert_never(event)
        finally:
            events.clear()

    def pause(self) -> None:
        """Stop deliveries, because the peer does not read them."""
        self.is_paused = True
        self._links.pause()

    def resume(self) -> None:
        """Resume deliveries."""
        self.is_paused = False
        self._links.resume()

    def set_low(self, *, is_low: bool) -> None:
        """Close the sessions to transfers while little of a resource is left, or open them again.

        A session with a link for requests, or to the coordinator, stays open, for the requests and commits that free
        space. Its other transfers are refused if there is no space on the disk.
        """
        for session in self.connection.sessions():
            if not is_low:
                session.resume()
            elif not self._nodes.has_request_link(session) and not self._transactions.has_link(session):
                session.pause()
        if not self.gateway.is_credit_stopped:
            self._links.top_up_producers()

    def tell_blocked(self, reason: str) -> None:
        """Report to the producers of this connection why they are held back; an empty reason says that this is over."""
        for producer_link in self._links.producers.values():
            producer_link.tell_blocked(reason)

    def surveyed_bytes(self) -> int:
        """Return the memory of what waits for the peer: deliveries in backlogs, answers, requests."""
        return self._links.backlog_bytes() + self._nodes.surveyed_bytes() + self._transactions.surveyed_bytes()

    def relieve(self, session: SessionEndpoint) -> None:
        """Serve the links that waited for room in a session, if it is no longer full."""
        if not session.is_awaited or session.is_full:
            return
        session.is_awaited = False
        self._links.relieve(session)
        self._nodes.relieve(session)

    @property
    def vhost(self) -> str:
        """The name of its virtual host."""
        return self.gateway.vhost

    @property
    def traffic_counts(self) -> tuple[int, int]:
        """The messages that the peer has sent, and that it was sent."""
        return self._links.traffic_counts()

    def link_row(self, link: LinkEndpoint, state: State) -> LinkRow:
        """Return what the gateway knows of a link."""
        return self._links.row(link, state)

    def close_link(self, link: LinkEndpoint, error: Error) -> None:
        """End a link from the broker's end."""
        self._forget(link)
        self._end(link, error)
        self.gateway.touched[self] = None

    def close_session(self, session: SessionEndpoint, error: Error) -> None:
        """End a session and its links from the broker's end."""
        for link in session.links():
            self._forget(link)
        self._detached_nodes.end_session(session)
        self._links.end_session(session)
        session.end(error)
        self.gateway.touched[self] = None

    def lost(self) -> None:
        """Detach everything of this connection from the engine; very many links in turns (lost_links.py)."""
        self._login.end()
        self._links.lost()
        self._detached_nodes.end()
        self._nodes.forget()
        self._transactions.end()
        self._answers.close()
        self._opening.leave()
        self.gateway.peers.pop(self, None)

    def release(self) -> None:
        """End as `lost` does, and free the connection: its transport has ended. Only effects may follow.

        A connection with very many links is freed when the last of them is detached.
        """
        self.lost()
        self.connection.memory.close()
        self.gateway.lost_links.then(self._free)

    def _free(self) -> None:
        self.transport = None
        self.connection.release()
        self._detached_nodes.release()
        self._nodes.release()
        self._transactions.release()
        self._login.release()
        self._opening.release()
        self._answers.release()
        self._attaches.release()

    def post(self, address: str, message: bytes) -> bool:
        """See NodePeer."""
        return self._answers.post(address, message)

    @property
    def consumers(self) -> frozenset[int]:
        """See NodePeer."""
        return frozenset([one.consumer for one in self._links.consumers.values()])

    def consumer_of(self, queue: int, link: str) -> int:
        """See NodePeer."""
        return self._links.consumer_of(queue, link)

    def producer_ready(self, producer_link: ProducerLink | InternalPublisher, ready: ProducerReady) -> None:
        """Answer a producer's attach, and grant its first credit."""
        if isinstance(producer_link, InternalPublisher):
            producer_link.ready(ready)
        else:
            self._links.producer_ready(producer_link, ready)

    def consumer_ready(self, consumer_link: ConsumerLink, ready: ConsumerReady) -> None:
        """Answer a consumer's attach."""
        self._links.consumer_ready(consumer_link, ready)

    def check_access(self) -> Iterator[None]:
        """End the links that the rules do not allow any more, or the connection: a step for each link."""
        refusal = self._opening.check_rules()
        if refusal is not None:
            self.end_with(refusal)
            return
        yield from self._attaches.check_again()

    def others(self) -> Iterator[OpenPeer]:
        """See OpeningPeer."""
        return (peer for peer in list(self.gateway.peers) if peer is not self)

    def end_with(self, error: Error) -> None:
        """See OpeningPeer."""
        self.lost()
        self.connection.close(error)
        self.gateway.touched[self] = None

    def check_tokens(self) -> None:
        """End the links whose token has expired, or whose key is gone; the server calls it again and again."""
        if self.tokens is None or not self.tokens.drop_ended(self.gateway.now_s()):
            return
        self._attaches.check_tokens()
        for link, address in self._nodes.links():
            if address != claims.ADDRESS and not self.tokens.covers(address):
                self.close_link(link, unauthorized(address))
        self.gateway.touched[self] = None

    def log_in(self, identity: Identity) -> Error | None:
        """Set the identity that the first token proves; return an Error if the user may not connect."""
        return self._opening.log_in(identity)

    @property
    def token_check(self) -> PutToken | None:
        """See NodePeer."""
        return None if self.tokens is None else partial(self.tokens.put, self)

    def stolen(self, link: LinkEndpoint) -> None:
        """End a link that another connection has attached, and may resume."""
        self._forget(link, end=LinkEnd.DETACH)
        why = f"link {link.name!r:.80} was attached by another connection"
        self._end(link, Error(condition=Symbol(LinkCondition.STOLEN), description=why))
        self.gateway.touched[self] = None

    def consumer_ended(self, consumer_link: ConsumerLink, error: Error) -> None:
        """End a consumer whose queue was deleted."""
        self._links.remove(consumer_link.link)
        self._end(consumer_link.link, error)

    def producer_ended(self, producer_link: ProducerLink, error: Error) -> None:
        """End a producer whose queue or muxer was deleted."""
        self._transactions.doom(producer_link.link, error.description)
        self._links.remove(producer_link.link)
        producer_link.link.detach(closed=True, error=error)

    def producer_failed(self, producer_link: ProducerLink, error: Error) -> None:
        """End a producer whose message is refused, and which cannot learn that by an outcome."""
        self._transactions.doom(producer_link.link, error.description)
        self._forget(producer_link.link)
        producer_link.link.detach(closed=True, error=error)

    def source_ended(self, source: Source, error: Error) -> None:
        """End a link that browses, or follows the log; refuse it if it is not attached yet."""
        self._links.remove(source.link)
        self._end(source.link, error)

    def answered(self, effect: Answered | RefusedCommand) -> None:
        """Answer a refused command, or one of management."""
        key = effect.key
        if isinstance(key, QueueBrowser):
            assert isinstance(effect, Answered)
            self.gateway.sources.answer(key, effect.value)
            return
        if isinstance(key, DischargeRequest):
            self._transactions.answered(effect)
            return
        if isinstance(key, InternalPublisher):
            self._answers.refused()
            return
        if isinstance(key, ProducerLink | ConsumerLink):
            assert isinstance(effect, RefusedCommand)
            self._attaches.refuse(key.link, Refusal(effect.condition, effect.description))
        else:
            self._nodes.answered(effect)

    def _opened(self, event: Opened) -> None:
        if self.gateway.vhosts is not None:
            self._move(self.gateway.vhosts.gateway_of(event.open.hostname))
        self._opening.opened(event.open)

    def _move(self, gateway: Gateway) -> None:
        """Move the connection, which has no links yet, to another virtual host."""
        self.gateway.peers.pop(self, None)
        self.gateway = self._links.gateway = self.uploads.gateway = gateway
        gateway.peers[self] = None

    def _transferred(self, event: TransferRun) -> None:
        producer_link = self._links.producers.get(event.link)
        if producer_link is None:
            self._requested(event)
            return
        try:
            producer_link.publish(event)
        except AmqpError as error:
            self._end_faulty(event.link, error)

    def _piece_transferred(self, event: TransferPiece | TransferAborted) -> None:
        """Process a piece of a message that is not complete, or its end."""
        producer_link = self._links.producers.get(event.link)
        if producer_link is None:
            return
        if isinstance(event, TransferAborted):
            producer_link.end_upload()
            return
        try:
            producer_link.take_piece(event)
        except AmqpError as error:
            self._end_faulty(event.link, error)

    def _end_faulty(self, link: LinkEndpoint, error: AmqpError) -> None:
        """End a link because of its peer's fault."""
        self._transactions.doom(link, error.description)
        self._forget(link)
        link.detach(closed=True, error=Error(condition=Symbol(error.condition), description=error.description))

    def end_idle_uploads(self, now_ms: int, *, is_read: bool) -> None:
        """End the links whose large messages stand still while the socket `is_read`; the server calls it regularly."""
        for one in self.uploads.idle(now_ms, is_read=is_read):
            why = f"nothing of a large message came for {self.gateway.limits.upload_idle_ms} ms (upload_idle_ms)"
            self._transactions.doom(one.link, why)
            self.close_link(one.link, Error(condition=Symbol(AmqpCondition.RESOURCE_LIMIT_EXCEEDED), description=why))

    def _requested(self, event: TransferRun) -> None:
        """Process messages for a node of the broker."""
        if event.state is not None:
            why = "a request in a transaction: requests have their effect at once"
            event.link.fail(AmqpCondition.NOT_IMPLEMENTED, why)
        elif not self._transactions.receive(event):
            self._nodes.receive_requests(event)

    def transaction(self, transaction_id: bytes) -> Transaction | None:
        """See ProducerPeer."""
        return self._transactions.find(transaction_id)

    def retire(self, consumer_link: ConsumerLink, event: Disposed, outcome: Outcome) -> bool:
        """See ConsumerPeer."""
        return self._transactions.retire(consumer_link, event, outcome)

    def _disposed(self, event: Disposed) -> None:
        consumer_link = self._links.consumers.get(event.link)
        if consumer_link is None:
            self._browsed(event)
        else:
            command = consumer_link.command(event)
            if command is not None:
                self.gateway.engine.settle(command)
        # `relieve` checks it, too; this check saves the call for each outcome.
        if event.link.session.is_awaited:
            self.relieve(event.link.session)

    def _browsed(self, event: Disposed) -> None:
        source = self._links.sources.get(event.link)
        producer_link = self._links.producers.get(event.link)
        if producer_link is not None:
            producer_link.settled(event)
            return
        if source is not None:
            source.disposed(event)
            # It may have waited for room in the session.
            self.gateway.sources.wake(source)
            return
        self._nodes.disposed(event)

    def _credit_changed(self, event: CreditChanged) -> None:
        if event.link in self._links.sources:
            self.gateway.sources.wake(self._links.sources[event.link])
        elif isinstance(event.link, Sender):
            self._nodes.flush(event.link)

    def _detached(self, event: LinkDetached) -> None:
        if event.error is not None and event.link in self._links.producers:
            self._transactions.doom(event.link, event.error.description)
        is_stolen = event.error is not None and event.error.condition == LinkCondition.STOLEN
        end = LinkEnd.DETACH if is_stolen or not event.closed else None
        self._forget(event.link, is_closed=event.closed and event.error is None, may_return=not event.closed, end=end)
        self.relieve(event.link.session)

    def _end(self, link: LinkEndpoint, error: Error) -> None:
        """End a link; the other links of its session get its room."""
        link.detach(closed=True, error=error)
        self.relieve(link.session)

    def _session_ended(self, event: SessionEnded) -> None:
        for link in event.session.links():
            if event.error is not None and link in self._links.producers:
                self._transactions.doom(link, event.error.description)
            self._forget(link, may_return=True, end=LinkEnd.SESSION)
        self._detached_nodes.end_session(event.session)
        self._links.end_session(event.session)

    def _forget(
        self, link: LinkEndpoint, *, is_closed: bool = False, may_return: bool = False, end: LinkEnd | None = None
    ) -> None:
        """Detach a link from the engine, as `ConnectionLinks.forget` does, or from the nodes of the broker."""
        self._links.forget(link, is_closed=is_closed, may_return=may_return, end=end)
        self._nodes.detached(link)
        self._transactions.detached(link)
