"""The links of one connection that the engine, a browser or the log serves: their credit, and their end.

Rule 1. An attached link is in one of the three tables until it is removed, forgotten or lost.
Rule 2. A link that is removed was detached by the engine. One that is forgotten or lost is detached from the engine.
Rule 3. This object does not hold its connection: no cycle keeps the memory of a connection that has ended.
"""

from typing import final

from ambermq.engine.commands import DetachConsumer, DetachProducer, ExpireLinks, Suspension
from ambermq.engine.effects import ConsumerReady, ProducerReady
from ambermq.engine.model.state import State
from ambermq.protocol.amqp10.endpoints import LinkEndpoint, SessionEndpoint
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.gateway.links.detached_nodes import DetachedNodes
from ambermq.protocol.gateway.producers.producer_link import ProducerLink
from ambermq.protocol.gateway.recovery.link_keeping import LinkEnd, LinkKeeping
from ambermq.protocol.gateway.recovery.link_scopes import LinkScopes
from ambermq.protocol.gateway.sources.source import Source
from ambermq.protocol.management.peers.ports import LinkRow

__all__ = ["ConnectionLinks", "message_bytes"]


@final
class ConnectionLinks:
    """The producers, consumers and sources of one connection by their links."""

    __slots__ = ("_detached_nodes", "_ended_in", "_ended_out", "consumers", "gateway", "producers", "scopes", "sources")

    def __init__(self, gateway: Gateway, detached_nodes: DetachedNodes) -> None:
        self.gateway = gateway
        """The gateway of the virtual host; it changes before the first link is attached."""
        self._detached_nodes = detached_nodes
        self.producers: dict[LinkEndpoint, ProducerLink] = {}
        self.consumers: dict[LinkEndpoint, ConsumerLink] = {}
        self.sources: dict[LinkEndpoint, Source] = {}
        self.scopes = LinkScopes()
        """The suspended links whose session or connection has not ended."""
        self._ended_in = self._ended_out = 0
        """The messages of links that have ended: sent by the peer, and sent to it."""

    def producer_ready(self, producer_link: ProducerLink, ready: ProducerReady) -> None:
        """Answer a producer's attach, and grant its first credit."""
        gateway = self.gateway
        if not producer_link.is_open:
            gateway.engine.submit(DetachProducer(ready.producer))
            return
        producer_link.producer = ready.producer
        if ready.address:
            gateway.owners.add(ready.address, producer_link.peer.identity.username, gateway.engine.state)
        gateway.producers[ready.producer] = producer_link
        producer_link.accept(ready)
        producer_link.credit.top_up()
        producer_link.tell_blocked(gateway.blocked)

    def consumer_ready(self, consumer_link: ConsumerLink, ready: ConsumerReady) -> None:
        """Answer a consumer's attach."""
        if not consumer_link.is_open:
            self._detach_consumer(ready.consumer, is_closed=consumer_link.is_closed)
            return
        state = self.gateway.engine.state
        consumer_link.consumer = ready.consumer
        if ready.address:
            self.gateway.owners.add(ready.address, consumer_link.peer.identity.username, state)
        consumer_link.message_bytes = message_bytes(state, ready.consumer)
        consumer_link.accept(ready)
        consumer_link.top_up()

    def consumer_of(self, queue: int, link: str) -> int:
        """Return the engine's id of a consumer of a queue: that of the named link, else any; 0 without one."""
        known = self.gateway.engine.state.receivers.get(queue, ())
        found = [(key.name == link, one.consumer) for key, one in self.consumers.items() if one.consumer in known]
        return max(found, default=(False, 0))[1]

    def pause(self) -> None:
        """Revoke the credit of every consumer."""
        for consumer_link in self.consumers.values():
            self.gateway.engine.set_credit(consumer_link.consumer, 0)

    def resume(self) -> None:
        """Grant every consumer what its link can take, and serve the sources."""
        for consumer_link in self.consumers.values():
            consumer_link.top_up()
        for source in self.sources.values():
            self.gateway.sources.wake(source)

    def top_up_producers(self) -> None:
        """Grant every producer its credit."""
        for producer_link in self.producers.values():
            producer_link.credit.top_up()

    def relieve(self, session: SessionEndpoint) -> None:
        """Serve the links of a session that waited for room in it."""
        for consumer_link in self.consumers.values():
            if consumer_link.link.session is session and consumer_link.is_starved:
                consumer_link.top_up()
        for source in self.sources.values():
            if source.link.session is session:
                self.gateway.sources.wake(source)

    def backlog_bytes(self) -> int:
        """Return the memory of the deliveries in backlogs."""
        return sum(consumer_link.backlog_bytes for consumer_link in self.consumers.values())

    def end_unauthorized(self, link: LinkEndpoint) -> None:
        """Detach a link that the rules do not allow any more; what it holds returns without a failed delivery."""
        consumer_link = self.consumers.get(link)
        if consumer_link is None or not consumer_link.consumer:
            self.forget(link)
            return
        self.gateway.consumers.pop(consumer_link.consumer, None)
        self.gateway.engine.submit(DetachConsumer(consumer_link.consumer, consumer_link.unsent(), is_uncounted=True))
        self.remove(link)

    def remove(self, link: LinkEndpoint) -> None:
        """Remove a link that the engine has detached or refused."""
        self.gateway.links.remove(link)
        ended = self.producers.pop(link, None) or self.consumers.pop(link, None)
        if ended is not None:
            ended.is_open = False
            ended.close()
            self._count(ended)
            if isinstance(ended, ConsumerLink):
                ended.end_follower()
        self._remove_source(link)

    def lost(self) -> None:
        """Detach all links from the engine; very many in turns (lost_links.py)."""
        for links in (self.producers, self.consumers, self.sources):
            for link in links:
                self.gateway.links.remove(link)
        self._ended_in, self._ended_out = self.traffic_counts()
        for consumer_link in self.consumers.values():
            consumer_link.end_follower()
        self.gateway.lost_links.add(self.producers.values(), self.consumers.values())
        for source in self.sources.values():
            self.gateway.sources.forget(source)
        self.producers, self.consumers, self.sources = {}, {}, {}
        self._expire(self.scopes.end())

    def end_session(self, session: SessionEndpoint) -> None:
        """Begin the timeouts of the suspended links that end with a session; those that it had are forgotten."""
        self._expire(self.scopes.end_session(session))

    def _expire(self, links: tuple[int, ...]) -> None:
        if links:
            self.gateway.lost_links.submit(ExpireLinks(links))

    def forget(
        self,
        link: LinkEndpoint,
        *,
        is_closed: bool = False,
        may_return: bool = False,
        end: LinkEnd | None = None,
    ) -> None:
        """Detach a link from the engine; with `is_closed` the peer closed its source.

        With `may_return` its dynamic node goes on: the peer may attach the link again. `end` is what ended a link that
        may be resumed.
        """
        self.gateway.links.remove(link)
        producer_link = self.producers.pop(link, None)
        if producer_link is not None:
            self._count(producer_link)
            keeps_node = may_return and self._keeps_node(link, producer_link)
            if end is LinkEnd.DETACH:
                self.scopes.add_cut(link.name, producer_link.link.cut_tag)
            suspension = producer_link.terms.kept.suspension(end)
            self._end_producer(producer_link, keeps_node=keeps_node, suspension=suspension)
        consumer_link = self.consumers.pop(link, None)
        if consumer_link is not None:
            self._count(consumer_link)
            keeps_node = may_return and self._keeps_node(link, consumer_link)
            suspension = consumer_link.terms.kept.suspension(end)
            self._end_consumer(consumer_link, is_closed=is_closed, keeps_node=keeps_node, suspension=suspension)
        if not may_return:
            self._detached_nodes.close(link)
        self._remove_source(link)

    def addresses(self) -> list[tuple[LinkEndpoint, str]]:
        """Return the links with their addresses."""
        return [
            *((link, known.terms.address) for link, known in self.producers.items()),
            *((link, known.terms.address) for link, known in self.consumers.items()),
            *((link, known.terms.address) for link, known in self.sources.items()),
        ]

    def traffic_counts(self) -> tuple[int, int]:
        """Return the messages that the peer has sent, and that it was sent."""
        messages_in = self._ended_in + sum([link.messages for link in self.producers.values()])
        return messages_in, self._ended_out + sum([link.messages for link in self.consumers.values()])

    def row(self, link: LinkEndpoint, state: State) -> LinkRow:
        """Return what is known of a link; `state` is that of the virtual host."""
        producer_link, consumer_link = self.producers.get(link), self.consumers.get(link)
        if producer_link is not None:
            address, unsettled = producer_link.terms.address, producer_link.credit.unfinished
            return LinkRow("producer", address, None, unsettled, producer_link.messages, producer_link.bytes)
        if consumer_link is not None:
            return _consumer_row(consumer_link, state)
        remote, role = link.remote, "browser" if link in self.sources else "management"
        terminus = None if remote is None else remote.source if link.is_sender else remote.target
        return LinkRow(role, str(getattr(terminus, "address", "") or ""), None, 0, 0, 0)

    def _count(self, ended: ProducerLink | ConsumerLink) -> None:
        """Count the messages of a link that ends."""
        if isinstance(ended, ProducerLink):
            self._ended_in += ended.messages
        else:
            self._ended_out += ended.messages

    def _detach_consumer(
        self,
        consumer: int,
        unsent: bytes = b"",
        *,
        is_closed: bool = False,
        keeps_node: bool = False,
        by: str = "",
        suspension: Suspension = Suspension.NONE,
    ) -> None:
        """Detach a consumer from the engine; `unsent` are the packed words of deliveries that did not fail.

        `by` is the user that closes the link of another one.
        """
        self.gateway.consumers.pop(consumer, None)
        command = DetachConsumer(consumer, unsent, is_closed, keeps_node, suspension=suspension, by=by)
        self.gateway.engine.submit(command)

    def _remove_source(self, link: LinkEndpoint) -> None:
        source = self.sources.pop(link, None)
        if source is not None:
            self.gateway.sources.forget(source)

    def _keeps_node(self, link: LinkEndpoint, ended: ProducerLink | ConsumerLink) -> bool:
        """Return whether the engine keeps the node that a link created, though the link is detached."""
        state = self.gateway.engine.state
        if isinstance(ended, ProducerLink):
            producer = state.producers.get(ended.producer)
            return self._detached_nodes.keep(link, ended.terms.dynamic, 0 if producer is None else producer.owns)
        consumer = state.consumers.get(ended.consumer)
        return self._detached_nodes.keep(link, ended.terms.dynamic, 0 if consumer is None else consumer.owns)

    def _note_open(self, link: int, kept: LinkKeeping, session: SessionEndpoint, suspension: Suspension) -> None:
        """Note a link that is suspended while its session or its connection lasts."""
        if suspension is Suspension.OPEN:
            self._expire(self.scopes.add(link, session if kept.ends_with_session else None))

    def _end_producer(self, producer_link: ProducerLink, *, keeps_node: bool, suspension: Suspension) -> None:
        producer_link.is_open = False
        producer_link.close()
        if producer_link.producer:
            self.gateway.producers.pop(producer_link.producer, None)
            by = producer_link.peer.closed_by
            command = DetachProducer(producer_link.producer, keeps_node, suspension, by=by)
            self.gateway.engine.submit(command)
            session = producer_link.link.session
            self._note_open(producer_link.producer, producer_link.terms.kept, session, suspension)

    def _end_consumer(
        self, consumer_link: ConsumerLink, *, is_closed: bool, keeps_node: bool, suspension: Suspension
    ) -> None:
        consumer_link.end_follower()
        consumer_link.is_open, consumer_link.is_closed = False, is_closed
        consumer_link.close()
        if consumer_link.consumer:
            unsent = consumer_link.unsent()
            by = consumer_link.peer.closed_by
            consumer, kept = consumer_link.consumer, consumer_link.terms.kept
            self._detach_consumer(
                consumer, unsent, is_closed=is_closed, keeps_node=keeps_node, by=by, suspension=suspension
            )
            self._note_open(consumer, kept, consumer_link.link.session, suspension)


def _consumer_row(link: ConsumerLink, state: State) -> LinkRow:
    known = state.consumers.get(link.consumer)
    queue = None if known is None else state.queues.get(known.queue)
    unsettled = 0 if queue is None else queue.held_by(link.consumer).count
    name = None if queue is None else queue.name
    return LinkRow("consumer", link.terms.address, name, unsettled, link.messages, link.bytes)


def message_bytes(state: State, consumer: int) -> int:
    """Return the average size of the messages on a consumer's queue."""
    known = state.consumers.get(consumer)
    queue = None if known is None else state.queues.get(known.queue)
    count = 0 if queue is None else queue.available + queue.acquired_count
    return queue.size // count if queue is not None and count else 0
