"""Answers whose reply-to is an address of the broker: a producer for those of each connection.

Rule 1. It is a producer of the engine without a link. The first answer attaches it, and the end of the connection
        detaches it.
Rule 2. Outcomes are ignored: an answer that reaches no queue is lost.
Rule 3. An answer goes where its connection may send, and nowhere else.
"""

from collections.abc import Callable
from typing import Final, Protocol, final

from ambermq.engine.commands import AttachProducer, DetachProducer, Publish
from ambermq.engine.effects import ProducerReady, PublishDone
from ambermq.engine.model.publish_options import Unroutable
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.auth.access import Action
from ambermq.protocol.gateway.links.link_authority import is_allowed
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.gateway.nodes.connection_tokens import ConnectionTokens
from ambermq.protocol.gateway.producers.relay_guard import RelayGuard

__all__ = ["AnswerPublisher", "InternalPublisher"]

_BACKLOG_MAX: Final = 1000
_PATHS: Final = ("/queues/", "/topics/", "/muxers/")


class AnsweredPeer(LinkPeer, Protocol):
    """The gateway's side of a connection whose requests are answered."""

    @property
    def tokens(self) -> ConnectionTokens | None:
        """The tokens of a connection that logs in by them; None for another one."""


@final
class InternalPublisher:
    """The producer of one connection's answers."""

    __slots__ = ("_backlog", "_may_create", "_producer", "is_open", "peer")

    def __init__(self, peer: LinkPeer, link: str, may_create: Callable[[str], bool]) -> None:
        """Attach the producer; `link` is the name of its link in the history.

        `may_create` is a function of a queue's name to whether an answer may create the queue.
        """
        self._may_create = may_create
        self.peer = peer
        self.is_open = True
        self._producer = 0
        self._backlog: list[Buffer] = []
        user = peer.identity.username or ""
        peer.gateway.engine.submit(AttachProducer(self, "", peer.container, link, Unroutable.DISCARD, by=user))

    def post(self, body: Buffer) -> None:
        """Send a message to the address in its `to`. Until the producer is attached, 1,000 messages wait."""
        if self._producer:
            publish = Publish(self, self._producer, 0, [body], [0], len(body), durable=False)
            publish.may_create = self._may_create
            publish.by = self.peer.identity.username or ""
            self.peer.gateway.engine.submit(publish)
        elif len(self._backlog) < _BACKLOG_MAX:
            self._backlog.append(body)

    def ready(self, effect: ProducerReady) -> None:
        """Send the messages that waited for the producer."""
        if not self.is_open:
            self.peer.gateway.engine.submit(DetachProducer(effect.producer))
            return
        self._producer = effect.producer
        backlog, self._backlog = self._backlog, []
        for body in backlog:
            self.post(body)

    def finish(self, done: PublishDone) -> None:
        """Ignore an outcome."""

    def close(self) -> None:
        """Detach the producer, and drop the messages that wait."""
        self.is_open = False
        self._backlog.clear()
        if self._producer:
            self.peer.gateway.engine.submit(DetachProducer(self._producer))


@final
class AnswerPublisher:
    """The answers of one connection to addresses of the broker. Its producer is attached when there is one."""

    __slots__ = ("_link", "_peer", "_publisher")

    def __init__(self, peer: AnsweredPeer, link: str) -> None:
        """`link` is the name of the producer's link in the history."""
        self._peer = peer
        self._link = link
        self._publisher: InternalPublisher | None = None

    def post(self, address: str, message: Buffer) -> bool:
        """Publish a message to an address, which its `to` names; return whether the address is the broker's."""
        peer = self._peer
        is_known = address.startswith(_PATHS) or address in peer.gateway.engine.state.queue_names
        if not is_known or peer.identity.scope is not None or not is_allowed(peer, Action.SEND, address):
            return False
        if peer.tokens is not None and not peer.tokens.covers(address):
            return False
        if self._publisher is None:
            self._publisher = InternalPublisher(peer, self._link, RelayGuard(peer, "").may_create)
        self._publisher.post(message)
        return True

    def refused(self) -> None:
        """Drop what waits: there are too many producers. The next message tries again."""
        self._publisher = None

    def close(self) -> None:
        """Detach the producer."""
        if self._publisher is not None:
            self._publisher.close()
            self._publisher = None

    def release(self) -> None:
        """Free the connection: nothing may follow."""
        del self._peer
