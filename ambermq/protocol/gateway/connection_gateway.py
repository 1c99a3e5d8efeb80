"""One connection before the engine: its links and the producers and consumers behind them.

A link is answered when the engine has: the attach reply of a node waits for the log like any other promise.
"""

from collections.abc import Callable
from typing import Final, assert_never, final

from ambermq.engine.commands import AttachConsumer, AttachProducer, DetachConsumer, DetachProducer
from ambermq.engine.effects import Answered, ConsumerReady, ProducerReady, RefusedCommand
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
    TransferRun,
)
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Attach, Error
from ambermq.protocol.amqp10.spec import AmqpCondition, LinkCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.broker_nodes import BrokerNodes
from ambermq.protocol.gateway.container_ids import SOLE_CONNECTION
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.gateway.identity import Identity
from ambermq.protocol.gateway.internal_publisher import InternalPublisher
from ambermq.protocol.gateway.links.attach_terms import Refusal, consuming_terms, producing_terms
from ambermq.protocol.gateway.links.consumer_link import ConsumerLink
from ambermq.protocol.gateway.links.producer_link import ProducerLink
from ambermq.protocol.gateway.nodes import management_node as management
from ambermq.protocol.gateway.sources.queue_browser import QueueBrowser
from ambermq.protocol.gateway.sources.source import Source

__all__ = ["OFFERED", "PRODUCT", "Authenticator", "ConnectionGateway"]

PRODUCT: Final = {Symbol("product"): "AmberMQ", Symbol("topic-prefix"): "/topics/"}
"""What our open says of us; by the prefix Qpid JMS writes topics where no capability says that they are such."""

OFFERED: Final = (Symbol("ANONYMOUS-RELAY"), Symbol("SHARED-SUBS"), SOLE_CONNECTION)
"""What our open offers."""

Authenticator = Callable[[str, str | None, str | None], Identity | None]
"""(mechanism, username, password) -> the identity of the peer, None where it is refused."""


