"""What ends: nodes that have an end, and whatever somebody deletes.

Rule 1. A node with an end is looked at where something happens that may be it: a link goes, the last message goes, the
        broker starts. Nothing is looked for.
Rule 2. What goes with it is dismantling.py's. What passed on to it and has an end is looked at next.
Rule 3. What is more than a tick takes goes in parts. The rest is a command, EndNodes: decided next, before any other,
        and in the state that the part before it has left.
Rule 4. Links that went all at once, by one event, are told in parts as well: the command EndLinks.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from msgspec.structs import replace

from ambermq.engine.commands import EndLinks, EndNodes
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.teardown import Teardown
from ambermq.engine.effects import ConsumerEnded, Effect, ProducersEnded, Unfinished
from ambermq.engine.events import Event
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.state import State

__all__ = ["END_DECISIONS", "context_after", "end_links", "end_nodes", "end_nodes_at_start"]

_ALL: Final = 1 << 62
"""More changes than there can be."""


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
    """Return what ends of queues and muxers that something happened to; `state` is that at the offset of `context`.

    `closed` are those whose own link, which had them made, is gone; `deleted` are deleted in any case. `then`
    is what leaves when all is done. A part is `changes_max` changes, by default those that a tick takes; what is more
    is Unfinished, the last of the effects.
    """
    part = Teardown(state, context, changes_max or context.config.tick_changes_max)
    ahead = deque(dict.fromkeys(nodes))
    while ahead:
        node = ahead[0]
        if _is_over(part.state, node, is_closed=node in closed, is_deleted=node in deleted) and (
            part.changes_left <= 0 or not part.take(node)
        ):
            # None is left that is not ahead: who passes on and has an end does so by what goes with a core.
            rest = EndNodes(tuple(dict.fromkeys(ahead)), tuple(closed), tuple(deleted), tuple(then))
            return part.events, [*part.effects, Unfinished(rest)]
        ahead.popleft()
        # Though looked at already: each lives by the links that it has now.
        ahead += part.left
        part.left.clear()
    return part.events, [*part.effects, *then]


def end_nodes_at_start(state: State, context: DecisionContext) -> list[Event]:
    """Return what ends when the broker starts: no link is left, and none of before comes back."""
    nodes = [queue.id for queue in state.queues.values() if queue.lifetime]
    nodes += [muxer.id for muxer in state.muxers.values() if muxer.options.lifetime]
    return end_nodes(state, sorted(nodes), context, closed=frozenset(nodes), changes_max=_ALL)[0]


def end_links(links: EndLinks, context: DecisionContext) -> list[Effect]:
    """Return what tells of links that are gone already, as many as a tick takes; the rest is Unfinished."""
    changes_max = context.config.tick_changes_max
    consumers = links.consumers[:changes_max]
    producers = links.producers[: changes_max - len(consumers)]
    effects: list[Effect] = [ConsumerEnded(consumer, *links.why) for consumer in sorted(consumers)]
    if producers:
        effects.append(ProducersEnded(frozenset(producers), *links.why))
    left = links.consumers[len(consumers) :], links.producers[len(producers) :]
    return [*effects, Unfinished(EndLinks(*left, links.why, links.then))] if any(left) else [*effects, *links.then]


def context_after(context: DecisionContext, events: list[Event]) -> DecisionContext:
    """Return the context after events of one record each."""
    return replace(context, next_offset=context.next_offset + len(events))


def _end_nodes(state: State, command: EndNodes, context: DecisionContext) -> Decision:
    return end_nodes(state, command.nodes, context, closed=command.closed, deleted=command.deleted, then=command.then)


def _end_links(_state: State, command: EndLinks, context: DecisionContext) -> Decision:
    return [], end_links(command, context)


def _is_over(state: State, node: int, *, is_closed: bool, is_deleted: bool) -> bool:
    """Return whether a queue or muxer that is there is to go: it has come to its end, or is deleted."""
    queue, muxer = state.queues.get(node), state.muxers.get(node)
    if queue is not None:
        lifetime, links, depth, is_used = queue.lifetime, queue.consumers, queue.depth, queue.published > 0
    elif muxer is not None:
        # A topic holds no message, and its links are the subscriptions.
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
    EndLinks: _end_links,
}
