"""A survey of the last segments: it finds the end of the log, and whether that is a tail or damage.

Only the active segment and the spare can hold unsynced bytes, so only they are surveyed. A sealed segment is durable as
a whole. A survey reads heads, and bodies only in the tail.

Rule 1. The durable end D is the largest one in the manifest and in any valid batch, even after an invalid batch.
Rule 2. The chain of batches continues while each batch begins where the previous one ended, or where an epoch began.
The current epoch begins at its start offset. Earlier epochs, whose batches were copied, begin at multiples of 2^20. The
chain continues from the active segment into the spare if the spare's header has the next offset.
Rule 3. A chain that ends below D is damage. A chain that ends at or after D is the tail: the log ends there, or at the
first batch at or after D whose bodies are wrong. Everything after that is ignored. One sync covers several batches, so
a power loss may keep a later batch and lose an earlier one. So a bad batch before a good one does not prove damage.
Rule 4. A header of zeros may be that of an unused spare, or one that a power loss has kept from the disk. A recovery
syncs the header of the segment that it makes: there zeros are damage. Elsewhere the batches after the zeros tell D.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ambermq.log.errors import DamageError
from ambermq.log.format.batch import BatchHeader, Mismatch, check_bodies
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, is_partial_header, segment_path
from ambermq.log.format.time_range import union
from ambermq.log.manifest.manifest import Manifest, SealedSegment
from ambermq.log.segments.batch_walk import BatchWalk, find_later, times_of
from ambermq.log.segments.readable_header import surviving_header
from ambermq.log.segments.segment_reader import SegmentReader, open_segment
from ambermq.log.storage.interface import Storage

__all__ = ["EPOCH_OFFSETS", "TailSurvey", "continues", "extend", "survey"]

EPOCH_OFFSETS: Final = 1 << 20
"""The offsets of an epoch begin at a multiple of this number."""

_UNSEEN_OFFSETS_MAX: Final = EPOCH_OFFSETS >> 1
"""More than the number of records that a crash can lose without a trace: a few MiB are unsynced at most."""

_NO_OFFSET: Final = -1
_PROBE_BYTES: Final = 64 << 10


@dataclass(slots=True)
class TailSurvey:
    """The result of a survey."""

    durable_end: int
    """D of rule 1."""
    valid_end: int
    """The offset at which the log ends."""
    seen_end: int
    """The offset above every offset in a valid batch, in the chain or not."""
    parts: list[SegmentReader] = field(default_factory=list)
    """The segments of the chain, in order."""
    fault: DamageError | None = None
    """The fault that ends the chain; None if only unwritten space follows."""

    @property
    def next_start(self) -> int:
        """The multiple of 2^20 above every offset that any reader may have seen; 0 for a log without offsets."""
        if not self.seen_end:
            return 0
        return -(-(self.seen_end + _UNSEEN_OFFSETS_MAX) // EPOCH_OFFSETS) * EPOCH_OFFSETS

    def tail(self) -> Iterator[tuple[SegmentReader, BatchWalk]]:
        """Yield each batch from `durable_end` to `valid_end`: its segment, and a walk whose current batch it is."""
        for part in self.parts:
            start = part.positions.locate(self.durable_end) or SEGMENT_HEADER_BYTES
            walk = part.walk(start, end=part.end)
            for header in walk:
                if self.durable_end <= header.base_offset:
                    yield part, walk

    def sealed(self) -> tuple[SealedSegment, ...]:
        """Return the segments that hold batches below `durable_end`, each up to there."""
        sealed = []
        for index, part in enumerate(self.parts):
            size = _position_of(part, self.durable_end)
            later_parts = self.parts[index + 1 :]
            next_offset = min([self.durable_end] + [other.header.base_offset for other in later_parts])
            if size > SEGMENT_HEADER_BYTES:
                header = part.header
                sealed.append(SealedSegment(header.file_id, header.base_offset, next_offset, size, part.times))
        return tuple(sealed)


def survey(storage: Storage, directory: str, manifest: Manifest, *, batch_bytes_max: int) -> TailSurvey:
    """Return a survey of the manifest's active segment and spare. Raises DamageError if durable bytes are missing."""
    base_offset = manifest.active.base_offset if manifest.active else manifest.durable_end
    found = TailSurvey(manifest.durable_end, base_offset, max(manifest.durable_end, manifest.start_offset))
    if manifest.active is not None:
        _survey_chain(found, manifest, _parts(storage, directory, manifest, batch_bytes_max))
    end = found.valid_end
    if end >= manifest.durable_end:
        # Everything of earlier epochs is present. No offset between it and the start of this epoch was ever used.
        end = max(end, manifest.start_offset)
    if end < found.durable_end:
        raise found.fault or _missing(directory, manifest, found)
    found.durable_end = min(found.durable_end, found.valid_end)
    _check_tail(found)
    return found


