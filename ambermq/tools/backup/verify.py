"""Whether a backup is whole: every checksum, every batch, and that it holds what its snapshot needs, and no more.

Two implementations compute samples of the CRCs (log/format/checksum_pair.py).
"""

from array import array
from collections.abc import Iterator
from itertools import chain
from struct import Struct
from typing import Final, cast

from ambermq.engine.compaction.live_records import kept_offsets
from ambermq.engine.model.state import State
from ambermq.engine.snapshots.state_codec import ImageFault, state_of
from ambermq.log.compaction.record_copy import bodies_of_walk
from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.format.batch import KEPT
from ambermq.log.format.checksum_pair import SampledChecksum
from ambermq.log.format.segment import SegmentHeader
from ambermq.log.segments.checksum_cross_check import check_by_both
from ambermq.log.segments.segment_reader import SegmentReader, walk_whole
from ambermq.log.storage.interface import File
from ambermq.snapshot.block_file import HEADER_BYTES as SNAPSHOT_HEADER_BYTES
from ambermq.snapshot.block_file import BlockFault, ForeignBlocks, decode_header, read_blocks
from ambermq.tools.backup.format import BackupPart, Table
from ambermq.tools.backup.progress import Progress, no_progress
from ambermq.tools.backup.reader import BackupReader

__all__ = ["check_backup", "verify_backup"]

_DELTA: Final = Struct("<I44x")


def verify_backup(path: str, progress: Progress = no_progress) -> Table:
    """Check the backup at `path` and return its table of contents.

    Raises DamageError at the first byte that is not as it was written, ForeignError where it is no backup or a newer
    one, FileNotFoundError where there is none.
    """
    with BackupReader(path) as reader:
        check_backup(reader, path, progress)
        return reader.table


def check_backup(reader: BackupReader, path: str, progress: Progress = no_progress) -> State:
    """Check all of an open backup, a part at a time in memory; return the state of its snapshot. Raises DamageError."""
    table = reader.table
    state = _state_in(reader.content(0), table, f"{path} (snapshot)")
    kept, found = kept_offsets(state), array("q")
    for number, part in enumerate(table.parts[1:], 1):
        name = f"{path} ({part.name})"
        offsets = _offsets_in(b"".join(reader.content(number)), part, table, name)
        if part.segment is None or len(offsets) != part.segment.record_count:
            raise DamageError(name, 0, f"{part.segment}", f"{len(offsets)} records")
        found += offsets
        progress(number, len(table.parts) - 1)
        if len(found) > len(kept):
            break
    if found.tobytes() != kept.tobytes():
        expected = f"the {len(kept)} records that its snapshot names"
        raise DamageError(path, 0, expected, f"{len(found)} of which {len(set(kept) & set(found))} are among them")
    return state


def _state_in(content: Iterator[bytes], table: Table, name: str) -> State:
    file, checksum = _Passing(content), SampledChecksum()
    try:
        header = decode_header(file.read(SNAPSHOT_HEADER_BYTES, 0), checksum)
        state = state_of(read_blocks(file.read, checksum))
    except ForeignBlocks as fault:
        raise ForeignError(f"{name}: expected {fault.expected}, found {fault.found}") from fault
    except BlockFault as fault:
        raise DamageError(name, fault.position, fault.expected, fault.found) from fault
    except ImageFault as fault:
        raise DamageError(name, 0, "the blocks of a whole state", str(fault)) from fault
    told = (table.head.log_id, table.end, table.time_us)
    if (header.log_id, header.end, header.time_us) != told:
        raise DamageError(name, 16, f"the snapshot of {table.head}", f"{header}")
    if (state.epoch, state.time_us) != (header.epoch, header.time_us):
        raise DamageError(name, 40, f"a state at {header.time_us} us", f"{state.time_us}")
    return state


def _offsets_in(content: bytes, part: BackupPart, table: Table, name: str) -> "array[int]":
    """Return the offsets of all records of a segment, each of its batches checked."""
    header, segment = SegmentHeader.decode(content, name), part.segment
    if header is None or segment is None:
        raise DamageError(name, 0, "a segment and what the table says of it", f"{header} and {segment}")
    if (header.log_id, header.base_offset) != (table.head.log_id, segment.base_offset):
        raise DamageError(name, 16, f"{table.head.log_id.hex()} from {segment.base_offset}", f"{header}")
    opened = SegmentReader(name, cast("File", _Bytes(content)), header, len(content), len(content))
    offsets = array("q")
    walks = walk_whole(opened, base_offset=segment.base_offset, next_offset=segment.next_offset)
    for number, walk in enumerate(walks):
        batch = walk.batch()
        bodies_of_walk(walk, name)
        check_by_both(walk, walk.bodies(), name, number=number)
        if not batch.header.flags & KEPT:
            raise DamageError(name, walk.position + 44, "a batch of kept records", f"flags {batch.header.flags}")
        base_offset = batch.header.base_offset
        offsets.extend(base_offset + delta for delta in chain.from_iterable(_DELTA.iter_unpack(batch.records)))
    return offsets


class _Passing:
    """Bytes that pass by as they are read, from the beginning to the end: what lies before the position is let go."""

    __slots__ = ("_pieces", "_start", "_window")

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._window = bytearray()
        self._start = 0

    def read(self, length: int, position: int) -> bytes:
        """Return `length` bytes from `position` on, which never falls; fewer only at the end."""
        while self._start + len(self._window) < position + length and (piece := next(self._pieces, b"")):
            self._window += piece
        del self._window[: position - self._start]
        self._start = position
        return bytes(self._window[:length])


class _Bytes:
    """As much of a file as a walk asks for."""

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, length: int, position: int) -> bytes:
        return self._content[position : position + length]
