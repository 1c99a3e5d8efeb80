"""The timers of queues with `expires_ms`, which end when they were not used for so long.

A use is a link that receives, browses or sends to the address of the queue, a publish, and a management request that
reads or declares it. A link is a use until it ends.

Rule 1. A use only notes its time: the timer of the queue is set anew when it is due.
Rule 2. A queue with a link has no timer after it was due. The end of the link sets one. So nothing polls.
Rule 3. All of it is volatile. A start counts as a use of each queue.
"""

from typing import Any, Final, final

from ambermq.engine.loop.timers.timer_heap import TimerHeap
from ambermq.engine.model.muxer import QUEUE_MUXER
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import Producer, State

__all__ = ["UnusedQueues"]

_RETRY_US: Final = 1_000_000
"""A queue whose end was asked for is looked at again after so long, in case that it was used meanwhile."""


@final
class UnusedQueues:
    """The queues of one virtual host that end without use. All times are elapsed times in microseconds."""

    __slots__ = ("_browsers", "_senders", "_timers", "used_us")

    def __init__(self) -> None:
        self.used_us: dict[int, int] = {}
        """The last use of each queue with `expires_ms`."""
        self._timers = TimerHeap()
        """By queue."""
        self._senders: dict[str, int] = {}
        """The number of producers by the name of the queue that their address names."""
        self._browsers: dict[int, int] = {}
        """The number of browsing links by queue."""

    @property
    def next_us(self) -> int:
        """The time of the next look; FOREVER_US without one."""
        return self._timers.next_us

    def configure(self, queue: Queue, now_us: int) -> None:
        """Begin or end the timer of a queue whose settings are new."""
        self._forget_timer(queue.id)
        if queue.settings.expires_ms:
            self.used_us[queue.id] = now_us
            self._timers.add(queue.id, now_us + 1000 * queue.settings.expires_ms)

    def note_use(self, queue: Queue | None, now_us: int) -> None:
        """Note a use, or the end of a link."""
        if queue is not None and queue.id in self.used_us:
            self.used_us[queue.id] = now_us
            if queue.id not in self._timers:
                self._timers.add(queue.id, now_us + 1000 * queue.settings.expires_ms)

    def note_publish(self, queue: int, now_us: int) -> None:
        """Note a publish; a queue without a timer has a link, whose end sets one."""
        if queue in self.used_us:
            self.used_us[queue] = now_us

    def attach_producer(self, state: State, producer: Producer) -> None:
        """Count a producer if its address names a queue. One of a dynamic node is in the state's links."""
        if producer.destination and not producer.node and producer.muxer == state.muxer_names.get(QUEUE_MUXER):
            self._senders[producer.destination] = self._senders.get(producer.destination, 0) + 1

    def detach_producer(self, state: State, producer: Producer, now_us: int) -> None:
        """Count a producer no more; its end is a use of the queue."""
        if producer.node:
            self.note_use(state.queues.get(producer.node), now_us)
        elif producer.destination and producer.muxer == state.muxer_names.get(QUEUE_MUXER):
            _subtract(self._senders, producer.destination)
            if self.used_us:
                self.note_use(state.queue_named(producer.destination), now_us)

    def browse(self, queue: int, count: int) -> None:
        """Add to the number of the links that browse a queue."""
        if count > 0:
            self._browsers[queue] = self._browsers.get(queue, 0) + count
        else:
            _subtract(self._browsers, queue)

    def forget(self, queue: int) -> None:
        """Forget a queue that is gone. Its senders may wait for another one of its name."""
        self._forget_timer(queue)
        self._browsers.pop(queue, None)

    def clear(self) -> None:
        """Forget everything: the virtual host was reset."""
        self._timers.clear()
        for table in (self.used_us, self._senders, self._browsers):
            table.clear()

    def is_unused(self, state: State, queue: Queue, now_us: int) -> bool:
        """Return whether a queue was not used for as long as its settings say."""
        expires_us = 1000 * queue.settings.expires_ms
        used_us = self.used_us.get(queue.id, now_us)
        is_late = 0 < expires_us <= now_us - used_us
        return is_late and not queue.scheduled.count and not self._has_links(state, queue)

    def take(self, state: State, now_us: int, count_max: int) -> list[int]:
        """Return queues that were not used for so long, after a look at no more than `count_max`.

        If there are more, the next look is due still.
        """
        found: list[int] = []
        while count_max > 0 and (queue_id := self._timers.pop_due(now_us)) is not None:
            count_max -= 1
            queue = state.queues.get(queue_id)
            if queue is None or self._has_links(state, queue):
                continue
            if queue.scheduled.count:
                # A scheduled message uses its queue.
                self.used_us[queue_id] = now_us
            if self.is_unused(state, queue, now_us):
                found.append(queue_id)
                self._timers.add(queue_id, now_us + _RETRY_US)
            else:
                self._timers.add(queue_id, self.used_us[queue_id] + 1000 * queue.settings.expires_ms)
        return found

    def _has_links(self, state: State, queue: Queue) -> bool:
        if queue.consumers or queue.id in self._browsers:
            return True
        return queue.id in state.links if queue.lifetime else queue.name in self._senders

    def _forget_timer(self, queue: int) -> None:
        self.used_us.pop(queue, None)
        self._timers.remove(queue)


def _subtract(counts: dict[Any, int], key: str | int) -> None:
    left = counts.get(key, 0) - 1
    if left > 0:
        counts[key] = left
    else:
        counts.pop(key, None)
