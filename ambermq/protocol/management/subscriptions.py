"""The subscriptions in the broker's `$management` node: what requests of type `org.ambermq.subscription` become.

Rule 1. They are made by receivers that attach to a topic, so there is no CREATE.
Rule 2. A name is that of the subscription or of its queue; where several have it, `container` says which one is meant.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ambermq.engine.commands import Command, DeleteSubscription, Inspect
from ambermq.engine.decide.delete_subscription import subscription_named
from ambermq.engine.errors import Refused
from ambermq.engine.model.state import State
from ambermq.protocol.management.paging import asked_window, page_of
from ambermq.protocol.management.request_fields import asked_flag, asked_name
from ambermq.protocol.management.sorted_ids import SortedIds

__all__ = [
    "SUBSCRIPTION_ATTRIBUTES",
    "SUBSCRIPTION_OPERATIONS",
    "SUBSCRIPTION_TYPE",
    "subscription_attributes",
]

SUBSCRIPTION_TYPE: Final = "org.ambermq.subscription"
_NOUN: Final = "subscription"
SUBSCRIPTION_ATTRIBUTES: Final = (
    "name",
    "id",
    "queue",
    "container",
    "topic",
    "selector",
    "durable",
    "shared",
    "no_local",
    "consumers",
    "available",
    "acquired",
    "bytes",
    "published",
)


def subscription_attributes(state: State, queue_id: int) -> dict[str, Any]:
    """Return what `$management` says of a subscription, by the id of its queue, whose counts it has."""
    one, queue = state.subscriptions[queue_id], state.queues[queue_id]
    values = (
        one.name,
        queue.id,
        queue.name,
        one.container,
        one.topic,
        one.selector or None,
        not one.is_volatile,
        one.is_shared,
        one.is_no_local,
        queue.consumers,
        queue.available,
        queue.acquired_count,
        queue.size,
        queue.published,
    )
    return dict(zip(SUBSCRIPTION_ATTRIBUTES, values, strict=True))


def _read(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return Inspect(request, partial(_subscription, asked_name(asked, _NOUN), _container(asked)))


def _subscription(name: str, container: str | None, state: State) -> dict[str, Any]:
    return subscription_attributes(state, subscription_named(state, name, container))


def _delete(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    return DeleteSubscription(request, asked_name(asked, _NOUN), _container(asked), asked_flag(asked, "force"))


def _container(asked: Mapping[str, Any]) -> str | None:
    container = asked.get("container")
    if container is None or isinstance(container, str):
        return container
    raise Refused("amqp:invalid-field", f"`container` must be the name of one, found {container!r:.80}")


def _query(request: Any, asked: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    orders = request.peer.gateway.orders
    return Inspect(request, partial(_page, orders, *asked_window(asked, body, _NOUN, results_max)))


def _page(orders: SortedIds, offset: int, count: int, names: tuple[str, ...], state: State) -> dict[str, Any]:
    ids = orders.subscriptions(state)
    rows = (subscription_attributes(state, one) for one in ids[offset : offset + count])
    return page_of(rows, len(ids), names, SUBSCRIPTION_ATTRIBUTES)


SUBSCRIPTION_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "READ": _read,
    "DELETE": _delete,
    "QUERY": _query,
}
"""Operation to what makes its command of request, application properties, body, and the most results of a page."""
