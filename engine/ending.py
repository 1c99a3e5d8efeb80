"""What ends, and what goes with it: nodes that have an end, and whatever somebody deletes.

Rule 1. A node with an end is looked at where something happens that may be it: a link goes, the last message goes, the
        broker starts. Nothing is looked for.
Rule 2. What goes is told by the events that deleting it by hand would be, its attachments first.
Rule 3. Links that are left on what goes are ended, with amqp:resource-deleted.
Rule 4. A temporary topic takes its subscriptions along, and a subscription the muxer of its selector.
"""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from engine.apply import fold
from engine.effects import ConsumerEnded, Effect, ProducersEnded
from engine.events import Detached, Event, MuxerDeleted, QueueDeleted
from engine.lifetime import Lifetime
from engine.moment import Decision, Moment
from engine.muxer import Muxer
from engine.queue import Queue
from engine.state import State

__all__ = ["detachments", "ended", "ended_at_start", "later", "muxers_before", "muxers_left", "queue_gone"]

_DELETED = "amqp:resource-deleted"


def ended(state: State, nodes: Iterable[int], moment: Moment, *, closed: Collection[int] = ()) -> Decision:
    """Return what ends of queues and muxers that something happened to; `state` is that at the moment's offset.

    `closed` are those whose own link, which had them made, is gone.
    """
    events: list[Event] = []
    effects: list[Effect] = []
    ahead = list(dict.fromkeys(nodes))
    for node in ahead:
        if not _is_over(state, node, is_closed=node in closed):
            continue
        # Though looked at already: each lives by the links that it has now.
        ahead += muxers_before(state, node, moment)
        more, answers = _gone(state, node, later(moment, events))
        state = fold(state, more)
        events += more
        effects += answers
    return events, effects


def ended_at_start(state: State, moment: Moment) -> list[Event]:
    """Return what ends when the broker starts: no link is left, and none of before comes back."""
    nodes = [queue.id for queue in state.queues.values() if queue.lifetime]
    nodes += [muxer.id for muxer in state.muxers.values() if muxer.options.lifetime]
    return ended(state, sorted(nodes), moment, closed=frozenset(nodes))[0]


def queue_gone(state: State, queue: Queue, moment: Moment) -> Decision:
    """Return what deletes a queue, with the subscription that it is, and ends the links to it."""
    events = detachments(state, queue.id, moment)
    selecting = state.muxer_named(queue.name) if queue.id in state.subscriptions else None
    if selecting is not None:
        events += detachments(state, selecting.id, later(moment, events))
        events.append(MuxerDeleted(moment.next_offset + len(events), moment.now_us, selecting.id))
    events.append(QueueDeleted(moment.next_offset + len(events), moment.now_us, queue.id))
    why = (_DELETED, f"queue {queue.name!r} was deleted")
    left = sorted(one.id for one in state.consumers.values() if one.queue == queue.id) if queue.consumers else []
    effects: list[Effect] = [ConsumerEnded(consumer, *why) for consumer in left]
    return events, effects + _producers_ended(state, queue.id, *why)


def detachments(state: State, member: int, moment: Moment, *, at_most: int | None = None) -> list[Event]:
    """Return what detaches a queue or muxer from all that passes on to it, or from some of that."""
    return [
        Detached(moment.next_offset + index, moment.now_us, muxer, member, attachment.id, attachment.argument)
        for index, (muxer, attachment) in enumerate(moment.router.attachments_of(state, member, at_most=at_most))
    ]


def later(moment: Moment, events: list[Event]) -> Moment:
    """Return the moment after events of one record each."""
    return replace(moment, next_offset=moment.next_offset + len(events))


def muxers_before(state: State, node: int, moment: Moment) -> list[int]:
    """Return the muxers that pass on to a node, and those before them: a subscription's topic among these."""
    before = [muxer for muxer, _ in moment.router.attachments_of(state, node)]
    return before + [muxer for one in before for muxer, _ in moment.router.attachments_of(state, one)]


def muxers_left(state: State, queue: Queue, detached: Iterable[Event], moment: Moment) -> list[int]:
    """Return the muxers with an end that a queue was reached from by what is detached: the topic of a subscription."""
    muxers = [event.muxer for event in detached if type(event) is Detached]
    selecting = state.muxer_named(queue.name) if queue.id in state.subscriptions else None
    if selecting is not None and selecting.id in muxers:
        muxers += muxers_before(state, selecting.id, moment)
    return [one for one in muxers if state.muxers[one].options.lifetime]


def _is_over(state: State, node: int, *, is_closed: bool) -> bool:
    """Return whether a queue or muxer with an end has come to it."""
    queue, muxer = state.queues.get(node), state.muxers.get(node)
    if queue is not None:
        lifetime, links, depth, is_used = queue.lifetime, queue.consumers, queue.depth, queue.published > 0
    elif muxer is not None:
        # A topic holds no message, and its links are the subscriptions.
        lifetime, links, depth, is_used = muxer.options.lifetime, len(muxer.attachments), 0, False
    else:
        return False
    links += state.links.get(node, 0)
    match lifetime:
        case Lifetime.PERMANENT:
            return False
        case Lifetime.ON_CLOSE:
            return is_closed
        case Lifetime.NO_LINKS:
            return not links
        case Lifetime.NO_MESSAGES:
            return not depth and (is_used or is_closed)
        case Lifetime.NO_LINKS_OR_MESSAGES:
            return not links and not depth


def _gone(state: State, node: int, moment: Moment) -> Decision:
    queue = state.queues.get(node)
    return _topic_gone(state, state.muxers[node], moment) if queue is None else queue_gone(state, queue, moment)


def _topic_gone(state: State, topic: Muxer, moment: Moment) -> Decision:
    """Return what deletes the muxer of a temporary topic, with its subscriptions."""
    events: list[Event] = []
    effects: list[Effect] = []
    after = state
    for _, attachment in sorted(topic.attachments.items()):
        queue = after.queues.get(attachment.member)
        if queue is None and attachment.member in after.muxers:
            queue = after.queue_named(after.muxers[attachment.member].name)
        if queue is not None:
            more, answers = queue_gone(after, queue, later(moment, events))
            after = fold(after, more)
            events += more
            effects += answers
    events.append(MuxerDeleted(moment.next_offset + len(events), moment.now_us, topic.id))
    return events, effects + _producers_ended(after, topic.id, _DELETED, f"topic {topic.name!r} was deleted")


def _producers_ended(state: State, node: int, condition: str, description: str) -> list[Effect]:
    if node not in state.links:
        return []
    left = frozenset(one.id for one in state.producers.values() if one.node == node)
    return [ProducersEnded(left, condition, description)]
