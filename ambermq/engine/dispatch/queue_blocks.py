"""The queues whose producers get no credit, because they are full and have the policy `block`.

Rule 1. A queue is blocked at a maximum, and open again at 80 % of each. In between it stays as it is.
Rule 2. Only queues with the policy are watched, and only those that an event of the tick names are looked at.
Rule 3. It is volatile: it follows from the state, so the first tick after a start finds it again.
"""

from typing import Final, final

from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import QueueBlocked
from ambermq.engine.events import Event, Reset
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.engine.settings.queue_settings import BLOCK, Settings

__all__ = ["QueueBlocks"]

_OPEN_PERCENT: Final = 80


@final
class QueueBlocks:
    """The queues with the policy `block` of one virtual host."""

    def __init__(self) -> None:
        self.watched: dict[int, str] = {}
        """The names of the queues with the policy, by id."""
        self._blocked: set[int] = set()
        self.due: set[int] = set()
        """The queues that may have changed."""

    def start(self, state: State) -> None:
        """Watch the queues of a state."""
        for queue in state.queues.values():
            self.configure(queue, queue.settings)

    def configure(self, queue: Queue, settings: Settings) -> None:
        """Watch a queue if its settings say so."""
        if settings.overflow == BLOCK:
            self.watched[queue.id] = queue.name
        if queue.id in self.watched:
            self.due.add(queue.id)

    def note(self, event: Event) -> None:
        """Note the queues that an event may have changed."""
        if type(event) is Reset:
            self.due.update(self.watched)
            return
        for field in ("queue", "source"):
            queue = getattr(event, field, 0)
            if queue in self.watched:
                self.due.add(queue)
        for field in ("queues", "targets"):
            self.due.update([queue for queue in getattr(event, field, ()) if queue in self.watched])

    def changes(self, state: State, config: EngineConfig) -> list[QueueBlocked]:
        """Return the effects of the queues that are blocked or open now, and were not before."""
        effects: list[QueueBlocked] = []
        for queue_id in sorted(self.due):
            queue, name, is_blocked = state.queues.get(queue_id), self.watched[queue_id], queue_id in self._blocked
            is_watched = queue is not None and queue.settings.overflow == BLOCK
            if not is_watched:
                del self.watched[queue_id]
            percent = _OPEN_PERCENT if is_blocked else 100
            is_full = is_watched and queue is not None and _is_above(queue, percent, config)
            if is_full is is_blocked:
                continue
            effects.append(QueueBlocked(name, is_full))
            if is_full:
                self._blocked.add(queue_id)
            else:
                self._blocked.discard(queue_id)
        self.due.clear()
        return effects


def _is_above(queue: Queue, percent: int, config: EngineConfig) -> bool:
    """Return whether a queue is at its maximum, or above a part of it below 100 percent."""
    settings, least = queue.settings, 0 if percent == 100 else 1
    if 100 * queue.waiting >= percent * (settings.messages_max or config.queue_messages_max) + least:
        return True
    return bool(settings.bytes_max) and 100 * queue.waiting_size >= percent * settings.bytes_max + least
