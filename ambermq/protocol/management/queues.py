"""The queues in the broker's `$management` node: what requests of type `org.ambermq.queue` become.

Rule 1. A name is an address here too, as a client's is.
Rule 2. What CREATE does not say is what the queue's template says: that which is named, else that of the queue's name.
Rule 3. What UPDATE does not say stays as it is; what a queue counts is not said.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ambermq.engine.address import queue_name
from ambermq.engine.commands import Command, DeclareQueue, DeleteQueue, Inspect, PurgeQueue, UpdateQueue
from ambermq.engine.errors import Refused
from ambermq.engine.model.queue import Queue, Settings
from ambermq.engine.model.queue_template import QueueTemplates
from ambermq.engine.model.state import State
from ambermq.protocol.management.paging import asked_window, page_of
from ambermq.protocol.management.request_fields import (
    asked_flag,
    asked_name,
    asked_number,
    refuse_unknown,
    refuse_unsaid,
)
from ambermq.protocol.management.sorted_ids import SortedIds

__all__ = ["QUEUE_ATTRIBUTES", "QUEUE_OPERATIONS", "QUEUE_TYPE", "queue_attributes"]

QUEUE_TYPE: Final = "org.ambermq.queue"
_NOUN: Final = "queue"

QUEUE_ATTRIBUTES: Final = (
    "name",
    "id",
    "available",
    "acquired",
    "consumers",
    "bytes",
    "published",
    "delivered",
    "accepted",
    "rejected",
    "released",
    "failed",
    "purged",
    "damaged",
    "messages_max",
    "template",
)


def queue_attributes(queue: Queue, consumers: int) -> dict[str, Any]:
    """Return what `$management` says of a queue: counts in messages, `bytes` those of the messages on it."""
    counters = queue.counters
    values = (
        queue.name,
        queue.id,
        queue.available,
        queue.acquired_count,
        consumers,
        queue.size,
        queue.published,
        queue.delivered,
        queue.accepted,
        counters.rejected,
        counters.released,
        counters.failed,
        counters.purged,
        counters.damaged,
        queue.settings.messages_max,
        queue.settings.template,
    )
    return dict(zip(QUEUE_ATTRIBUTES, values, strict=True))


def _create(request: Any, asked: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN, "messages_max", "template")
    name = asked_name(asked, _NOUN)
    config = request.peer.gateway.engine.config
    settings = _settings(queue_name(name, name_bytes_max=sys.maxsize), body, config.templates)
    request.status = 201
    return DeclareQueue(request, name, settings)


def _settings(name: str, body: Mapping[str, Any], templates: QueueTemplates) -> Settings:
    """Return what a queue is asked to be made with. An unknown template is the engine's to refuse."""
    named = _template_named(body)
    template = templates.for_queue(name) if named is None else templates.named(named)
    settings = Settings(str(named)) if template is None else template.settings
    return replace(settings, messages_max=asked_number(body, "messages_max", settings.messages_max))


def _template_named(body: Mapping[str, Any]) -> str | None:
    named = body.get("template")
    if named is not None and not isinstance(named, str):
        raise Refused("amqp:invalid-field", f"'template' must be the name of one, found {named!r:.80}")
    return None if named is None else str(named)


def _update(request: Any, asked: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unsaid(body, _NOUN, "messages_max", "template")
    name = asked_name(asked, _NOUN)
    template = _template_named(body)
    messages_max = None if body.get("messages_max") is None else asked_number(body, "messages_max", 0)
    read = partial(_queue_of, queue_name(name, name_bytes_max=sys.maxsize))
    return UpdateQueue(request, name, read, messages_max, template)


def _read(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    # How long a name may be is asked where queues are made.
    return Inspect(request, partial(_queue_of, queue_name(asked_name(asked, _NOUN), name_bytes_max=sys.maxsize)))


def _queue_of(name: str, state: State) -> dict[str, Any] | None:
    queue = state.queue_named(name)
    if queue is None:
        return None
    return queue_attributes(queue, sum(consumer.queue == queue.id for consumer in state.consumers.values()))


def _delete(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    return DeleteQueue(request, asked_name(asked, _NOUN), asked_flag(asked, "if-unused"), asked_flag(asked, "if-empty"))


def _purge(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return PurgeQueue(request, asked_name(asked, _NOUN))


def _query(request: Any, asked: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    orders = request.peer.gateway.orders
    return Inspect(request, partial(_page, orders, *asked_window(asked, body, _NOUN, results_max)))


def _page(orders: SortedIds, offset: int, count: int, names: tuple[str, ...], state: State) -> dict[str, Any]:
    # Queues are listed by id, which never changes: a client that pages sees each of them once.
    ids = orders.queues(state)
    rows = (
        queue_attributes(queue, queue.consumers)
        for one in ids[offset : offset + count]
        for queue in (state.queues[one],)
    )
    return page_of(rows, len(ids), names, QUEUE_ATTRIBUTES)


QUEUE_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "CREATE": _create,
    "READ": _read,
    "UPDATE": _update,
    "DELETE": _delete,
    "PURGE": _purge,
    "QUERY": _query,
}
"""Operation to what makes its command of request, application properties, body, and the most results of a page."""
