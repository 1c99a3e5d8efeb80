"""The producer for answers whose reply-to is an address of the broker, one for each connection.

Rule 1. It is a producer of the engine without a link. The first answer attaches it, and the end of the connection
        detaches it.
Rule 2. Outcomes are ignored: an answer that reaches no queue is lost.
"""

from collections.abc import Callable
from typing import Final, final

from ambermq.engine.commands import AttachProducer, DetachProducer, Publish
from ambermq.engine.effects import ProducerReady, PublishDone
from ambermq.engine.model.publish_options import Unroutable
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.links.link_peer import LinkPeer

__all__ = ["InternalPublisher"]

_BACKLOG_MAX: Final = 1000


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
