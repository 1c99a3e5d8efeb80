"""The teardown of a queue or muxer with all that depends on it, up to the changes of one part of a decision.

Rule 1. First its attachments by other commands end, then its links; if they are more than the part takes, each by an
        event of its own. Its core ends last and whole: its own wiring, itself and the remaining links. So between two
        parts the node still exists and works.
Rule 2. A subscription's own wiring is the attachment that it was created with, and the muxer of its selector.
Rule 3. The subscriptions of a temporary topic end before it.
Rule 4. The remaining links of a removed node are ended with amqp:resource-deleted.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from operator import attrgetter
from typing import Any, Final, final

from msgspec.structs import replace

from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.release_parts import release_part
from ambermq.engine.effects import ConsumerEnded, Effect, ProducersEnded
from ambermq.engine.events import ConsumerDetached, Detached, Event, MuxerDeleted, ProducerDetached, QueueDeleted
from ambermq.engine.fold.apply import apply
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.muxer import TOPIC_MUXER, Muxer
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import Links, State
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["Teardown"]

_DELETED: Final = "amqp:resource-deleted"
_NO_LINKS: Final[Links] = PersistentMap()

_Place = tuple[int, Attachment]
"""A muxer's id, and one of its attachments."""


@final
class Teardown:
    """One part of a teardown: its events and effects so far, and the state after them."""

    __slots__ = ("_context", "changes_left", "effects", "events", "state", "upstream")

    def __init__(self, state: State, context: DecisionContext, changes_max: int) -> None:
        """`state` is the state at the context's offset."""
        self.state = state
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.upstream: dict[int, None] = {}
        """Muxers with a lifetime policy that sent to a removed node."""
        self.changes_left = changes_max
        self._context = context

    def remove(self, node: int) -> bool:
        """Remove an existing queue or muxer, up to the limit of this part; return whether it is removed.

        `changes_left` must be above 0.
        """
        assert self.changes_left > 0, "each part makes progress"
        queue = self.state.queues.get(node)
        if queue is not None:
            return self._remove_queue(queue)
        muxer = self.state.muxers[node]
        return self._remove_topic(muxer) if muxer.options.lifetime else self._remove_muxer(muxer)

    def _remove_queue(self, queue: Queue) -> bool:
        own, selecting = self._own_wiring(queue)
        if not self._detach_from_muxers(queue.id, own) or not self._end_links(queue.id, f"queue {queue.name!r}"):
            return False
        self._detach(own)
        if selecting is not None:
            self._emit(MuxerDeleted, selecting.id)
        self._emit(QueueDeleted, queue.id)
        return True

    def _own_wiring(self, queue: Queue) -> tuple[list[_Place], Muxer | None]:
        """Return the wiring that a subscription was created with: attachments, and the muxer of its selector."""
        subscription = self.state.subscriptions.get(queue.id)
        if subscription is None:
            return [], None
        router, selecting = self._context.router, self.state.muxer_named(queue.name)
        if selecting is not None:
            downstream = [(selecting.id, one) for one in selecting.attachments.values()]
            return downstream + router.attachments_of(self.state, selecting.id), selecting
        is_temporary = subscription.topic.startswith("$")
        topic = self.state.muxer_named(subscription.topic if is_temporary else TOPIC_MUXER)
        pattern = None if is_temporary else subscription.topic
        found = None if topic is None else router.find(self.state, topic.id, queue.id, pattern)
        return [] if topic is None or found is None else [(topic.id, found)], None

    def _remove_muxer(self, muxer: Muxer) -> bool:
        if not self._detach_from_muxers(muxer.id, ()):
            return False
        downstream = sorted(islice(muxer.attachments.values(), self.changes_left), key=attrgetter("id"))
        self._detach([(muxer.id, one) for one in downstream])
        if len(downstream) < len(muxer.attachments) or not self._end_links(muxer.id, f"muxer {muxer.name!r}"):
            return False
        self._emit(MuxerDeleted, muxer.id)
        return True

    def _remove_topic(self, topic: Muxer) -> bool:
        for _, attachment in sorted(islice(topic.attachments.items(), self.changes_left)):
            if self.changes_left <= 0 or not self._remove_subscription(topic, attachment):
                return False
        if self.state.muxers[topic.id].attachments or not self._end_links(topic.id, f"topic {topic.name!r}"):
            return False
        self._emit(MuxerDeleted, topic.id)
        return True

    def _remove_subscription(self, topic: Muxer, attachment: Attachment) -> bool:
        queue = self.state.queues.get(attachment.member)
        if queue is None and attachment.member in self.state.muxers:
            queue = self.state.queue_named(self.state.muxers[attachment.member].name)
        if queue is None:
            # A repair of the log could not save the queue.
            self._detach([(topic.id, attachment)])
            return True
        return self._remove_queue(queue)

    def _detach_from_muxers(self, node: int, own: Iterable[_Place]) -> bool:
        """Remove the attachments of a node as a member, without its `own`; return whether all are removed."""
        kept, changes_max = {attachment.id for _, attachment in own}, self.changes_left
        places = self._context.router.attachments_of(self.state, node, at_most=changes_max + len(kept) + 1)
        hung = [place for place in places if place[1].id not in kept]
        self._detach(hung[:changes_max])
        return len(hung) <= changes_max

    def _detach(self, places: Iterable[_Place]) -> None:
        for muxer, one in places:
            if self.state.muxers[muxer].options.lifetime:
                self.upstream[muxer] = None
            self._emit(Detached, muxer, one.member, one.id, one.argument)

    def _end_links(self, node: int, what: str) -> bool:
        """End links to a node; return whether these are all of them. Then the removal of the node ends them."""
        receivers, senders = self.state.receivers.get(node, _NO_LINKS), self.state.links.get(node, _NO_LINKS)
        if len(receivers) + len(senders) <= self.changes_left:
            consumers, producers = sorted(receivers), sorted(senders)
        else:
            consumers = self._first_of(node, receivers)
            producers = sorted(islice(senders, max(self.changes_left - len(consumers), 0)))
        why = (_DELETED, f"{what} was deleted")
        self.effects += [ConsumerEnded(consumer, *why) for consumer in consumers]
        if producers:
            self.effects.append(ProducersEnded(frozenset(producers), *why))
        count = len(consumers) + len(producers)
        if count == len(receivers) + len(senders):
            self.changes_left -= count
            return True
        for consumer in consumers:
            if not self._release(consumer):
                return False
            self._emit(ConsumerDetached, consumer)
        for producer in producers:
            self._emit(ProducerDetached, producer)
        return False

    def _release(self, consumer: int) -> bool:
        """Return whether a consumer can end in this part; else emit the return of a part of what it holds."""
        part = release_part(self.state, consumer, replace(self._context, next_offset=self._next_offset))
        for event in part:
            self._append(event)
        return not part

    def _first_of(self, node: int, receivers: Links) -> list[int]:
        """Return as many of a node's consumers as this part takes; each message that they hold is a change too."""
        consumers, queue = list[int](), self.state.queues.get(node)
        for consumer in receivers:
            if self.changes_left <= len(consumers):
                break
            consumers.append(consumer)
            if queue is not None:
                self.changes_left -= queue.held_by(consumer).count
        return sorted(consumers)

    def _emit(self, kind: Callable[..., Event], *what: Any) -> None:
        self._append(kind(self._next_offset, self._context.now_us, *what))

    @property
    def _next_offset(self) -> int:
        return self._context.next_offset + len(self.events)

    def _append(self, event: Event) -> None:
        self.events.append(event)
        self.state = apply(self.state, event)
        self.changes_left -= 1