def extend(found: TailSurvey, manifest: Manifest) -> None:
    """Add to a survey the batches written since, as far as they are in its last segment."""
    if found.parts:
        part = found.parts[-1]
        part.size = part.file.size()
        _follow(found, manifest, part, part.walk(part.end))
        found.durable_end = min(found.durable_end, found.valid_end)


def _missing(directory: str, manifest: Manifest, found: TailSurvey) -> DamageError:
    assert manifest.active is not None
    path = found.parts[-1].path if found.parts else segment_path(directory, manifest.active.file_id)
    position = found.parts[-1].end if found.parts else 0
    return DamageError(path, position, f"batches up to offset {found.durable_end}", f"none from {found.valid_end}")


def _parts(storage: Storage, directory: str, manifest: Manifest, batch_bytes_max: int) -> Iterator[SegmentReader]:
    assert manifest.active is not None
    file_ids = [manifest.active.file_id]
    # The manifest names the spare before its file is made. A first write that failed may leave a part of the header.
    if manifest.spare is not None and _may_have_batches(storage, segment_path(directory, manifest.spare)):
        file_ids.append(manifest.spare)
    for file_id in file_ids:
        part = open_segment(storage, directory, manifest, file_id, batch_bytes_max=batch_bytes_max)
        if part is None:
            part = _part_without_header(storage, directory, manifest, file_id, batch_bytes_max)
        if part is not None:
            yield part


def _may_have_batches(storage: Storage, path: str) -> bool:
    """Return whether a file exists and has more than a part of a segment's header."""
    if not storage.exists(path):
        return False
    file = storage.open(path)
    try:
        return not is_partial_header(file.read(SEGMENT_HEADER_BYTES, 0))
    finally:
        file.close()


def _part_without_header(
    storage: Storage, directory: str, manifest: Manifest, file_id: int, batch_bytes_max: int
) -> SegmentReader | None:
    """Return a segment whose header is zeros although it has batches, or None if it has none. Raises DamageError."""
    assert manifest.active is not None
    path = segment_path(directory, file_id)
    is_active = file_id == manifest.active.file_id
    # A roll makes a segment active above the first offset of its epoch, and its header comes with its first batch.
    if is_active and manifest.active.base_offset <= manifest.start_offset:
        raise DamageError(path, 0, "a segment header", "zeros")
    file = storage.open(path)
    # A spare is read at every start: only its first batches are looked for.
    if is_active or any(file.read(_PROBE_BYTES, SEGMENT_HEADER_BYTES)):
        header = surviving_header(file, b"", batch_bytes_max=batch_bytes_max)
        if header is not None:
            # No batch continues at this offset, so the chain ends before this segment.
            header = header._replace(file_id=file_id, base_offset=_NO_OFFSET)
            return SegmentReader(path, file, header, batch_bytes_max, file.size())
    file.close()
    return None


