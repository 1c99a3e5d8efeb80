"""Single records of a log by offset, for a reader of segments: the names of ids, and the pieces of messages.

Rule 1. An id is the offset of the record that created the object, so that record has its name, in any segment. The
names at the horizon are known beforehand.
Rule 2. A segment is walked once, and only as far as needed; the positions of its batches are cached.
Rule 3. A record that was compacted or never written is None; the caller decides what that means.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from ambermq.engine.events import ConsumerAttached, Event, ProducerAttached, QueueDeclared
from ambermq.engine.records.reader import events_of
from ambermq.log.format.batch import BatchHeader, Mismatch
from ambermq.log.format.compression import plain_bodies
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.storage.interface import Storage
from ambermq.tools.dataset.log_segments import HistorySegment, Known, open_segment
from ambermq.tools.terminal.errors import ToolError

__all__ = ["Lookup", "Names"]

_OPEN_MAX: Final = 16


class _Opened:
    """An open segment, and the positions of its batches as far as it was walked."""

    def __init__(self, segment: HistorySegment, storage: Storage | None) -> None:
        self.part: SegmentReader = open_segment(segment, storage)
        self._walk = self.part.walk()
        self._headers: Iterator[BatchHeader] = iter(self._walk)
        self._bases: list[int] = []
        self._positions: list[int] = []
        self._end = segment.base_offset

    def batch(self, offset: int) -> BatchWalk | None:
        """Return a walk at the batch that may hold `offset`."""
        while self._end <= offset and (header := next(self._headers, None)) is not None:
            self._bases.append(header.base_offset)
            self._positions.append(self._walk.position)
            self._end = self._walk.next_offset()
        index = bisect_right(self._bases, offset) - 1
        if index < 0:
            return None
        walk = self.part.walk(self._positions[index])
        return walk if next(iter(walk), None) is not None else None


class Lookup:
    """The records of one log by offset; the caller closes it."""

    def __init__(self, segments: Sequence[HistorySegment], storage: Storage | None = None) -> None:
        """Look up records in these segments, in the order of their offsets; those on this disk through `storage`."""
        self._segments = segments
        self._storage = storage
        self._bases = [one.base_offset for one in segments]
        self._opened: dict[int, _Opened] = {}

    def event(self, offset: int) -> Event | None:
        """Return the event at `offset`."""
        walk = self._batch(offset)
        events = () if walk is None else events_of(walk.batch())
        return next((event for event in events if event.offset == offset), None)

    def body(self, offset: int) -> bytes | None:
        """Return the body of the record at `offset`; None if there is none, or if its checksum is wrong."""
        walk = self._batch(offset)
        if walk is None:
            return None
        record = next((one for one in walk.batch().record_list() if one.offset == offset), None)
        if record is None or walk.header is None:
            return None
        bodies = plain_bodies(walk.header, walk.bodies())
        if isinstance(bodies, Mismatch):
            return None
        start = record.body_position - walk.header.head_bytes
        return bytes(bodies[start : start + record.body_length])

    def close(self) -> None:
        """Close the open segments."""
        for opened in self._opened.values():
            opened.part.file.close()
        self._opened.clear()

    def _batch(self, offset: int) -> BatchWalk | None:
        index = bisect_right(self._bases, offset) - 1
        if index < 0 or offset >= self._segments[index].next_offset:
            return None
        opened = self._opened.get(index)
        if opened is None:
            if len(self._opened) == _OPEN_MAX:
                self._opened.pop(next(iter(self._opened))).part.file.close()
            try:
                opened = self._opened[index] = _Opened(self._segments[index], self._storage)
            except ToolError:
                return None
        return opened.batch(offset)


class Names:
    """The names of queues and links by id."""

    def __init__(self, lookup: Lookup, known: Known) -> None:
        """Begin with the names in `known`; others are looked up."""
        self._lookup = lookup
        self._known: dict[int, tuple[str, int] | None] = dict(known)

    def add(self, offset: int, name: str, queue: int) -> None:
        """Add the name that the record at `offset` declares: a queue, or the container of a link on `queue`."""
        self._known[offset] = (name, queue)

    def queue(self, queue: int) -> str | None:
        """Return the name of a queue, its id if the name is unknown, None for no queue."""
        if queue <= 0:
            return None
        known = self._of(queue)
        return f"queue {queue}" if known is None else known[0]

    def container(self, link: int) -> str | None:
        """Return the container of a link."""
        known = self._of(link) if link > 0 else None
        return None if known is None else known[0]

    def queue_of_link(self, link: int) -> int:
        """Return the id of the queue that a consumer receives from, 0 for any other link."""
        known = self._of(link) if link > 0 else None
        return 0 if known is None else known[1]

    def _of(self, named: int) -> tuple[str, int] | None:
        if named not in self._known:
            self._known[named] = _name_in(self._lookup.event(named))
        return self._known[named]


def _name_in(event: Event | None) -> tuple[str, int] | None:
    match event:
        case QueueDeclared():
            return event.name, event.offset
        case ConsumerAttached():
            return event.container, event.queue
        case ProducerAttached():
            return event.container, 0
    return None
