"""One segment opened for reading, up to the size that the manifest gives."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ambermq.log.errors import DamageError
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.format.sparse_positions import SparsePositions
from ambermq.log.format.time_range import TimeRange
from ambermq.log.manifest.manifest import Manifest, SealedSegment
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.storage.interface import File, Storage

__all__ = ["SegmentReader", "is_unwritten", "open_sealed", "open_segment", "walk_whole"]

_PIECE_BYTES: Final = 1 << 20


@dataclass(slots=True)
class SegmentReader:
    """An open segment."""

    path: str
    """The path of the file."""
    file: File
    """The open file."""
    header: SegmentHeader
    """The header of the file, checked against the manifest."""
    batch_bytes_max: int
    """The largest batch."""
    size: int
    """The default end of walks: the size of the file, or of a sealed segment the size in the manifest."""
    end: int = SEGMENT_HEADER_BYTES
    """The position after the last batch that is known to belong to the log."""
    positions: SparsePositions = field(init=False)
    """The positions of batches that are known to belong to the log, as far as they were added."""
    times: TimeRange | None = None
    """The times of the records in these batches; None if they have none."""

    def __post_init__(self) -> None:
        self.positions = SparsePositions(self.header.salt_crc)

    def walk(self, position: int = SEGMENT_HEADER_BYTES, *, end: int | None = None) -> BatchWalk:
        """Return a walk over the batches from `position` on."""
        return BatchWalk(
            self.file,
            self.header.file_id,
            salt_crc=self.header.salt_crc,
            position=position,
            end=self.size if end is None else end,
            batch_bytes_max=self.batch_bytes_max,
        )


def is_unwritten(file: File) -> bool:
    """Return whether a segment has nothing but zeros behind its header: no batch was ever written to it."""
    size = file.size()
    pieces = (file.read(_PIECE_BYTES, position) for position in range(SEGMENT_HEADER_BYTES, size, _PIECE_BYTES))
    return not any(map(any, pieces))


def open_segment(
    storage: Storage, directory: str, manifest: Manifest, file_id: int, *, batch_bytes_max: int
) -> SegmentReader | None:
    """Return an open segment that `manifest` names, or None if nothing was ever written to it.

    Raises DamageError if the file is missing, damaged or of another log, and ForeignError if a newer version wrote it.
    """
    path = segment_path(directory, file_id)
    try:
        file = storage.open(path)
    except FileNotFoundError as error:
        raise DamageError(path, 0, "a segment that the manifest names", "no file") from error
    header = SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), path)
    if header is None:
        file.close()
        return None
    if (header.log_id, header.file_id) != (manifest.log_id, file_id):
        expected = f"file {file_id:016x} of log {manifest.log_id.hex()}"
        raise DamageError(path, 16, expected, f"{header.file_id:016x} of {header.log_id.hex()}")
    return SegmentReader(path, file, header, batch_bytes_max, file.size())


def open_sealed(
    storage: Storage, directory: str, manifest: Manifest, sealed: SealedSegment, *, batch_bytes_max: int
) -> SegmentReader:
    """Return an open sealed segment.

    Raises the errors of `open_segment`, and DamageError if the header is missing or has another base offset.
    """
    part = open_segment(storage, directory, manifest, sealed.file_id, batch_bytes_max=batch_bytes_max)
    if part is None:
        raise DamageError(segment_path(directory, sealed.file_id), 0, "a segment header", "zeros")
    if part.header.base_offset != sealed.base_offset:
        raise DamageError(part.path, 40, f"base offset {sealed.base_offset}", f"{part.header.base_offset}")
    part.size = part.end = sealed.size
    return part


def walk_whole(
    part: SegmentReader, *, base_offset: int, next_offset: int, position: int = SEGMENT_HEADER_BYTES
) -> Iterator[BatchWalk]:
    """Yield a walk at each batch of a sealed segment. Raises DamageError at the first one that is not what was written.

    `position` is that of the first batch to yield. Offsets must rise within [base_offset, next_offset). Holes are
    legal: compactions and lost epochs leave them.
    """
    walk, expected = part.walk(position), base_offset
    for header in walk:
        next_batch_offset = walk.next_offset()
        if header.base_offset < expected or next_batch_offset > next_offset:
            found = f"[{header.base_offset}, {next_batch_offset})"
            raise DamageError(part.path, walk.position, f"offsets within [{expected}, {next_offset})", found)
        expected = next_batch_offset
        yield walk
    if walk.position < part.size:
        expected_text, found = walk.mismatch or ("a batch", "zeros, as in unwritten space")
        raise DamageError(part.path, walk.position, expected_text, found)
