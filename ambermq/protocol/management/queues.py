"""Queues at the `$management` node: requests of type `org.ambermq.queue` become commands.

Rule 1. A name is an address, as in the source and target of a link.
Rule 2. The queue template gives each setting that CREATE leaves out. The request names the template, or the first
        template whose pattern matches the queue's name is used.
Rule 3. UPDATE keeps each setting that it leaves out. Counts are read-only.
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ambermq.engine.address import queue_name
from ambermq.engine.commands import Command, DeclareQueue, DeleteQueue, Inspect, PurgeQueue, UpdateQueue
from ambermq.engine.errors import EngineError, Refused
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_template import QueueTemplates
from ambermq.engine.model.state import State
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.settings.setting_table import SETTINGS, changed_settings, values_of_settings
from ambermq.protocol.management.paging import Window, page_of, query_window
from ambermq.protocol.management.request_fields import (
    flag_field,
    is_number,
    name_property,
    refuse_read_only,
    refuse_unknown,
)
from ambermq.protocol.management.sorted_ids import Orders

__all__ = ["QUEUE_ATTRIBUTES", "QUEUE_OPERATIONS", "QUEUE_TYPE", "queue_attributes"]

QUEUE_TYPE: Final = "org.ambermq.queue"
_NOUN: Final = "queue"

QUEUE_ATTRIBUTES: Final = (
    "name",
    "id",
    "available",
    "acquired",
    "suspended",
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
    "discarded",
    "undeliverable",
    "delayed",
    "scheduled",
    "dead_lettered",
    "moved",
    "duplicates",
    *SETTINGS,
    "template",
    "oldest_age_us",
)


def queue_attributes(
    queue: Queue, consumers: int, oldest_age_us: int | None = None, *, suspended: int = 0
) -> dict[str, Any]:
    """Return the attributes of a queue: counts in messages, and the bytes of the messages on the queue.

    `suspended` are those of the acquired messages that suspended links hold.
    `oldest_age_us` is the age of the oldest message that waits; None if it is not known, as for the past.
    """
    counters = queue.counters
    values = (
        queue.name,
        queue.id,
        queue.available,
        queue.acquired_count,
        suspended,
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
        counters.discarded,
        queue.aside.count,
        queue.delayed.count,
        queue.scheduled.count,
        counters.dead_lettered,
        counters.moved,
        counters.duplicates,
        *values_of_settings(queue.settings).values(),
        queue.settings.template,
        oldest_age_us,
    )
    return dict(zip(QUEUE_ATTRIBUTES, values, strict=True))


def _create(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN, *SETTINGS, "template")
    name = name_property(properties, _NOUN)
    config = request.peer.gateway.engine.config
    settings = _settings(queue_name(name, name_bytes_max=sys.maxsize), body, config.templates)
    request.status = 201
    return DeclareQueue(request, name, settings)


def _settings(name: str, body: Mapping[str, Any], templates: QueueTemplates) -> Settings:
    """Return the settings that a CREATE asks for. The engine refuses an unknown template."""
    template_name = _template_name(body)
    template = templates.for_queue(name) if template_name is None else templates.named(template_name)
    settings = Settings(str(template_name)) if template is None else template.settings
    try:
        return changed_settings(settings, _changes(body))
    except EngineError as error:
        raise Refused("amqp:invalid-field", str(error)) from error


def _changes(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in a body. Whole numbers of AMQP have types of their own."""
    values = {name: body[name] for name in SETTINGS if name in body}
    return {name: int(one) if is_number(one) else one for name, one in values.items()}


def _template_name(body: Mapping[str, Any]) -> str | None:
    name = body.get("template")
    if name is not None and not isinstance(name, str):
        raise Refused("amqp:invalid-field", f"'template' must be the name of a template, found {name!r:.80}")
    return None if name is None else str(name)


def _update(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_read_only(body, _NOUN, *SETTINGS, "template")
    name = name_property(properties, _NOUN)
    template = _template_name(body)
    read = partial(_queue_of, queue_name(name, name_bytes_max=sys.maxsize))
    return UpdateQueue(request, name, read, _changes(body), template)


def _read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    # Only the command that creates a queue checks the length of its name.
    name, age_us = queue_name(name_property(properties, _NOUN), name_bytes_max=sys.maxsize), request.peer.gateway.age_us
    return Inspect(request, lambda state: _queue_of(name, state, age_us), name)


def _queue_of(
    name: str, state: State, age_us: Callable[[Queue], int | None] = lambda _queue: None
) -> dict[str, Any] | None:
    queue = state.queue_named(name)
    if queue is None:
        return None
    return queue_attributes(queue, queue.consumers, age_us(queue), suspended=state.suspended_count(queue))


def _delete(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    return DeleteQueue(
        request,
        name_property(properties, _NOUN),
        flag_field(properties, "if-unused"),
        flag_field(properties, "if-empty"),
    )


def _purge(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return PurgeQueue(request, name_property(properties, _NOUN), flag_field(properties, "scheduled"))


def _query(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    orders: Orders = request.orders
    window = query_window(properties, body, _NOUN, results_max)
    return Inspect(request, partial(_page, orders, request.peer.gateway.age_us, window))


def _page(orders: Orders, age_us: Callable[[Queue], int | None], window: Window, state: State) -> dict[str, Any]:
    offset, count, names = window
    # The order is by id, which never changes: so a client that reads page by page gets each queue once.
    ids = orders.queues(state)
    rows = (
        queue_attributes(queue, queue.consumers, age_us(queue), suspended=state.suspended_count(queue))
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
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
