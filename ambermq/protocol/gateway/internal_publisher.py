"""What the broker itself sends to an address, on behalf of one connection: answers whose reply-to is a node of ours.

Rule 1. It is a producer of the engine like any other, without a link: it comes with the first message and goes with the
        connection.
Rule 2. Nobody waits for the outcome: what reaches no queue is gone.
"""

from typing import Final, final

from ambermq.engine.commands import AttachProducer, DetachProducer, Publish
from ambermq.engine.effects import ProducerReady, PublishDone
from ambermq.engine.model.publish_options import Unroutable
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.links.link_peer import LinkPeer

__all__ = ["InternalPublisher"]

_WAITING_MAX: Final = 1000


@final
class InternalPublisher:
    """The producer of one connection's answers."""

    __slots__ = ("_is_asked", "_producer", "_waiting", "is_open", "peer")

    def __init__(self, peer: LinkPeer, link: str) -> None:
        """`link` is the name that history has for it."""
        self.peer = peer
        self.is_open = True
        self._producer = 0
        self._waiting: list[Buffer] = []
        peer.gateway.engine.submit(AttachProducer(self, "", peer.container, link, Unroutable.DISCARD))

    def post(self, body: Buffer) -> None:
        """Send a message to the address in its `to`; where too many wait for the first tick it is dropped."""
        if self._producer:
            self.peer.gateway.engine.submit(Publish(self, self._producer, 0, [body], [0], len(body), durable=False))
        elif len(self._waiting) < _WAITING_MAX:
            self._waiting.append(body)

    def ready(self, effect: ProducerReady) -> None:
        """Send what has waited."""
        if not self.is_open:
            self.peer.gateway.engine.submit(DetachProducer(effect.producer))
            return
        self._producer = effect.producer
        waiting, self._waiting = self._waiting, []
        for body in waiting:
            self.post(body)

    def finish(self, done: PublishDone) -> None:
        """Hear an outcome, which nobody waits for."""

    def close(self) -> None:
        """Send nothing any more."""
        self.is_open = False
        self._waiting.clear()
        if self._producer:
            self.peer.gateway.engine.submit(DetachProducer(self._producer))
