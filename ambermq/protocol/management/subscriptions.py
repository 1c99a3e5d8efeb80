"""Subscriptions at the `$management` node: requests of type `org.ambermq.subscription` become commands.

Rule 1. A receiver that attaches to a topic creates the subscription, so there is no CREATE.
Rule 2. A name is the name of the subscription or of its queue. If several subscriptions have it, `container` selects.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ambermq.engine.commands import Command, DeleteSubscription, Inspect
from ambermq.engine.decide.delete_subscription import subscription_named
from ambermq.engine.errors import Refused
from ambermq.engine.model.state import State
from ambermq.protocol.management.paging import page_of, query_window
from ambermq.protocol.management.request_fields import flag_field, name_property
from ambermq.protocol.management.sorted_ids import Orders

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
    """Return the attributes of the subscription whose queue has this id; the counts are those of the queue."""
    subscription, queue = state.subscriptions[queue_id], state.queues[queue_id]
    values = (
        subscription.name,
        queue.id,
        queue.name,
        subscription.container,
        subscription.topic,
        subscription.selector or None,
        not subscription.is_volatile,
        subscription.is_shared,
        subscription.is_no_local,
        queue.consumers,
        queue.available,
        queue.acquired_count,
        queue.size,
        queue.published,
    )
    return dict(zip(SUBSCRIPTION_ATTRIBUTES, values, strict=True))


def _read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return Inspect(request, partial(_subscription, name_property(properties, _NOUN), _container(properties)))


def _subscription(name: str, container: str | None, state: State) -> dict[str, Any]:
    return subscription_attributes(state, subscription_named(state, name, container))


def _delete(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    return DeleteSubscription(
        request,
        name_property(properties, _NOUN),
        _container(properties),
        flag_field(properties, "force"),
        request.authorize_deletion,
    )


def _container(properties: Mapping[str, Any]) -> str | None:
    container = properties.get("container")
    if container is None or isinstance(container, str):
        return container
    raise Refused("amqp:invalid-field", f"`container` must be a container id, found {container!r:.80}")


def _query(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    orders: Orders = request.orders
    return Inspect(request, partial(_page, orders, *query_window(properties, body, _NOUN, results_max)))


def _page(orders: Orders, offset: int, count: int, names: tuple[str, ...], state: State) -> dict[str, Any]:
    ids = orders.subscriptions(state)
    rows = (subscription_attributes(state, one) for one in ids[offset : offset + count])
    return page_of(rows, len(ids), names, SUBSCRIPTION_ATTRIBUTES)


SUBSCRIPTION_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "READ": _read,
    "DELETE": _delete,
    "QUERY": _query,
}
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
