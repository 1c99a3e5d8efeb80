"""What goes with a queue or a muxer, as much of it as one part of a decision takes.

Rule 1. First goes what others have hung on it, attachments and then links, each by an event of its own where they are
        more than the part takes. Its core goes last and whole: its own wiring and itself, with the links that are left.
        So what is cut between two parts is there still, and works.
Rule 2. A subscription's own wiring is the attachment that it was made with, and the muxer of its selector.
Rule 3. A temporary topic takes its subscriptions along, before it.
Rule 4. Links that are left on what goes are ended, with amqp:resource-deleted.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from operator import attrgetter
from typing import Any, Final, final

from ambermq.engine.decide.context import DecisionContext
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
_NOBODY: Final[Links] = PersistentMap()

_Place = tuple[int, Attachment]
"""A muxer's id, and one of its attachments."""


@final
class Teardown:
    """One part: its events and effects so far, and the state after them."""

    __slots__ = ("_context", "changes_left", "effects", "events", "left", "state")

    def __init__(self, state: State, context: DecisionContext, changes_max: int) -> None:
        """`state` is that at the offset of `context`."""
        self.state = state
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.left: dict[int, None] = {}
        """Muxers with an end that passed on to something that has gone."""
        self.changes_left = changes_max
        self._context = context

    def take(self, node: int) -> bool:
        """Take a queue or muxer that is there apart, as far as this part goes; return whether it is gone.

        There must be changes left.
        """
        assert self.changes_left > 0, "a part has an end, a whole has parts"
        queue = self.state.queues.get(node)
        if queue is not None:
            return self._take_queue(queue)
        muxer = self.state.muxers[node]
        return self._take_topic(muxer) if muxer.options.lifetime else self._take_muxer(muxer)

    def _take_queue(self, queue: Queue) -> bool:
        own, selecting = self._own_wiring(queue)
        if not self._unhang(queue.id, own) or not self._end_links(queue.id, f"queue {queue.name!r}"):
            return False
        self._detach(own)
        if selecting is not None:
            self._happened(MuxerDeleted, selecting.id)
        self._happened(QueueDeleted, queue.id)
        return True

    def _own_wiring(self, queue: Queue) -> tuple[list[_Place], Muxer | None]:
        """Return what a subscription was made with: attachments, and the muxer of its selector."""
        subscription = self.state.subscriptions.get(queue.id)
        if subscription is None:
            return [], None
        router, selecting = self._context.router, self.state.muxer_named(queue.name)
        if selecting is not None:
            behind = [(selecting.id, one) for one in selecting.attachments.values()]
            return behind + router.attachments_of(self.state, selecting.id), selecting
        is_temporary = subscription.topic.startswith("$")
        topic = self.state.muxer_named(subscription.topic if is_temporary else TOPIC_MUXER)
        pattern = None if is_temporary else subscription.topic
        found = None if topic is None else router.find(self.state, topic.id, queue.id, pattern)
        return [] if topic is None or found is None else [(topic.id, found)], None

    def _take_muxer(self, muxer: Muxer) -> bool:
        if not self._unhang(muxer.id, ()):
            return False
        behind = sorted(islice(muxer.attachments.values(), self.changes_left), key=attrgetter("id"))
        self._detach([(muxer.id, one) for one in behind])
        if len(behind) < len(muxer.attachments) or not self._end_links(muxer.id, f"muxer {muxer.name!r}"):
            return False
        self._happened(MuxerDeleted, muxer.id)
        return True

    def _take_topic(self, topic: Muxer) -> bool:
        for _, attachment in sorted(islice(topic.attachments.items(), self.changes_left)):
            if self.changes_left <= 0 or not self._take_subscription(topic, attachment):
                return False
        if self.state.muxers[topic.id].attachments or not self._end_links(topic.id, f"topic {topic.name!r}"):
            return False
        self._happened(MuxerDeleted, topic.id)
        return True

    def _take_subscription(self, topic: Muxer, attachment: Attachment) -> bool:
        queue = self.state.queues.get(attachment.member)
        if queue is None and attachment.member in self.state.muxers:
            queue = self.state.queue_named(self.state.muxers[attachment.member].name)
        if queue is None:
            # A repair of the log could not save it.
            self._detach([(topic.id, attachment)])
            return True
        return self._take_queue(queue)

    def _unhang(self, node: int, own: Iterable[_Place]) -> bool:
        """Detach a node from what passes on to it, but for its `own`; return whether all of that is done."""
        kept, changes_max = {attachment.id for _, attachment in own}, self.changes_left
        places = self._context.router.attachments_of(self.state, node, at_most=changes_max + len(kept) + 1)
        hung = [place for place in places if place[1].id not in kept]
        self._detach(hung[:changes_max])
        return len(hung) <= changes_max

    def _detach(self, places: Iterable[_Place]) -> None:
        for muxer, one in places:
            if self.state.muxers[muxer].options.lifetime:
                self.left[muxer] = None
            self._happened(Detached, muxer, one.member, one.id, one.argument)

    def _end_links(self, node: int, what: str) -> bool:
        """End the links to a node; return whether those are all, which go with itself then."""
        receivers, senders = self.state.receivers.get(node, _NOBODY), self.state.links.get(node, _NOBODY)
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
            self._happened(ConsumerDetached, consumer)
        for producer in producers:
            self._happened(ProducerDetached, producer)
        return False

    def _first_of(self, node: int, receivers: Links) -> list[int]:
        """Return as many of a node's consumers as this part takes; what they hold comes back, and counts as well."""
        consumers, queue = list[int](), self.state.queues.get(node)
        for consumer in receivers:
            if self.changes_left <= len(consumers):
                break
            consumers.append(consumer)
            if queue is not None:
                self.changes_left -= queue.held_by(consumer).count
        return sorted(consumers)

    def _happened(self, kind: Callable[..., Event], *what: Any) -> None:
        event = kind(self._context.next_offset + len(self.events), self._context.now_us, *what)
        self.events.append(event)
        self.state = apply(self.state, event)
        self.changes_left -= 1
