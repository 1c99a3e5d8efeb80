"""The queues of a state as `ambermq queue` shows them, with the attributes of `$management`."""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ambermq.engine.address import queue_name
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.protocol.management.queues import queue_attributes
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.near_names import near_advice

__all__ = ["no_such_queue", "queue_of", "queue_row", "queue_rows"]


def queue_rows(state: State) -> Iterator[dict[str, Any]]:
    """Yield the attributes of every queue, the oldest first."""
    consumers = Counter(consumer.queue for consumer in state.consumers.values())
    for queue_id in sorted(state.queues.keys()):
        queue = state.queues[queue_id]
        yield queue_attributes(queue, consumers[queue_id], suspended=state.suspended_count(queue))


def queue_row(state: State, name: str) -> dict[str, Any]:
    """Return the attributes of one queue; raise ToolError if the state has no queue of the name."""
    queue = queue_of(state, name)
    consumers = sum(consumer.queue == queue.id for consumer in state.consumers.values())
    return queue_attributes(queue, consumers, suspended=state.suspended_count(queue))


def queue_of(state: State, name: str) -> Queue:
    """Return a queue by its name or address; raise ToolError if the state has none."""
    queue = state.queue_named(queue_name(name, name_bytes_max=sys.maxsize))
    if queue is None:
        near = near_advice(name, [one for one in state.queue_names if not one.startswith("$")])
        raise no_such_queue(name, f"at {iso_time(state.time_us)}", near)
    return queue


def no_such_queue(name: str, when: str, advice: str = "") -> ToolError:
    """Return the error for a name that no queue had."""
    return ToolError(f"no such queue {when}", where=name, advice=advice, code=ExitCode.NOT_FOUND)
