"""Single records of a log by offset, for who reads it segment by segment: the names of ids, the pieces of messages.

Rule 1. An id is the offset of the record that created the thing, so its name is found where that record lies, in
whichever segment; what lived at the horizon is known beforehand.
Rule 2. A segment is walked as far as it must be, once; where its batches lie is remembered.
Rule 3. What is not there, since it was compacted away or never written, is None; that is for the caller to tell.
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
from ambermq.tools.dataset.log_segments import HistorySegment, Known, open_segment
from ambermq.tools.terminal.errors import ToolError

__all__ = ["Lookup", "Names"]

_OPEN_MAX: Final = 16


class _Opened:
    """A segment, walked as far as somebody has asked."""

    def __init__(self, segment: HistorySegment) -> None:
        self.part: SegmentReader = open_segment(segment)
        self._walk = self.part.walk()
        self._headers: Iterator[BatchHeader] = iter(self._walk)
        self._bases: list[int] = []
        self._positions: list[int] = []
        self._end = segment.base_offset

    def batch(self, offset: int) -> BatchWalk | None:
        """Return a walk that stands on the batch that may hold `offset`."""
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
    """The records of one log; close it when done."""

    def __init__(self, segments: Sequence[HistorySegment]) -> None:
        """Look into these segments, which are in order of their offsets."""
        self._segments = segments
        self._bases = [one.base_offset for one in segments]
        self._opened: dict[int, _Opened] = {}

    def event(self, offset: int) -> Event | None:
        """Return the event at `offset`."""
        walk = self._batch(offset)
        events = () if walk is None else events_of(walk.batch())
        return next((event for event in events if event.offset == offset), None)

    def body(self, offset: int) -> bytes | None:
        """Return the body of the record at `offset`; None also where its checksum fails."""
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
        """Close the segments that were opened."""
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
                opened = self._opened[index] = _Opened(self._segments[index])
            except ToolError:
                return None
        return opened.batch(offset)


class Names:
    """What queues and links were called, by id."""

    def __init__(self, lookup: Lookup, known: Known) -> None:
        """Begin with what is `known`; what is not is looked up."""
        self._lookup = lookup
        self._known: dict[int, tuple[str, int] | None] = dict(known)

    def hear(self, offset: int, name: str, queue: int) -> None:
        """Remember what the record at `offset` names: a queue, or the container of a link on `queue`."""
        self._known[offset] = (name, queue)

    def queue(self, queue: int) -> str | None:
        """Return the name of a queue, its id where none is known, None for no queue."""
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
