"""A search for records by their contents, in all segments of an open log. The history of a message is built on it.

Rule 1. For a sealed segment with a fitting index the search uses the index and reads no byte of the segment.
Rule 2. Any other segment (active, spare, not yet indexed) is searched for the bytes that every wanted record must have.
Only a batch with such bytes is decoded. Large batches are searched head by head, without their bodies. Small batches
are searched in large pieces, without Python code for each batch. In both cases the head CRC proves that a batch is
valid.
Rule 3. Both ways give the same result: a record found by its bytes is compared with the same keys as in an index.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from struct import Struct
from typing import Final

from ambermq.log.format.batch import (
    BATCH_ALIGNMENT,
    BATCH_HEADER_BYTES,
    BATCH_MAGIC,
    Batch,
    BatchHeader,
    check,
    decode_header,
)
from ambermq.log.format.record import RECORD
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES
from ambermq.log.index.segment_index import Index, path_of_index
from ambermq.log.index.tables import TouchesOf
from ambermq.log.read.log_reader import LogReader
from ambermq.log.segments.segment_reader import SegmentReader

__all__ = ["Search"]

_PIECE_BYTES: Final = 1 << 20
_NEAR_BYTES: Final = 16 << 10
_HEAD_BYTES: Final = 16 << 10
"""The size of the first read of a batch. Most heads are smaller."""
_LARGE_BYTES: Final = 32 << 10
"""The average size from which batches count as large."""
_SAMPLE_BATCHES: Final = 16
_OFFSET_MAX: Final = 1 << 62
_U32: Final = Struct("<I")
_MAGIC: Final = BATCH_MAGIC.to_bytes(4, "little")


class Search:
    """Lookups in the segments of one reader. The caller owns the reader, and closes the search before it."""

    def __init__(self, reader: LogReader, touches_of: TouchesOf) -> None:
        """Search the log of a reader; `touches_of` is the function with which its indexes were built.

        Raises DamageError if a segment is missing or its header is that of another segment.
        """
        self._touches_of = touches_of
        self._end = reader.end
        self._indexes: list[tuple[int, str]] = []
        """For each segment with a fitting index: the first offset after it, and the path of the index."""
        self._parts: list[tuple[int, SegmentReader]] = []
        """For each other segment: the first offset after it, and the open segment."""
        self._sealed: list[SegmentReader] = []
        self._open(reader)

    def _open(self, reader: LogReader) -> None:
        for sealed in reader.manifest.sealed:
            part = reader.open_sealed(sealed)
            segment = sealed.at(reader.directory)
            index = Index.open(path_of_index(segment), segment, part.header)
            has_touches = index is not None and index.has_touches
            if index is not None:
                # A process can have an LMDB file open only once, and the reader's own lookups open it too.
                index.close()
            if has_touches:
                part.file.close()
                self._indexes.append((sealed.next_offset, path_of_index(segment)))
            else:
                self._sealed.append(part)
                self._parts.append((sealed.next_offset, part))
        self._parts += [(self._end, part) for part in reader.survey.parts]

    def ids(self, id_hashes: Collection[int]) -> list[int]:
        """Return the offsets of all records with one of these id hashes, in order. Raises DamageError."""
        found = set(self._offsets_by_index(Index.ids, id_hashes, 0))
        for batch in self._batches_with([_U32.pack(id_hash) for id_hash in id_hashes], 0, _OFFSET_MAX):
            for row in batch.rows():
                if row[3] in id_hashes:
                    found.add(batch.header.base_offset + row[0])
        return self._within(found, 0, _OFFSET_MAX)

    def touches(self, wanted: Mapping[int, bytes], first_offset: int, last_offset: int = _OFFSET_MAX) -> list[int]:
        """Return in order the offsets, both bounds included, of the records that refer to any of the keys.

        `wanted` maps each key to bytes that the head of a wanted record has. In a segment without an index, a record
        that refers to a key without having those bytes may be left out. Raises DamageError.
        """
        found = self._offsets_by_index(Index.touches, wanted, first_offset)
        batches = self._batches_with(list(wanted.values()), first_offset, last_offset)
        return self._within(chain(found, self._offsets_of_keys(batches, wanted)), first_offset, last_offset)

    def touches_of_epochs(self, key: int, first_offset: int, last_offset: int = _OFFSET_MAX) -> list[int]:
        """Return the result of `touches` for a key to which only the first records of an epoch refer."""
        found = self._offsets_by_index(Index.touches, (key,), first_offset)
        batches = chain.from_iterable(map(_epoch_start, self._parts_within(first_offset, last_offset)))
        return self._within(chain(found, self._offsets_of_keys(batches, (key,))), first_offset, last_offset)

    def close(self) -> None:
        """Close the segments that the search has opened."""
        for part in self._sealed:
            part.file.close()

    def _offsets_by_index(
        self, ask: Callable[[Index, int], list[int]], keys: Iterable[int], first_offset: int
    ) -> Iterator[int]:
        for next_offset, path in self._indexes:
            if next_offset > first_offset:
                index = Index(path)
                for key in keys:
                    yield from ask(index, key)
                index.close()

    def _offsets_of_keys(self, batches: Iterable[Batch], keys: Collection[int]) -> Iterator[int]:
        for batch in batches:
            for key, offset in self._touches_of(batch):
                if key in keys:
                    yield offset

    def _within(self, offsets: Iterable[int], first_offset: int, last_offset: int) -> list[int]:
        end = min(self._end, last_offset + 1)
        return sorted({offset for offset in offsets if first_offset <= offset < end})

    def _parts_within(self, first_offset: int, last_offset: int) -> Iterator[SegmentReader]:
        for next_offset, part in self._parts:
            if next_offset > first_offset and part.header.base_offset <= last_offset:
                yield part

    def _batches_with(self, patterns: list[bytes], first_offset: int, last_offset: int) -> Iterator[Batch]:
        for part in self._parts_within(first_offset, last_offset):
            start = part.positions.locate(first_offset) or SEGMENT_HEADER_BYTES
            yield from _matching_batches(part, patterns, start, part.positions.locate_next(last_offset) or part.end)


def _matching_batches(part: SegmentReader, patterns: list[bytes], start: int, end: int) -> Iterator[Batch]:
    """Yield once each batch of a part between two positions whose head has any of the patterns."""
    position = start
    if _are_large(part, start, end):
        while position < end and (head := _head_at(part, position)):
            header = decode_header(head)
            if any(pattern in head for pattern in patterns):
                yield _batch_of(part, header, head, position)
            position += header.length
    # From the start, or from the first invalid head on: valid batches may follow it.
    yield from _matching_small_batches(part, patterns, position, end)


def _are_large(part: SegmentReader, start: int, end: int) -> bool:
    """Return whether the first batches are large on average."""
    position = start
    for _ in range(_SAMPLE_BATCHES):
        head = _head_at(part, position) if position < end else b""
        if not head:
            return False
        position += decode_header(head).length
        if position - start >= _SAMPLE_BATCHES * _LARGE_BYTES:
            return True
    return False


def _matching_small_batches(part: SegmentReader, patterns: list[bytes], start: int, end: int) -> Iterator[Batch]:
    overlap = max(map(len, patterns)) - 1
    done = 0
    for position in range(start, end, _PIECE_BYTES):
        piece = part.file.read(min(_PIECE_BYTES + overlap, end - position), position)
        for at in sorted(chain.from_iterable(_all_in(piece, pattern) for pattern in patterns)):
            if position + at >= done:
                batch = _batch_around(part, position + at)
                if batch is not None:
                    done = batch.position + batch.header.length
                    yield batch


def _all_in(piece: bytes, pattern: bytes) -> Iterator[int]:
    at = piece.find(pattern)
    while at >= 0:
        yield at
        at = piece.find(pattern, at + 1)


def _batch_around(part: SegmentReader, position: int) -> Batch | None:
    """Return the batch whose head covers a position, or None if the position is in bodies or in no batch."""
    for window in (_NEAR_BYTES, part.batch_bytes_max):
        start = max(SEGMENT_HEADER_BYTES, position - window)
        piece = part.file.read(position - start, start)
        at = piece.rfind(_MAGIC)
        while at >= 0:
            batch = _batch_at(part, start + at)
            if batch is not None:
                return batch if start + at + batch.header.head_bytes > position else None
            at = piece.rfind(_MAGIC, 0, at)
    return None


def _batch_at(part: SegmentReader, position: int) -> Batch | None:
    """Return the valid batch at a position, or None if there is none."""
    head = _head_at(part, position)
    return _batch_of(part, decode_header(head), head, position) if head else None


def _head_at(part: SegmentReader, position: int) -> bytes:
    """Return the valid head of the batch at a position, or no bytes if there is none."""
    if position % BATCH_ALIGNMENT or position + BATCH_HEADER_BYTES > part.end:
        return b""
    head = part.file.read(_HEAD_BYTES, position)
    if len(head) < BATCH_HEADER_BYTES:
        return b""
    head_bytes = decode_header(head).head_bytes
    if head_bytes > part.batch_bytes_max:
        return b""
    head = part.file.read(head_bytes, position) if head_bytes > len(head) else head[:head_bytes]
    return b"" if check(part.header.salt_crc, head, batch_bytes_max=part.batch_bytes_max) else head


def _batch_of(part: SegmentReader, header: BatchHeader, head: bytes, position: int) -> Batch:
    meta_at = BATCH_HEADER_BYTES + header.count * RECORD.size
    return Batch(header, head[BATCH_HEADER_BYTES:meta_at], head[meta_at:], part.header.file_id, position)


def _epoch_start(part: SegmentReader) -> Iterator[Batch]:
    """Yield the batches up to the first one with records of the segment's epoch: those that begin an epoch."""
    walk = part.walk(end=part.end)
    for header in walk:
        yield walk.batch()
        if header.count and header.epoch == part.header.epoch:
            return
