"""The room of queues for a run of messages, and the overflow policy of those that lack room.

Rule 1. A maximum counts the messages that wait, not those that consumers hold.
Rule 2. `reject`: the messages that fit are published, the others are refused, for all queues of the route.
Rule 3. `drop-head`: the queue discards its oldest waiting messages first, so it is never above its maximum. A decision
        discards a limited number, and the rest of the run is decided next.
"""

from collections.abc import Iterator, Sequence
from heapq import merge, nlargest
from struct import Struct
from typing import Final, NamedTuple

from ambermq.engine.commands import Publish
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, size_code, size_of, total_size, unpack_words
from ambermq.engine.errors import Refused, counted
from ambermq.engine.model.queue import Queue
from ambermq.engine.transactions.reservations import Reservations
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = [
    "NOTHING_ADDED",
    "Added",
    "bytes_room",
    "capacity",
    "displaced",
    "fullness_text",
    "makes_enough",
    "refused_count",
    "size_of_run",
]


_ROW: Final = Struct("<QQQ")
"""Queue, messages, bytes: what a dry run would have added."""
_ROWS_MAX: Final = 1000
_NUMBER_MAX: Final = (1 << 64) - 1


class Added(NamedTuple):
    """What a decision adds to queues; the state does not have it yet."""

    counts: dict[int, int]
    """Messages by queue."""
    sizes: dict[int, int]
    """Bytes by queue."""

    def add(self, queue: int, count: int, size: int) -> None:
        """Add messages to a queue."""
        self.counts[queue] = self.counts.get(queue, 0) + count
        self.sizes[queue] = self.sizes.get(queue, 0) + size

    def with_reserved(self, queue: int, reserved: Reservations) -> "Added":
        """Return what is added to one queue, with the room that open transactions keep in it."""
        count = self.counts.get(queue, 0) + reserved.counts[queue]
        return Added({queue: count}, {queue: self.sizes.get(queue, 0) + reserved.sizes[queue]})

    def to_bytes(self) -> bytes:
        """Return the rows for `from_bytes`: of more than 1,000 queues those that got the most messages."""
        most = nlargest(_ROWS_MAX, self.counts, key=self.counts.__getitem__)
        rows = [(queue, min(self.counts[queue], _NUMBER_MAX), min(self.sizes[queue], _NUMBER_MAX)) for queue in most]
        return b"".join([_ROW.pack(*row) for row in rows])

    @classmethod
    def from_bytes(cls, rows: bytes) -> "Added":
        """Return what the rows say. Raises Refused if they are none."""
        if len(rows) % _ROW.size or len(rows) > _ROW.size * _ROWS_MAX:
            raise Refused("amqp:invalid-field", f"'taken' is no answer of a dry run: it has {len(rows)} bytes")
        added = cls({}, {})
        for queue, count, size in _ROW.iter_unpack(rows):
            added.add(queue, count, size)
        return added


NOTHING_ADDED: Final = Added({}, {})


def bytes_room(queue: Queue, command: Publish, added: Added) -> int:
    """Return how many messages of a run fit into the queue's maximum of bytes."""
    return _count_within(command.sizes, queue.settings.bytes_max - queue.waiting_size - added.sizes.get(queue.id, 0))


def refused_count(queue: Queue, command: Publish, room: int, added: Added, config: EngineConfig) -> int:
    """Return how many messages of a run are refused after its first `room`, which take a queue to its maximum.

    At the maximum length all others are. At that of bytes those are that do not fit, up to the first that does.
    """
    settings, sizes = queue.settings, command.sizes
    count = queue.waiting + added.counts.get(queue.id, 0) + room
    if not settings.bytes_max or count >= (settings.messages_max or config.queue_messages_max):
        return len(sizes) - room
    left = settings.bytes_max - queue.waiting_size - added.sizes.get(queue.id, 0)
    left -= sum([size_of(size_code(size)) for size in sizes[:room]])
    fits = (number for number in range(room, len(sizes)) if size_of(size_code(sizes[number])) <= left)
    return next(fits, len(sizes)) - room


def capacity(queue: Queue, command: Publish, config: EngineConfig) -> int:
    """Return how many messages of a run would fit into the queue if it were empty."""
    settings = queue.settings
    count = min(len(command.bodies), settings.messages_max or config.queue_messages_max)
    return min(count, _count_within(command.sizes, settings.bytes_max)) if settings.bytes_max else count


def _count_within(sizes: Sequence[int], left: int) -> int:
    for count, size in enumerate(sizes):
        left -= size_of(size_code(size))
        if left < 0:
            return count
    return len(sizes)


def size_of_run(command: Publish) -> int:
    """Return the bytes that the messages of a run account for."""
    return sum([size_of(size_code(size)) for size in command.sizes])


def displaced(queue: Queue, count: int, size: int, config: EngineConfig) -> bytes:
    """Return the packed words of the oldest available messages that `count` messages of `size` bytes displace.

    They are those of the lowest priority first, and at most as many as one event names. The words rise.
    """
    settings = queue.settings
    count += queue.waiting - (settings.messages_max or config.queue_messages_max)
    size = queue.waiting_size + size - settings.bytes_max if settings.bytes_max else 0
    words: list[int] = []
    for word in _oldest_first(queue):
        if (len(words) >= count and size <= 0) or len(words) >= config.dispatch_messages_max:
            break
        words.append(word)
        size -= size_of(word)
    return pack_words(sorted(words) if queue.levels else words)


def makes_enough(queue: Queue, words: bytes, count: int, size: int, config: EngineConfig) -> bool:
    """Return whether `count` messages of `size` bytes fit without packed `words`: set-aside ones make no room."""
    settings = queue.settings
    left = (settings.messages_max or config.queue_messages_max) - queue.waiting + len(words) // WORD_BYTES
    bytes_left = settings.bytes_max - queue.waiting_size + total_size(words)
    return count <= left and (not settings.bytes_max or size <= bytes_left)


def _oldest_first(queue: Queue) -> Iterator[int]:
    """Yield the available words of a queue, those of the lowest priority first, the oldest of each first."""
    for priority in reversed(queue.serving_order):
        returned, ready = queue.available_of(priority)
        yield from merge(_words(returned), _words(ready))


def _words(words: PersistentQueue) -> Iterator[int]:
    for run in words.chunks():
        yield from unpack_words(run)


def fullness_text(queue: Queue, command: Publish, room: int, added: Added, context: DecisionContext) -> str:
    """Return why a queue takes only the first `room` messages of a run, for the refusal of the next one."""
    count = queue.waiting + added.counts.get(queue.id, 0) + room
    held = counted(count, "message")
    kept = context.reserved
    # The same text for a post alone and for a run of them: the room of the earlier ones is reserved, or in `room`.
    if command.transaction is not None or (kept is not None and queue.id in kept.counts):
        held += ", those of open transactions included"
    limit = queue.settings.messages_max or context.config.queue_messages_max
    if count >= limit or not queue.settings.bytes_max:
        most = f"{limit} ({'messages_max' if queue.settings.messages_max else 'queue_messages_max'})"
        return f"queue {queue.name!r} is full: it holds {held}, at most {most}"
    size = queue.waiting_size + added.sizes.get(queue.id, 0)
    size += sum([size_of(size_code(one)) for one in command.sizes[:room]])
    left = f"of {size} bytes, at most {queue.settings.bytes_max} (bytes_max)"
    return f"queue {queue.name!r} has no room for {command.sizes[room]} bytes: it holds {held} {left}"