@final
class ConnectionGateway:
    """The gateway's side of one connection."""

    __slots__ = (
        "_authenticate",
        "_consuming",
        "_own",
        "_posting",
        "_producing",
        "_sources",
        "connection",
        "container",
        "gateway",
        "identity",
        "is_paused",
    )

    def __init__(self, gateway: Gateway, connection: Connection, authenticate: Authenticator) -> None:
        self.gateway = gateway
        self.connection = connection
        self.container = ""
        self.identity = Identity()
        self.is_paused = False
        """So much output is unsent that no deliveries are wanted."""
        self._authenticate = authenticate
        self._producing: dict[LinkEndpoint, ProducerLink] = {}
        self._consuming: dict[LinkEndpoint, ConsumerLink] = {}
        self._sources: dict[LinkEndpoint, Source] = {}
        self._own = BrokerNodes(self)
        self._posting: InternalPublisher | None = None
        gateway.peers[self] = None

    def handle_events(self) -> None:
        """Translate what the connection has to tell."""
        events = self.connection.events
        try:
            # An answer lets the connection read on: what comes of it is told in the same list while it is walked.
            for event in events:
                match event:
                    case TransferRun():
                        self._transferred(event)
                    case Disposed():
                        self._disposed(event)
                    case CreditChanged():
                        consuming = self._consuming.get(event.link)
                        if consuming is not None:
                            consuming.top_up()
                        else:
                            self._credit_changed(event)
                    case LinkAttached():
                        self._attached(event)
                    case LinkDetached():
                        self._detached(event)
                    case SessionBegun():
                        self._begun(event)
                    case SessionEnded():
                        self._session_ended(event)
                    case Authenticating():
                        self._authenticating(event)
                    case Opened():
                        self._opened(event)
                    case ConnectionClosed():
                        self.lost()
                    case _:
                        assert_never(event)
        finally:
            events.clear()

    def pause(self) -> None:
        """Want no more deliveries: the peer does not read what it has got."""
        self.is_paused = True
        for consuming in self._consuming.values():
            self.gateway.engine.set_credit(consuming.consumer, 0)

    def resume(self) -> None:
        """Want deliveries again."""
        self.is_paused = False
        for consuming in self._consuming.values():
            consuming.top_up()
        for source in self._sources.values():
            self.gateway.sources.wake(source)

    def set_room_low(self, *, is_low: bool) -> None:
        """Close the sessions to transfers while little disk is left, or open them again.

        One with a link for requests stays open: whoever would make room must be heard. What else comes on it is refused
        where there is no room.
        """
        for session in self.connection.sessions():
            if not is_low:
                session.resume()
            elif not self._own.has_request_link(session):
                session.pause()
        if not is_low:
            for producing in self._producing.values():
                producing.top_up()

    def relieve(self, session: SessionEndpoint) -> None:
        """Go on where the session's bound on what is unsettled stood in the way, once there is less of it."""
        if not session.is_awaited or session.is_full:
            return
        session.is_awaited = False
        for consuming in self._consuming.values():
            if consuming.link.session is session and consuming.is_starved:
                consuming.top_up()
        for source in self._sources.values():
            if source.link.session is session:
                self.gateway.sources.wake(source)
        self._own.relieve(session)

    def lost(self) -> None:
        """Tell the engine that everything of this connection is gone."""
        # All are known here: looked up one by one, as those that detach, 4,096 links took a third longer.
        for link, producing in self._producing.items():
            self._let_go(link)
            self._producing_gone(producing)
        for link, consuming in self._consuming.items():
            self._let_go(link)
            self._consuming_gone(consuming)
        for link, source in self._sources.items():
            self._let_go(link)
            self.gateway.sources.forget(source)
        self._producing, self._consuming, self._sources = {}, {}, {}
        self._own.forget()
        if self._posting is not None:
            self._posting.close()
            self._posting = None
        self.gateway.containers.leave(self.container)
        self.container = ""
        self.gateway.peers.pop(self, None)

    def post(self, address: str, message: bytes) -> bool:
        """Send a message of the broker's own to an address, which it names in `to`; tell whether it is one of ours."""
        is_path = address.startswith(("/queues/", "/topics/", "/muxers/"))
        is_known = is_path or address in self.gateway.engine.state.queue_names
        if not is_known or self.identity.scope is not None:
            return False
        if self._posting is None:
            self._posting = InternalPublisher(self, management.ADDRESS)
        self._posting.post(message)
        return True

    def producer_ready(self, producing: ProducerLink | InternalPublisher, ready: ProducerReady) -> None:
        """Answer a producer's attach; it gets its first credit."""
        if isinstance(producing, InternalPublisher):
            producing.ready(ready)
            return
        if not producing.is_open:
            self.gateway.engine.submit(DetachProducer(ready.producer))
            return
        producing.producer = ready.producer
        self.gateway.producers[ready.producer] = producing
        producing.accept(ready)
        producing.top_up()

    def consumer_ready(self, consuming: ConsumerLink, ready: ConsumerReady) -> None:
        """Answer a consumer's attach."""
        if not consuming.is_open:
            self._detach_consumer(ready.consumer, is_closed=consuming.is_closed)
            return
        consuming.consumer = ready.consumer
        consuming.message_bytes = self._message_bytes(ready.consumer)
        consuming.accept(ready)
        consuming.top_up()

    def stolen(self, link: LinkEndpoint) -> None:
        """End a link that another connection has attached anew."""
        self._forget(link)
        why = f"link {link.name!r:.80} was attached by another connection"
        self._end(link, Error(condition=Symbol(LinkCondition.STOLEN), description=why))
        self.gateway.touched[self] = None

    def consumer_ended(self, consuming: ConsumerLink, error: Error) -> None:
        """End a consumer whose queue is gone."""
        consuming.is_open = False
        self._consuming.pop(consuming.link, None)
        self._let_go(consuming.link)
        self._end(consuming.link, error)

    def producer_ended(self, producing: ProducerLink, error: Error) -> None:
        """End a producer whose queue or muxer is gone."""
        producing.is_open = False
        del self._producing[producing.link]
        self._let_go(producing.link)
        producing.link.detach(closed=True, error=error)

    def source_ended(self, source: Source, error: Error) -> None:
        """End a link that takes nothing; one that is not attached yet is refused."""
        self._sources.pop(source.link, None)
        self._let_go(source.link)
        self.gateway.sources.forget(source)
        self._end(source.link, error)

    def answered(self, effect: Answered | RefusedCommand) -> None:
        """Answer a command that was refused, or one about wiring."""
        key = effect.key
        if isinstance(key, QueueBrowser):
            assert isinstance(effect, Answered)
            self.gateway.sources.answer(key, effect.value)
            return
        if isinstance(key, InternalPublisher):
            # There are too many producers: its answers are dropped, and the next one tries again.
            self._posting = None
            return
        if isinstance(key, ProducerLink | ConsumerLink):
            assert isinstance(effect, RefusedCommand)
            self._refuse(key.link, Refusal(effect.condition, effect.description))
        else:
            self._own.answered(effect)

    def _authenticating(self, event: Authenticating) -> None:
        identity = self._authenticate(event.mechanism, event.username, event.password)
        if identity is not None:
            self.identity = identity
        self.connection.authenticated(identity is not None)

    def _opened(self, event: Opened) -> None:
        if self.gateway.vhosts is not None:
            self._move(self.gateway.vhosts.gateway_of(event.open.hostname))
        refusal = self._check_vhost() or self.gateway.containers.enter(event.open)
        if refusal is not None:
            self.connection.refuse(refusal)
            return
        self.container = event.open.container_id
        properties = {**PRODUCT, Symbol("vhost"): self.gateway.vhost}
        self.connection.accept(properties=properties, offered_capabilities=OFFERED)

    def _check_vhost(self) -> Error | None:
        """Return why this connection must not be one to the virtual host that its open names."""
        scope = self.identity.scope
        if scope is None or scope.vhost == self.gateway.vhost:
            return None
        why = f"this connection is bound to the virtual host {scope.vhost!r}, not to {self.gateway.vhost!r}"
        return Error(condition=Symbol(AmqpCondition.UNAUTHORIZED_ACCESS), description=why)

    def _check_address(self, address: str) -> None:
        """Raise Refusal for an address beyond the scope of this connection."""
        if self.identity.scope is not None and address != management.ADDRESS:
            why = f"this connection is bound to {management.ADDRESS}, not to {address!r:.80}"
            raise Refusal(AmqpCondition.UNAUTHORIZED_ACCESS, why)

    def _move(self, gateway: Gateway) -> None:
        """Belong to another virtual host from now on; there are no links yet."""
        self.gateway.peers.pop(self, None)
        self.gateway = gateway
        gateway.peers[self] = None

    def _begun(self, event: SessionBegun) -> None:
        if self.gateway.is_room_low:
            event.session.pause()

    def _attached(self, event: LinkAttached) -> None:
        link = event.link
        self._steal(link)
        try:
            self._check_name(link)
            if isinstance(link, Receiver):
                self._attach_producer(link)
            elif isinstance(link, Sender):
                self._attach_consumer(link)
        except Refusal as refusal:
            self._refuse(link, refusal)

    def _check_name(self, link: LinkEndpoint) -> None:
        """Raise Refusal for a name that would be too much to keep."""
        size, bytes_max = len(link.name.encode()), self.gateway.limits.link_name_bytes_max
        if size > bytes_max:
            why = f"a link's name of {size} bytes: at most {bytes_max} (link_name_bytes_max)"
            raise Refusal("amqp:invalid-field", why)

    def _steal(self, link: LinkEndpoint) -> None:
        """End the link of another connection that has this one's name."""
        known = self.gateway.links.get((self.container, link.name, link.is_sender))
        if known is not None and known[0] is not self and self.identity.scope is None:
            known[0].stolen(known[1])

    def _have(self, link: LinkEndpoint) -> None:
        """Be who has a link of this name; where containers are nameless nobody is."""
        if self.container:
            self.gateway.links[self.container, link.name, link.is_sender] = self, link

    def _let_go(self, link: LinkEndpoint) -> None:
        name = (self.container, link.name, link.is_sender)
        known = self.gateway.links.get(name)
        if known is not None and known[1] is link:
            del self.gateway.links[name]

    def _attach_producer(self, link: Receiver) -> None:
        terms = producing_terms(_attach_of(link))
        self._check_address(terms.address)
        if self._own.attach_requests(link, terms.address):
            link.session.resume()
            return
        producing = ProducerLink(self, link, self.gateway.limits, terms)
        self._producing[link] = producing
        self._have(link)
        self.gateway.engine.submit(
            AttachProducer(
                producing,
                terms.address,
                self.container,
                link.name,
                terms.unroutable,
                terms.is_immediate,
                terms.dynamic,
            )
        )

    def _attach_consumer(self, link: Sender) -> None:
        source = _attach_of(link).source
        # Who asks the management node may let it choose where the answers go.
        is_dynamic = source is not None and source.dynamic and not source.capabilities
        if is_dynamic and self.identity.scope is None and self._own.attach_dynamic(link):
            return
        bytes_max = self.gateway.engine.config.argument_bytes_max
        terms = consuming_terms(_attach_of(link), is_nameless=not self.container, selector_bytes_max=bytes_max)
        self._check_address(terms.address)
        if self._own.attach_replies(link, terms.address):
            return
        if terms.is_copy:
            self._sources[link] = self.gateway.sources.attach(self, link, terms)
            self._have(link)
            return
        consuming = ConsumerLink(self, link, terms)
        self._consuming[link] = consuming
        self._have(link)
        self.gateway.engine.submit(
            AttachConsumer(
                consuming,
                terms.address,
                self.container,
                link.name,
                terms.is_settled,
                terms.selector,
                terms.subscription_request,
                terms.dynamic,
                terms.is_recalled,
            )
        )

    def _refuse(self, link: LinkEndpoint, refusal: Refusal) -> None:
        self._let_go(link)
        known = self._producing.pop(link, None) or self._consuming.pop(link, None)
        if known is None or known.is_open:
            link.refuse(Error(condition=Symbol(refusal.condition), description=refusal.description))
        if known is not None:
            known.is_open = False

    def _transferred(self, event: TransferRun) -> None:
        producing = self._producing.get(event.link)
        if producing is None:
            self._own.receive_requests(event)
            return
        try:
            producing.publish(event)
        except AmqpError as error:
            self._forget(event.link)
            event.link.detach(
                closed=True, error=Error(condition=Symbol(error.condition), description=error.description)
            )

    def _disposed(self, event: Disposed) -> None:
        consuming = self._consuming.get(event.link)
        if consuming is None:
            self._browsed(event)
        else:
            command = consuming.command(event)
            if command is not None:
                self.gateway.engine.settle(command)
        # Asked here too, since a look is less than a call for each outcome.
        if event.link.session.is_awaited:
            self.relieve(event.link.session)

    def _browsed(self, event: Disposed) -> None:
        source = self._sources.get(event.link)
        if source is not None:
            source.disposed(event)
            # The session's bound on what is unsettled may have stood in the way.
            self.gateway.sources.wake(source)
            return
        self._own.disposed(event)

    def _credit_changed(self, event: CreditChanged) -> None:
        if event.link in self._sources:
            self.gateway.sources.wake(self._sources[event.link])
        elif isinstance(event.link, Sender):
            self._own.flush(event.link)

    def _detached(self, event: LinkDetached) -> None:
        self._forget(event.link, is_closed=event.closed and event.error is None)
        self.relieve(event.link.session)

    def _end(self, link: LinkEndpoint, error: Error) -> None:
        """End a link of ours; the others of its session have the room that it leaves."""
        link.detach(closed=True, error=error)
        self.relieve(link.session)

    def _session_ended(self, event: SessionEnded) -> None:
        for link in event.session.links():
            self._forget(link)

    def _forget(self, link: LinkEndpoint, *, is_closed: bool = False) -> None:
        """Let a link's end be known; `is_closed`: the peer is done with what it received from."""
        self._let_go(link)
        producing = self._producing.pop(link, None)
        if producing is not None:
            self._producing_gone(producing)
        consuming = self._consuming.pop(link, None)
        if consuming is not None:
            self._consuming_gone(consuming, is_closed=is_closed)
        source = self._sources.pop(link, None)
        if source is not None:
            self.gateway.sources.forget(source)
        self._own.detached(link)

    def _producing_gone(self, producing: ProducerLink) -> None:
        producing.is_open = False
        if producing.producer:
            self.gateway.producers.pop(producing.producer, None)
            self.gateway.engine.submit(DetachProducer(producing.producer))

    def _consuming_gone(self, consuming: ConsumerLink, *, is_closed: bool = False) -> None:
        consuming.is_open, consuming.is_closed = False, is_closed
        if consuming.consumer:
            self._detach_consumer(consuming.consumer, consuming.unsent(), is_closed=is_closed)

    def _message_bytes(self, consumer: int) -> int:
        """Return the average size of what waits for a consumer."""
        state = self.gateway.engine.state
        known = state.consumers.get(consumer)
        queue = None if known is None else state.queues.get(known.queue)
        count = 0 if queue is None else queue.available + queue.acquired_count
        return queue.size // count if queue is not None and count else 0

    def _detach_consumer(self, consumer: int, unsent: bytes = b"", *, is_closed: bool = False) -> None:
        self.gateway.consumers.pop(consumer, None)
        self.gateway.engine.submit(DetachConsumer(consumer, unsent, is_closed))


def _attach_of(link: LinkEndpoint) -> Attach:
    assert link.remote is not None, "a link is told once its peer has attached"
    return link.remote