def _survey_chain(found: TailSurvey, manifest: Manifest, parts: Iterator[SegmentReader]) -> None:
    for part in parts:
        if continues(manifest, found.valid_end, part.header.base_offset):
            found.parts.append(part)
            _survey_part(found, manifest, part)
            continue
        if part.header.base_offset == _NO_OFFSET:
            found.fault = DamageError(part.path, 0, "a segment header", "zeros")
        walk = part.walk()
        _count_batches(found, walk)
        for later in find_later(walk):
            assert later.header is not None
            _count_batch(found, later, later.header)


def _survey_part(found: TailSurvey, manifest: Manifest, part: SegmentReader) -> None:
    """Follow the chain through a part, and count the valid batches after its end.

    If a broker writes at the same time, those batches may belong to the chain by now. So the survey follows the chain
    again from its end before it counts a later batch as one after a hole.
    """
    walk = part.walk()
    broken = _follow(found, manifest, part, walk)
    later_walks, is_chain_final = find_later(walk), False
    while (later := next(later_walks, None)) is not None:
        if not is_chain_final and broken is None:
            end, next_walk = part.end, part.walk(part.end)
            broken = _follow(found, manifest, part, next_walk)
            if part.end > end:
                walk, later_walks = next_walk, find_later(next_walk)
                continue
        is_chain_final = True
        assert later.header is not None
        _count_batch(found, later, later.header)
    found.fault = _fault(part, broken or walk.mismatch)


def continues(manifest: Manifest, valid_end: int, base_offset: int) -> bool:
    """Return whether a batch at `base_offset` continues a chain up to `valid_end`: directly or as an epoch's start."""
    if base_offset <= valid_end:
        return base_offset == valid_end
    if valid_end < manifest.durable_end:
        return base_offset % EPOCH_OFFSETS == 0
    return base_offset == manifest.start_offset


def _follow(found: TailSurvey, manifest: Manifest, part: SegmentReader, walk: BatchWalk) -> Mismatch | None:
    """Follow the chain through a part. Return the mismatch at which the offsets do not continue, or None."""
    for header in walk:
        base_offset = header.base_offset
        if not continues(manifest, found.valid_end, base_offset):
            _count_batch(found, walk, header)
            _count_batches(found, walk)
            return Mismatch(f"base offset {found.valid_end}", f"{base_offset}")
        found.valid_end = _count_batch(found, walk, header)
        part.positions.add(base_offset, walk.position)
        part.times = union(part.times, times_of(walk))
        part.end = walk.position + header.length
    return None


def _count_batches(found: TailSurvey, walk: BatchWalk) -> None:
    """Count batches that do not belong to the chain."""
    for header in walk:
        _count_batch(found, walk, header)


def _count_batch(found: TailSurvey, walk: BatchWalk, header: BatchHeader) -> int:
    """Raise the durable end and the seen end by a valid batch; return the offset after it."""
    next_offset = walk.next_offset()
    found.durable_end = max(found.durable_end, header.durable_end)
    found.seen_end = max(found.seen_end, next_offset, header.durable_end)
    return next_offset


def _fault(part: SegmentReader, mismatch: Mismatch | None) -> DamageError | None:
    return None if mismatch is None else DamageError(part.path, part.end, mismatch.expected, mismatch.found)


def _position_of(part: SegmentReader, offset: int) -> int:
    """Return the position of the first batch at or after `offset`, or the part's end if there is none."""
    walk = part.walk(part.positions.locate(offset - 1) or SEGMENT_HEADER_BYTES, end=part.end)
    for header in walk:
        if header.base_offset >= offset:
            return walk.position
    return part.end


def _check_tail(found: TailSurvey) -> None:
    """End the chain before the first batch of the tail whose bodies are wrong."""
    end = found.durable_end
    for part, walk in found.tail():
        assert walk.header is not None
        mismatch = check_bodies(walk.header, walk.bodies())
        if mismatch is None:
            end = walk.next_offset()
        else:
            part.end, found.valid_end = walk.position, end
            found.fault = _fault(part, mismatch)
            del found.parts[found.parts.index(part) + 1 :]
            return
