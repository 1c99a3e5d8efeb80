"""The attaches of one connection: each becomes a command, is accepted by a node of the broker, or is refused.

Rule 1. The rules are asked at the attach, and again when they change: a link that they do not allow any more ends.
Rule 2. An attach with the name of a link of the same container takes that link's place, if it has the same user.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Protocol, final

from ambermq.engine.commands import AttachConsumer, AttachProducer
from ambermq.engine.entries.outcome import Outcome
from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.endpoints import LinkEndpoint
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.resumption import UnsettledMap, is_terminal, unsettled_of
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Attach, Coordinator, Error
from ambermq.protocol.amqp10.spec import AmqpCondition, ReceiverSettleMode
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.access import Action
from ambermq.protocol.gateway.broker_nodes import BrokerNodes
from ambermq.protocol.gateway.connection_links import ConnectionLinks
from ambermq.protocol.gateway.connection_peer import ConnectionPeer
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms, Refusal, consuming_terms, producing_terms
from ambermq.protocol.gateway.links.dead_letter_alias import is_alias, resolved_terms
from ambermq.protocol.gateway.links.detached_nodes import DetachedNodes
from ambermq.protocol.gateway.links.link_authority import (
    authorizer,
    check,
    check_consumer,
    check_producer,
    owner_of,
)
from ambermq.protocol.gateway.links.outcome_mapping import outcome_of
from ambermq.protocol.gateway.nodes import cbs_node as claims
from ambermq.protocol.gateway.nodes import management_node as management
from ambermq.protocol.gateway.nodes.connection_tokens import ConnectionTokens, no_token
from ambermq.protocol.gateway.producers.producer_link import ProducerLink
from ambermq.protocol.gateway.producers.relay_guard import relay_guard
from ambermq.protocol.gateway.recovery.second_mode import receiver_settle_mode
from ambermq.protocol.gateway.sources.source import SourcePeer
from ambermq.protocol.gateway.transactions.connection_transactions import ConnectionTransactions

__all__ = ["AttachPeer", "Attaches"]

_CONNECTIONS: Final = "$connections"
"""The affairs of connections: the rule for it lets a user take the links of others."""
_TAG_BYTES: Final = 16
"""The size of the delivery-tags that the broker makes."""


class AttachPeer(ConnectionPeer, SourcePeer, Protocol):
    """The gateway's side of one connection, as its attaches use it."""

    @property
    def gateway(self) -> Gateway:
        """The gateway of the virtual host."""

    @property
    def tokens(self) -> ConnectionTokens | None:
        """The tokens of a connection that logs in by them; None for another one."""


