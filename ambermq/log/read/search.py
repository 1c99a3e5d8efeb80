"""Finding records by what they hold, in all segments of an open log: what the story of one message stands on.

Rule 1. A sealed segment with an index that fits is asked; no byte of it is read.
Rule 2. Any other one (active, spare, not yet indexed) is searched for the bytes that every record sought must hold;
only where they are found is a batch decoded. Large batches are searched head by head, their bodies never read; small
ones a piece at a time and without a line of Python a batch. Either way a batch is believed by its head CRC.
Rule 3. Both answer alike: a record found through bytes is held against the same keys as an index would have.
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
"""Read of a batch at first; most heads are within."""
_LARGE_BYTES: Final = 32 << 10
"""From an average of so many bytes on batches are large."""
_SAMPLED: Final = 16
_OFFSET_MAX: Final = 1 << 62
_U32: Final = Struct("<I")
_MAGIC: Final = BATCH_MAGIC.to_bytes(4, "little")


class Search:
    """Look-ups in the segments of one reader, which stays its owner's; close it first."""

    def __init__(self, reader: LogReader, touches_of: TouchesOf) -> None:
        """Look into the log of a reader; `touches_of` is what its indexes were built with.

        Raises DamageError where a segment is missing or its header is not its own.
        """
        self._touches_of = touches_of
        self._end = reader.end
        self._indexes: list[tuple[int, str]] = []
        """The first offset that is beyond the segment, and the path of its index, which fits."""
        self._parts: list[tuple[int, SegmentReader]] = []
        """As above, those without an index."""
        self._sealed: list[SegmentReader] = []
        self._open(reader)

    def _open(self, reader: LogReader) -> None:
        for sealed in reader.manifest.sealed:
            part = reader.open_sealed(sealed)
            segment = sealed.at(reader.directory)
            index = Index.open(path_of_index(segment), segment, part.header)
            has_touches = index is not None and index.has_touches
            if index is not None:
                # A process can open an LMDB file once at a time, and the reader's own look-ups open it too.
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
        found = set(self._indexed(Index.ids, id_hashes, 0))
        for batch in self._batches_holding([_U32.pack(id_hash) for id_hash in id_hashes], 0, _OFFSET_MAX):
            for row in batch.rows():
                if row[3] in id_hashes:
                    found.add(batch.header.base_offset + row[0])
        return self._within(found, 0, _OFFSET_MAX)

    def touches(self, wanted: Mapping[int, bytes], first_offset: int, last_offset: int = _OFFSET_MAX) -> list[int]:
        """Return the offsets, both bounds included, of the records that touch any of the keys, in order.

        `wanted` is keys with bytes that the head of each record sought holds; of the segments without an index, records
        that touch a key without those bytes may be left out. Raises DamageError.
        """
        found = self._indexed(Index.touches, wanted, first_offset)
        batches = self._batches_holding(list(wanted.values()), first_offset, last_offset)
        return self._within(chain(found, self._touching(batches, wanted)), first_offset, last_offset)

    def touches_of_epochs(self, key: int, first_offset: int, last_offset: int = _OFFSET_MAX) -> list[int]:
        """Return as `touches` for a key that only the first records of an epoch touch."""
        found = self._indexed(Index.touches, (key,), first_offset)
        batches = chain.from_iterable(map(_beginning, self._parts_within(first_offset, last_offset)))
        return self._within(chain(found, self._touching(batches, (key,))), first_offset, last_offset)

    def close(self) -> None:
        """Close what was opened."""
        for part in self._sealed:
            part.file.close()

    def _indexed(self, ask: Callable[[Index, int], list[int]], keys: Iterable[int], first_offset: int) -> Iterator[int]:
        for next_offset, path in self._indexes:
            if next_offset > first_offset:
                index = Index(path)
                for key in keys:
                    yield from ask(index, key)
                index.close()

    def _touching(self, batches: Iterable[Batch], keys: Collection[int]) -> Iterator[int]:
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

    def _batches_holding(self, patterns: list[bytes], first_offset: int, last_offset: int) -> Iterator[Batch]:
        for part in self._parts_within(first_offset, last_offset):
            start = part.positions.locate(first_offset) or SEGMENT_HEADER_BYTES
            yield from _holding(part, patterns, start, part.positions.locate_next(last_offset) or part.end)


def _holding(part: SegmentReader, patterns: list[bytes], start: int, end: int) -> Iterator[Batch]:
    """Yield the batches of a part between two positions whose heads hold any of the patterns, each once."""
    position = start
    if _are_large(part, start, end):
        while position < end and (head := _head_at(part, position)):
            header = decode_header(head)
            if any(pattern in head for pattern in patterns):
                yield _batch_of(part, header, head, position)
            position += header.length
    # From the start, or from where no head can be believed: behind it others may.
    yield from _holding_small(part, patterns, position, end)


def _are_large(part: SegmentReader, start: int, end: int) -> bool:
    """Return whether the batches at the beginning are large on average."""
    position = start
    for _ in range(_SAMPLED):
        head = _head_at(part, position) if position < end else b""
        if not head:
            return False
        position += decode_header(head).length
        if position - start >= _SAMPLED * _LARGE_BYTES:
            return True
    return False


def _holding_small(part: SegmentReader, patterns: list[bytes], start: int, end: int) -> Iterator[Batch]:
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
    """Return the batch whose head lies around a position, None where that is in bodies or no batch's."""
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
    """Return the valid batch at a position, None where there is none."""
    head = _head_at(part, position)
    return _batch_of(part, decode_header(head), head, position) if head else None


def _head_at(part: SegmentReader, position: int) -> bytes:
    """Return the valid head of the batch at a position, nothing where there is none."""
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


def _beginning(part: SegmentReader) -> Iterator[Batch]:
    """Yield the batches up to the first that has records and is of the segment's own epoch: what begins an epoch."""
    walk = part.walk(end=part.end)
    for header in walk:
        yield walk.batch()
        if header.count and header.epoch == part.header.epoch:
            return
