"""The suspended links of all virtual hosts, as rows of the type `org.ambermq.link`.

Rule 1. The name of one is `suspended`, its virtual host and its number in that, such as `suspended.default.4711`. It
        has no connection.
Rule 2. What passed it is not known any more. `until_us` is the time of its end; null while its session or connection
        lasts.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ambermq.engine.address import queue_address
from ambermq.engine.model.state import State
from ambermq.engine.model.suspended_link import SuspendedLink
from ambermq.protocol.amqp10.memory_budget import suspended_bytes
from ambermq.protocol.management.peers.listing import Row

__all__ = ["SUSPENDED", "suspended_name", "suspended_rows"]

SUSPENDED: Final = "suspended"
"""The state of such a link, and the first part of its name."""


def suspended_rows(states: Iterable[tuple[str, State]]) -> Iterator[tuple[str, Row]]:
    """Yield the names and rows of the suspended links of virtual hosts, the oldest first."""
    for vhost, state in states:
        for number in sorted(state.suspended) if state.suspended else ():
            link = state.suspended[number]
            yield _name(vhost, number), lambda vhost=vhost, state=state, link=link: _row(vhost, state, link)  # type: ignore[misc]


def suspended_name(name: str) -> tuple[str, int] | None:
    """Return the virtual host and the number of the suspended link of a name; None for a name of another link."""
    first, _, rest = name.partition(".")
    vhost, _, number = rest.rpartition(".")
    return (vhost, int(number)) if first == SUSPENDED and number.isascii() and number.isdigit() else None


def _name(vhost: str, number: int) -> str:
    return f"{SUSPENDED}.{vhost}.{number}"


def _row(vhost: str, state: State, link: SuspendedLink) -> dict[str, Any]:
    queue = state.queues.get(link.queue)
    return {
        "name": _name(vhost, link.id),
        "connection": None,
        "session": None,
        "link": link.link,
        "role": "consumer" if link.is_receiver else "producer",
        "address": None if queue is None else queue_address(queue.name),
        "queue": None if queue is None else queue.name,
        "peer": None,
        "user": link.user or None,
        "container": link.container,
        "vhost": vhost,
        "state": SUSPENDED,
        "credit": 0,
        "unsettled": link.held,
        "messages": 0,
        "bytes": 0,
        "memory_bytes": suspended_bytes(1, link.held),
        "until_us": link.until_us + state.stepped_us if link.until_us else None,
    }