@final
class Attaches:
    """The attaches of one connection."""

    __slots__ = ("_detached_nodes", "_links", "_nodes", "_peer", "_transactions")

    def __init__(
        self,
        peer: AttachPeer,
        links: ConnectionLinks,
        nodes: BrokerNodes,
        detached_nodes: DetachedNodes,
        transactions: ConnectionTransactions,
    ) -> None:
        self._peer = peer
        self._links = links
        self._nodes = nodes
        self._detached_nodes = detached_nodes
        self._transactions = transactions

    def attach(self, link: LinkEndpoint) -> None:
        """Process the attach of a link."""
        try:
            self._steal(link)
            self._links.gateway.links.check(link)
            if isinstance(link, Receiver):
                self._attach_producer(link)
            elif isinstance(link, Sender):
                self._attach_consumer(link)
        except Refusal as refusal:
            self.refuse(link, refusal)

    def _steal(self, link: LinkEndpoint) -> None:
        """End the link of another connection that has the name of this one. Raises Refusal for another user's link."""
        known = self._links.gateway.links.find(self._peer.container, link)
        if known is not None and known[0] is not self._peer and self._peer.identity.scope is None:
            if known[0].identity.username != self._peer.identity.username:
                check(self._peer, Action.MANAGE, _CONNECTIONS)
            known[0].stolen(known[1])

    def _attach_producer(self, link: Receiver) -> None:
        if isinstance(_attach_of(link).target, Coordinator):
            if self._peer.identity.scope is not None:
                raise Refusal(AmqpCondition.UNAUTHORIZED_ACCESS, "this connection takes no transactions")
            self._transactions.attach(link)
            return
        config = self._links.gateway.engine.config
        terms = producing_terms(_attach_of(link), config)
        self._check_address(terms.address)
        if self._nodes.attach_requests(link, terms.address):
            link.session.resume()
            return
        terms = self._detached_nodes.producing_terms(link, terms)
        may_create = check_producer(self._peer, terms)
        producer_link = ProducerLink(self._peer, link, self._links.gateway.limits, terms)
        unsettled = self._unsettled(link)
        producer_link.is_second = self._is_second(link)
        cut_tag = self._links.scopes.take_cut(link.name)
        if unsettled is not None:
            producer_link.note_resumption(unsettled, cut_tag)
        producer_link.guard = None if terms.dynamic is not None else relay_guard(self._peer, terms.address)
        self._links.producers[link] = producer_link
        self._links.gateway.links.add(self._peer, link)
        self._links.gateway.lost_links.submit(
            AttachProducer(
                producer_link,
                terms.address,
                self._peer.container,
                link.name,
                terms.unroutable,
                terms.is_immediate,
                terms.dynamic,
                may_create,
                by=owner_of(self._peer),
                must_exist=terms.must_exist,
                keeping=terms.kept.keeping,
                resumes=None if unsettled is None else frozenset(unsettled),
                is_incomplete=_attach_of(link).incomplete_unsettled,
            )
        )

    def _is_second(self, link: Receiver) -> bool:
        """Return whether a sender settles after it knows the outcome."""
        mode = receiver_settle_mode(_attach_of(link), self._peer.connection.remote_open)
        return mode == ReceiverSettleMode.SECOND

    def _unsettled(self, link: LinkEndpoint) -> UnsettledMap | None:
        """Return the unsettled map of a peer's attach; None if it resumes no link. Raises Refusal for a bad one."""
        try:
            unsettled = unsettled_of(_attach_of(link))
        except DecodeError as error:
            raise Refusal(AmqpCondition.INVALID_FIELD, f"the unsettled map: {error.description}") from error
        return unsettled

    def _attach_consumer(self, link: Sender) -> None:
        source = _attach_of(link).source
        # A client of the management node may let the broker choose the address of the answers.
        is_dynamic = source is not None and source.dynamic and not source.capabilities
        if is_dynamic and self._peer.identity.scope is None and self._nodes.attach_dynamic(link):
            return
        config = self._links.gateway.engine.config
        terms = consuming_terms(_attach_of(link), is_nameless=not self._peer.container, config=config)
        if is_aliased := is_alias(terms.address):
            terms = resolved_terms(self._peer, terms)
        self._check_address(terms.address)
        if self._nodes.attach_replies(link, terms.address):
            return
        if not terms.is_copy:
            terms = self._detached_nodes.consuming_terms(link, terms)
        may_create = check_consumer(self._peer, terms) and not is_aliased
        if terms.is_copy:
            self._links.sources[link] = self._links.gateway.sources.attach(self._peer, link, terms)
            self._links.gateway.links.add(self._peer, link)
            return
        consumer_link = ConsumerLink(self._peer, link, terms)
        consumer_link.is_service_bus = self._nodes.has_claims
        unsettled = self._unsettled(link)
        # A link whose deliveries are sent settled can send none again that is not.
        unsettled = consumer_link.unsettled = None if terms.is_settled else unsettled
        self._links.consumers[link] = consumer_link
        self._links.gateway.links.add(self._peer, link)
        self._links.gateway.lost_links.submit(
            AttachConsumer(
                consumer_link,
                terms.address,
                self._peer.container,
                link.name,
                terms.is_settled,
                terms.selector,
                terms.subscription_request,
                terms.dynamic,
                terms.is_recalled,
                may_create,
                owner_of(self._peer),
                authorizer(self._peer, is_recalled=terms.is_recalled),
                by=owner_of(self._peer),
                must_exist=terms.must_exist,
                priority=terms.priority,
                is_exclusive=terms.is_exclusive,
                rate=terms.rate,
                keeping=terms.kept.keeping,
                resumes=None if unsettled is None else _outcomes(unsettled, terms),
                may_cut_through=not consumer_link.is_service_bus,
            )
        )

    def refuse(self, link: LinkEndpoint, refusal: Refusal) -> None:
        """Refuse the attach of a link."""
        known = self._links.producers.get(link) or self._links.consumers.get(link)
        if known is None or known.is_open:
            link.refuse(Error(condition=Symbol(refusal.condition), description=refusal.description))
        self._links.remove(link)

    def check_again(self) -> Iterator[None]:
        """End the links that the rules do not allow any more: a step for each link."""
        peer, links = self._peer, self._links
        for link, producer_link in list(links.producers.items()):
            if link in links.producers:
                self._check_link(link, partial(check_producer, peer, producer_link.terms))
                if producer_link.terms.dynamic is None:
                    producer_link.guard = relay_guard(peer, producer_link.terms.address)
            yield
        for link, consumer_link in list(links.consumers.items()):
            if link in links.consumers:
                self._check_link(link, partial(self._check_consumer, consumer_link))
            yield
        for link, source in list(links.sources.items()):
            if link in links.sources:
                self._check_link(link, partial(check_consumer, peer, source.terms))
            yield

    def _check_consumer(self, consumer_link: ConsumerLink) -> None:
        """Raise Refusal if the rules do not allow a receiving link any more."""
        check_consumer(self._peer, consumer_link.terms)
        state = self._links.gateway.engine.state
        known = state.consumers.get(consumer_link.consumer)
        subscription = None if known is None else state.subscriptions.get(known.queue)
        if subscription is not None and consumer_link.terms.is_recalled:
            try:
                authorizer(self._peer, is_recalled=True)(subscription)
            except Refused as refused:
                raise Refusal(refused.condition, refused.description) from refused

    def _check_link(self, link: LinkEndpoint, check_terms: Callable[[], object]) -> None:
        """End a link if the check of its terms raises Refusal."""
        try:
            check_terms()
        except Refusal as refusal:
            self._links.end_unauthorized(link)
            link.detach(closed=True, error=Error(condition=Symbol(refusal.condition), description=refusal.description))
            self._peer.relieve(link.session)

    def check_tokens(self) -> None:
        """End the links that have no token any more."""
        for link, address in self._links.addresses():
            self._check_link(link, partial(self._check_token, address))

    def _check_token(self, address: str) -> None:
        """Raise Refusal if the connection logs in by tokens, and has none for an address."""
        tokens = self._peer.tokens
        if tokens is not None and address != claims.ADDRESS and not tokens.covers(address):
            raise Refusal(AmqpCondition.UNAUTHORIZED_ACCESS, no_token(address))

    def release(self) -> None:
        """Free the connection at once: nothing may follow."""
        del self._peer

    def _check_address(self, address: str) -> None:
        """Raise Refusal for an address beyond the scope, or the tokens, of this connection."""
        self._check_token(address)
        if self._peer.identity.scope is not None and address != management.ADDRESS:
            why = f"this connection is bound to {management.ADDRESS}, not to {address!r:.80}"
            raise Refusal(AmqpCondition.UNAUTHORIZED_ACCESS, why)


def _outcomes(unsettled: UnsettledMap, terms: ConsumingTerms) -> dict[int, Outcome | None]:
    """Return the keys of what a receiver has not settled, each with the outcome that it has reached."""
    outcomes: dict[int, Outcome | None] = {}
    for tag, state in unsettled.items():
        if len(tag) == _TAG_BYTES:
            key = int.from_bytes(tag, "big")
            outcomes[key] = outcome_of(state, terms.default_outcome) if is_terminal(state) else None
    return outcomes


def _attach_of(link: LinkEndpoint) -> Attach:
    assert link.remote is not None, "LinkAttached follows the peer's attach"
    return link.remote
