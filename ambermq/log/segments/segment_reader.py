"""One segment open for reading, as far as the manifest says that it counts."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ambermq.log.errors import DamageError
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.format.sparse_positions import SparsePositions
from ambermq.log.manifest.manifest import Manifest, Sealed
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.storage.interface import File, Storage

__all__ = ["SegmentReader", "open_part", "open_sealed", "walk_whole"]


@dataclass(slots=True)
class SegmentReader:
    """An open segment."""

    path: str
    """Of its file."""
    file: File
    """Open."""
    header: SegmentHeader
    """As read, and that of the file which the manifest names."""
    batch_bytes_max: int
    """No batch is larger."""
    size: int
    """Where walks end, if nothing else is said: that of the file, or what the manifest says of a sealed one."""
    end: int = SEGMENT_HEADER_BYTES
    """Position after the last batch that is known to count."""
    positions: SparsePositions = field(init=False)
    """Of the batches that are known to count, as far as somebody has noted them."""

    def __post_init__(self) -> None:
        self.positions = SparsePositions(self.header.salt_crc)

    def walk(self, position: int = SEGMENT_HEADER_BYTES, *, end: int | None = None) -> BatchWalk:
        """Walk the batches from `position` on."""
        return BatchWalk(
            self.file,
            self.header.file_id,
            salt_crc=self.header.salt_crc,
            position=position,
            end=self.size if end is None else end,
            batch_bytes_max=self.batch_bytes_max,
        )


def open_part(
    storage: Storage, directory: str, manifest: Manifest, file_id: int, *, batch_bytes_max: int
) -> SegmentReader | None:
    """Open a segment that `manifest` names; None where nothing was ever written to it.

    Raises DamageError where it is missing, damaged, or another log's; ForeignError where it is no segment.
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
    storage: Storage, directory: str, manifest: Manifest, sealed: Sealed, *, batch_bytes_max: int
) -> SegmentReader:
    """Open a sealed segment; raise as `open_part`, and DamageError where its header is gone or tells another base."""
    part = open_part(storage, directory, manifest, sealed.file_id, batch_bytes_max=batch_bytes_max)
    if part is None:
        raise DamageError(segment_path(directory, sealed.file_id), 0, "a segment header", "zeros")
    if part.header.base_offset != sealed.base_offset:
        raise DamageError(part.path, 40, f"base offset {sealed.base_offset}", f"{part.header.base_offset}")
    part.size = part.end = sealed.size
    return part


def walk_whole(
    part: SegmentReader, *, base_offset: int, next_offset: int, position: int = SEGMENT_HEADER_BYTES
) -> Iterator[BatchWalk]:
    """Yield a walk that stands on each batch of a sealed segment; raise DamageError at the first that is not as it was.

    `position` is that of the first batch wanted. Offsets must rise within [base_offset, next_offset); holes are what
    compaction and lost epochs leave.
    """
    walk, expected = part.walk(position), base_offset
    for header in walk:
        following = walk.next_offset()
        if header.base_offset < expected or following > next_offset:
            found = f"[{header.base_offset}, {following})"
            raise DamageError(part.path, walk.position, f"offsets within [{expected}, {next_offset})", found)
        expected = following
        yield walk
    if walk.position < part.size:
        expected_text, found = walk.mismatch or ("a batch", "zeros, as where nothing was ever written")
        raise DamageError(part.path, walk.position, expected_text, found)
