"""What a redrive, a move or a copy would do: how many messages would go to each queue, and how many would stay.

Rule. Each queue is asked once for its room. What its consumers hold counts for `bytes_max` here, though not for the
      broker: so a plan may show less room than there is, and never more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

from ambermq.engine.address import queue_name
from ambermq.engine.errors import Refused
from ambermq.tools.client.management_client import RequestRefused
from ambermq.tools.dead_letters.message_moves import MessageMoves

__all__ = ["MovePlan", "planned_moves", "queue_at"]

_NAME_BYTES_MAX = 1 << 20
_WAITING = ("available", "undeliverable", "delayed", "scheduled")


class MovePlan(NamedTuple):
    """The messages that would go, and those that would stay."""

    targets: Counter[str]
    """How many would go to each queue."""
    no_room: int = 0
    no_origin: int = 0

    @property
    def moved(self) -> int:
        """How many would go."""
        return sum(self.targets.values())


class _Room:
    """The room of one queue, for the messages that come to it."""

    def __init__(self, queue: Mapping[str, Any]) -> None:
        waiting = sum(int(queue.get(name) or 0) for name in _WAITING)
        self._count = queue["messages_max"] - waiting if queue.get("messages_max") else inf
        self._bytes = queue["bytes_max"] - int(queue.get("bytes") or 0) if queue.get("bytes_max") else inf

    def take(self, size: int) -> bool:
        """Return whether one more message has room, and use that room."""
        if self._count < 1 or self._bytes < size:
            return False
        self._count -= 1
        self._bytes -= size
        return True


def planned_moves(requests: MessageMoves, name: str, rows: Iterable[Mapping[str, Any]], to: str = "") -> MovePlan:
    """Return what would become of found messages of a queue; without `to` each would go back to where it came from."""
    rooms: dict[str, _Room | None] = {}
    plan = MovePlan(Counter())
    no_room = no_origin = 0
    for row in rows:
        target = queue_at(to) if to else str(row.get("source") or "")
        if target not in rooms:
            rooms[target] = _room_of(requests, target) if target not in ("", name) else None
        room = rooms[target]
        if room is None:
            no_origin += 1
        elif room.take(int(row.get("bytes") or 0)):
            plan.targets[target] += 1
        else:
            no_room += 1
    return plan._replace(no_room=no_room, no_origin=no_origin)


def queue_at(address: str) -> str:
    """Return the name of the queue that an address names; the address itself for another node."""
    try:
        return queue_name(address, name_bytes_max=_NAME_BYTES_MAX)
    except Refused:
        return address


def _room_of(requests: MessageMoves, name: str) -> _Room | None:
    """Return the room of a queue; None if there is no such queue."""
    try:
        return _Room(requests.attributes_of(name))
    except RequestRefused as refused:
        if refused.status != 404:
            raise
        return None
