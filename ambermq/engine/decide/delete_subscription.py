"""The decision on the deletion of a subscription, and the search for a subscription by name.

Rule 1. A name is the name of the subscription, or of its queue, which is unique. If several subscriptions have the
        name, the command must also give the container, or the name of the queue.
Rule 2. A subscription with receivers is deleted only with `force`; its receivers are ended then.
"""

from collections.abc import Callable
from typing import Any

from ambermq.engine.commands import DeleteSubscription
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import end_nodes
from ambermq.engine.effects import Answered
from ambermq.engine.errors import Refused
from ambermq.engine.model.state import State

__all__ = ["SUBSCRIPTION_DECISIONS", "subscription_named"]

_QUEUES_NAMED_MAX = 5


def subscription_named(state: State, name: str, container: str | None = None) -> int:
    """Return the queue of a subscription; with `container` only its subscriptions are searched.

    Raises Refused: amqp:not-found, or amqp:precondition-failed if several subscriptions have the name.
    """
    queue = state.queue_names.get(name)
    if queue is not None and queue in state.subscriptions:
        return queue
    found = sorted(
        queue
        for queue, one in state.subscriptions.items()
        if one.name == name and (container is None or one.container == container)
    )
    if len(found) == 1:
        return found[0]
    whose = "" if container is None else f" of container {container!r:.80}"
    if not found:
        raise Refused("amqp:not-found", f"no subscription {name!r:.80}{whose}")
    queues = ", ".join(state.queues[queue].name for queue in found[:_QUEUES_NAMED_MAX])
    more = f" and {len(found) - _QUEUES_NAMED_MAX} more" if len(found) > _QUEUES_NAMED_MAX else ""
    raise Refused("amqp:precondition-failed", f"{name!r:.80}{whose} means {len(found)} subscriptions: {queues}{more}")


def _delete_subscription(state: State, command: DeleteSubscription, context: DecisionContext) -> Decision:
    queue = state.queues[subscription_named(state, command.name, command.container)]
    if command.authorize is not None:
        command.authorize(state.subscriptions[queue.id])
    if queue.consumers and not command.force:
        name = state.subscriptions[queue.id].name
        raise Refused("amqp:precondition-failed", f"subscription {name!r:.80} has {queue.consumers} receivers")
    answer = Answered(command.key, {"messages": queue.depth})
    return end_nodes(state, (queue.id,), context, deleted=(queue.id,), then=(answer,))


SUBSCRIPTION_DECISIONS: dict[type, Callable[[State, Any, DecisionContext], Decision]] = {
    DeleteSubscription: _delete_subscription
}
