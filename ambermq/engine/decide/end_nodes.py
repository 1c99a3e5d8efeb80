"""The end of queues and muxers: by their lifetime policy, or by a deletion.

Rule 1. A node with a lifetime policy is checked after each event that may end it: a link or the last message is gone,
        or the broker starts. Nothing polls. A queue that is unused for too long has a timer in the loop.
Rule 2. Teardown removes a node with its attachments and links. Muxers with a lifetime policy that sent to it are
        checked next.
Rule 3. A decision with more changes than a tick takes is made in parts. The rest is the command EndNodes, which is
        decided before any other command, in the state after the part before it.
Rule 4. If one event ends very many links, their effects are sent in parts too: the command EndLinks.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from msgspec.structs import replace

from ambermq.engine.commands import EndLinks, EndNodes, EndUnusedQueue
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.teardown import Teardown
from ambermq.engine.effects import ConsumerEnded, Effect, ProducersEnded, Unfinished
from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.events import Event, Moved, Published
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State

__all__ = ["END_DECISIONS", "context_after", "end_links", "end_nodes", "end_nodes_at_start"]

_ALL: Final = 1 << 62
"""A limit above any number of changes."""
_PART_MAX: Final = 125
"""The maximum changes of one part: the removal of an attachment or the end of a link counts as 16 messages."""


def end_nodes(
    state: State,
    nodes: Iterable[int],
    context: DecisionContext,
    *,
    closed: Collection[int] = (),
    deleted: Collection[int] = (),
    then: Iterable[Effect] = (),
    changes_max: int = 0,
) -> Decision:
    """Return the decision that ends those of `nodes` whose end has come; `state` is the state at the context's offset.

    `closed` are nodes whose creating link is gone; `deleted` are nodes to delete in any case. `then` are effects that
    leave when all is done. A part has `changes_max` changes, by default as many as a tick takes, and at most
    _PART_MAX. The rest is Unfinished, the last effect.
    """
    part = Teardown(state, context, changes_max or min(context.config.tick_changes_max, _PART_MAX))
    pending = deque(dict.fromkeys(nodes))
    while pending:
        node = pending[0]
        if _must_end(part.state, node, is_closed=node in closed, is_deleted=node in deleted) and (
            part.changes_left <= 0 or not part.remove(node)
        ):
            # `part.upstream` is empty here: a muxer with a lifetime policy gets into it when a node is removed whole.
            rest = EndNodes(tuple(dict.fromkeys(pending)), tuple(closed), tuple(deleted), tuple(then))
            return part.events, [*part.effects, Unfinished(rest)]
        pending.popleft()
        # A muxer is checked again even if it was checked before: only its present links count.
        pending += part.upstream
        part.upstream.clear()
    return part.events, [*part.effects, *then]


def end_nodes_at_start(state: State, context: DecisionContext, *, left: Collection[int]) -> list[Event]:
    """Return the events that end nodes at a start of the broker, when no link is left.

    `left` are the queues whose last consumer has gone with the broker. Queues that are not durable end with it, too.
    """
    ended = {queue for queue in left if state.queues[queue].settings.auto_delete}
    deleted = frozenset(ended.union(queue.id for queue in state.queues.values() if not queue.settings.durable))
    nodes = [queue.id for queue in state.queues.values() if queue.lifetime or queue.id in deleted]
    nodes += [muxer.id for muxer in state.muxers.values() if muxer.options.lifetime]
    return end_nodes(state, sorted(nodes), context, closed=frozenset(nodes), deleted=deleted, changes_max=_ALL)[0]


def end_links(links: EndLinks, context: DecisionContext) -> list[Effect]:
    """Return the effects that end links which are not in the state any more; beyond a tick the rest is Unfinished."""
    changes_max = min(context.config.tick_changes_max, _PART_MAX)
    consumers = links.consumers[:changes_max]
    producers = links.producers[: changes_max - len(consumers)]
    effects: list[Effect] = [ConsumerEnded(consumer, *links.why) for consumer in sorted(consumers)]
    if producers:
        effects.append(ProducersEnded(frozenset(producers), *links.why))
    left = links.consumers[len(consumers) :], links.producers[len(producers) :]
    return [*effects, Unfinished(EndLinks(*left, links.why, links.then))] if any(left) else [*effects, *links.then]


def context_after(context: DecisionContext, events: list[Event]) -> DecisionContext:
    """Return the context after events that publish nothing."""
    return replace(context, next_offset=context.next_offset + record_count(events))


def record_count(events: list[Event]) -> int:
    """Return how many records events are; a move and a publish have one for each message."""
    return sum([len(event.words) // WORD_BYTES if isinstance(event, (Moved, Published)) else 1 for event in events])


def with_queue_end(
    state: State, events: list[Event], queue: Queue, context: DecisionContext, effects: list[Effect]
) -> Decision:
    """Return events that may remove a queue's last message, and the end of the queue if its lifetime says so."""
    if not events or not queue.lifetime:
        return events, effects
    more, answers = end_nodes(fold(state, events), (queue.id,), context_after(context, events))
    return [*events, *more], [*effects, *answers]


def _end_nodes(state: State, command: EndNodes, context: DecisionContext) -> Decision:
    return end_nodes(state, command.nodes, context, closed=command.closed, deleted=command.deleted, then=command.then)


def _end_unused_queue(state: State, command: EndUnusedQueue, context: DecisionContext) -> Decision:
    queue = state.queues.get(command.queue)
    if queue is None or not command.is_unused(state, queue, state.elapsed_us(context.now_us)):
        return [], []
    return end_nodes(state, (queue.id,), context, deleted=(queue.id,))


def _end_links(_state: State, command: EndLinks, context: DecisionContext) -> Decision:
    return [], end_links(command, context)


def _must_end(state: State, node: int, *, is_closed: bool, is_deleted: bool) -> bool:
    """Return whether an existing queue or muxer must end: by its lifetime policy, or because it is deleted."""
    queue, muxer = state.queues.get(node), state.muxers.get(node)
    if queue is not None:
        lifetime, links, depth, is_used = queue.lifetime, queue.consumers, queue.depth, queue.published > 0
    elif muxer is not None:
        # A topic holds no message, and its subscriptions count as links.
        lifetime, links, depth, is_used = muxer.options.lifetime, len(muxer.attachments), 0, False
    else:
        return False
    if is_deleted:
        return True
    links += len(state.links.get(node, ()))
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


END_DECISIONS: dict[type, Callable[[State, Any, DecisionContext], Decision]] = {
    EndNodes: _end_nodes,
    EndUnusedQueue: _end_unused_queue,
    EndLinks: _end_links,
}
