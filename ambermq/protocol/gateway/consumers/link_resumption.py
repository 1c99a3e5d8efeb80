"""The resumption of one link: deliveries that an earlier link held are sent again, before anything new.

Rule 1. Their messages are asked of the engine as the link can take them (recovery/resumed_deliveries.py).
Rule 2. A large one is sent as a stream, from where its receiver was cut off. What comes meanwhile is asked for again.
"""

from functools import partial
from typing import final

from ambermq.engine.effects import Deliver
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.consumers.backlog import Backlog
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.gateway.large.message_stream import MessageStream
from ambermq.protocol.gateway.links.outgoing_message import redelivered
from ambermq.protocol.gateway.recovery.resumed_deliveries import ResumedDeliveries

__all__ = ["LinkResumption"]


@final
class LinkResumption:
    """What is to be sent again on one link."""

    __slots__ = ("_backlog", "_deliveries", "_link")

    def __init__(self, link: Sender, backlog: Backlog, deliveries: ResumedDeliveries) -> None:
        self._link = link
        self._backlog = backlog
        self._deliveries = deliveries

    def ask(self, count_max: int) -> tuple[int, ...]:
        """Return the words of the messages to ask for next, at most `count_max`."""
        return self._deliveries.send(self._link, count_max)

    def finish(self) -> bool:
        """Return whether new messages may follow: all are sent, and no unsettled map is incomplete."""
        link = self._link
        if not self._deliveries.is_done:
            if not link.sendable:
                link.session.await_room()
            return False
        if not self._deliveries.is_incomplete:
            self._deliveries.end(link)
            return True
        if link.drain:
            link.drained()
        return False

    def deliver(self, effect: Deliver, engine: EnginePort, *, is_plain: bool) -> tuple[int, int] | None:
        """Send a delivery again, or begin to; return the messages and bytes that it has.

        Returns None if a large message is being sent. `is_plain`: the deliveries have no annotations of their own.
        """
        if self._backlog.stream is not None:
            self._deliveries.put_back()
            return None
        bodies: list[Buffer] = []
        for body, entry in zip(effect.bodies, effect.entries or (), strict=False):
            if isinstance(body, StoredMessage):
                self._begin_stream(body, entry, effect, engine, is_plain=is_plain)
                return 1, len(body)
            bodies.append(redelivered(body, entry, effect.elapsed_us))
        self._deliveries.deliver(self._link, bodies, is_plain=is_plain)
        return len(bodies), sum(map(len, bodies))

    def _begin_stream(
        self, message: StoredMessage, entry: Entry | None, effect: Deliver, engine: EnginePort, *, is_plain: bool
    ) -> None:
        """Begin to send a large message again, from where its receiver was cut off."""
        one = self._deliveries.take_large(self._link)
        stream = MessageStream(
            engine,
            self._link,
            message,
            partial(redelivered, entry=entry, now_us=effect.elapsed_us),
            effect.words[0],
            settled=False,
            queue=effect.queue,
            resumes=not one.is_new,
            state=one.state if is_plain else None,
        )
        self._backlog.begin(stream)
