"""The index of a sealed segment: one immutable LMDB file, derived from the segment and rebuilt if it is missing.

    batches   base offset u64 -> position u64               one entry per 16 KiB of the segment
    times     base timestamp u64 (us) -> base offset u64    of the same batches
    ids       id hash u32 -> offset u64, many a key         one entry for each record whose id_hash is not 0
    touches   key u64 -> offset u64, many a key             the records that refer to a thing, by the key of the thing

    after LMDB's last page, 64 bytes:
     0  magic 8 B "AMBERIDX"   8  version u32    12 salt u32 of the segment   16 file id u64
    24  base offset i64       32  next offset i64   40 segment size i64       48 bytes before this i64
    56  crc u32 of those      60  crc u32 of bytes 0 to 60 here

Keys and values in LMDB are native integers, the trailer is little-endian.

Rule 1. An index is built under a temporary name and then renamed, so a file of that name is never half an index.
Rule 2. An index is synced before it is renamed, so after a loss of power it is whole or missing. The trailer shows
whether it is damaged.
Rule 3. An index is opened read-only without a lock, because it never changes.
Rule 4. The caller defines the keys of `touches` by the function that reads them from a batch. Version 1 had no such
table; an index of version 1 is rebuilt.
"""

import errno
import os
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from struct import Struct
from typing import Any, Final

import lmdb

from ambermq.log.errors import DamageError
from ambermq.log.format.batch import Mismatch
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, Segment, SegmentHeader
from ambermq.log.format.sparse_positions import SparsePositions
from ambermq.log.index.tables import U32, U64, Tables, TouchesOf, no_touches
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.readable_header import readable_header
from ambermq.log.storage.interface import File

__all__ = ["Index", "IndexBuilder", "build", "check_index", "known_end", "load_positions", "path_of_index"]

_TRAILER: Final = Struct("<8sIIQqqqqI")
_CRC: Final = Struct("<I")
_TRAILER_BYTES: Final = 64
_MAGIC: Final = b"AMBERIDX"
_VERSION: Final = 2
_TABLES: Final = 4
_MAP_BYTES_MAX: Final = 1 << 36
_READ_BYTES: Final = 1 << 20
_SCAN_BYTES: Final = 4 << 20
"""One read of a start, which has the disk alone."""
_PIECE_BYTES_MAX: Final = 256 << 10
"""One read of a build. While the disk reads 4 MiB, a sync of the log waits for 8 to 12 ms."""


def path_of_index(segment: Segment) -> str:
    """Return the path of the segment's index."""
    return segment.path.removesuffix(".log") + ".index"


class IndexBuilder:
    """The build of one index in steps of about a millisecond, unless the existing index fits the segment.

    All steps must run in one thread. Raises OSError and lmdb.Error if the disk fails, and DamageError, ForeignError or
    ValueError if the segment is damaged.
    """

    def __init__(
        self, file: File, segment: Segment, *, batch_bytes_max: int, touches_of: TouchesOf = no_touches
    ) -> None:
        self._steps = _build_steps(file, segment, batch_bytes_max, touches_of)

    def step(self) -> bool:
        """Run one step; return whether there are more."""
        return next(self._steps, True) is None

    def close(self) -> None:
        """Abort the build and remove its file."""
        self._steps.close()


def build(file: File, segment: Segment, *, batch_bytes_max: int, touches_of: TouchesOf = no_touches) -> None:
    """Build the index of `segment`, whose bytes are read from `file`, without a pause."""
    builder = IndexBuilder(file, segment, batch_bytes_max=batch_bytes_max, touches_of=touches_of)
    while builder.step():
        pass


def _build_steps(
    file: File, segment: Segment, batch_bytes_max: int, touches_of: TouchesOf
) -> Generator[None, None, None]:
    target = path_of_index(segment)
    header = _header_of(file, segment.path)
    if file.size() < segment.size:
        raise DamageError(segment.path, file.size(), f"{segment.size} bytes", f"{file.size()}")
    if check_index(target, segment, header) is None:
        return
    if Path(target).is_dir():
        # No index can replace it, so none is built.
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    yield
    temporary = target + ".new"
    _remove(temporary)
    environment = lmdb.open(
        temporary,
        subdir=False,
        map_size=_MAP_BYTES_MAX,
        max_dbs=_TABLES,
        lock=False,
        sync=False,
        metasync=False,
        mode=0o600,
    )
    try:
        with environment.begin(write=True) as transaction:
            walk = _walk(file, header, segment.size, batch_bytes_max, piece_bytes_max=_PIECE_BYTES_MAX)
            tables = Tables(segment.base_offset, touches_of)
            yield from tables.collect(walk)
            yield from tables.put(environment, transaction)
        environment.close()
        yield from _seal(temporary, segment, header)
        Path(temporary).replace(target)
    except BaseException:
        environment.close()
        _remove(temporary)
        raise


def _seal(path: str, segment: Segment, header: SegmentHeader) -> Iterator[None]:
    size_bytes = crc = 0
    with Path(path).open("rb+") as file:
        while piece := file.read(_READ_BYTES):
            crc = crc32c(piece, crc)
            size_bytes += len(piece)
            yield
        fields = _TRAILER.pack(*_identity(segment, header), size_bytes, crc)
        file.write(fields + _CRC.pack(crc32c(fields)))
        file.flush()
        yield
        # 10 to 20 ms for 16 MiB, in a thread that waits for disks anyway. The kernel writes other files meanwhile.
        os.fsync(file.fileno())


def _identity(segment: Segment, header: SegmentHeader) -> tuple[bytes, int, int, int, int, int, int]:
    return (_MAGIC, _VERSION, header.salt, segment.file_id, segment.base_offset, segment.next_offset, segment.size)


def check_index(path: str, segment: Segment, header: SegmentHeader) -> Mismatch | None:
    """Return why the index at `path` does not fit the segment, or None if it fits.

    It may be missing, cut, damaged or stale, or a directory.
    """
    try:
        with Path(path).open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size - _TRAILER_BYTES
            crc, left = 0, size_bytes
            while left > 0 and (piece := file.read(min(_READ_BYTES, left))):
                crc = crc32c(piece, crc)
                left -= len(piece)
            trailer = file.read(_TRAILER_BYTES)
    except FileNotFoundError:
        return Mismatch("an index", "no file")
    except IsADirectoryError:
        return Mismatch("an index", "a directory")
    if len(trailer) < _TRAILER_BYTES or trailer[60:] != _CRC.pack(crc32c(trailer[:60])):
        return Mismatch("a valid trailer in the last 64 bytes of the index", "other bytes")
    *identity, trailer_bytes, trailer_crc = _TRAILER.unpack_from(trailer)
    if tuple(identity) != _identity(segment, header):
        return Mismatch(f"the index of {_identity(segment, header)}", f"the index of {tuple(identity)}")
    if (trailer_bytes, trailer_crc) != (size_bytes, crc):
        expected = f"{trailer_bytes} bytes with CRC {trailer_crc:#010x}"
        return Mismatch(expected, f"{size_bytes} bytes with CRC {crc:#010x}")
    return None


class Index:
    """An open index; the caller closes it. A lookup returns candidates, which the caller reads and compares."""

    def __init__(self, path: str) -> None:
        """Open the index without a check; `open` checks it."""
        # The file may be shorter than the map size. LMDB never reads a read-only map after the end of the file.
        self._environment = lmdb.open(
            path, subdir=False, readonly=True, lock=False, max_dbs=_TABLES, create=False, map_size=_MAP_BYTES_MAX
        )

    @classmethod
    def open(cls, path: str, segment: Segment, header: SegmentHeader) -> "Index | None":
        """Return the open index at `path`, or None if it is missing, cannot be read, or does not fit."""
        try:
            return cls(path) if check_index(path, segment, header) is None else None
        except (OSError, lmdb.Error):
            return None

    def locate(self, offset: int) -> int | None:
        """Return the position of a batch at or before `offset`, at most 16 KiB before that of `offset`."""
        return self._at_or_before(b"batches", offset)

    def at(self, timestamp_us: int) -> int | None:
        """Return the base offset of a batch at or before a time, at most 16 KiB of batches before the last such one.

        Times may fall within the segment, so all rows up to the time are compared.
        """
        if timestamp_us < 0:
            return None
        with self._environment.begin() as transaction:
            cursor = transaction.cursor(self._table(transaction, b"times"))
            rows = takewhile(lambda row: U64.unpack(row[0])[0] <= timestamp_us, cursor)
            return max((int(U64.unpack(row[1])[0]) for row in rows), default=None)

    def ids(self, id_hash: int) -> list[int]:
        """Return the offsets of all records with this id hash, in order."""
        return self._many(b"ids", U32.pack(id_hash))

    @property
    def has_touches(self) -> bool:
        """Whether the index has the table `touches`: its builder had a function for the keys."""
        with self._environment.begin() as transaction:
            try:
                return self._table(transaction, b"touches") is not None
            except lmdb.NotFoundError:
                return False

    def touches(self, key: int) -> list[int]:
        """Return the offsets of all records that refer to a key, in order."""
        return self._many(b"touches", U64.pack(key))

    def _many(self, name: bytes, key: bytes) -> list[int]:
        with self._environment.begin() as transaction:
            table = self._table(transaction, name)
            cursor = transaction.cursor(table)
            if table is None or not cursor.set_key(key):
                return []
            return [U64.unpack(value)[0] for value in cursor.iternext_dup()]

    def batches(self) -> list[tuple[int, int]]:
        """Return all pairs of a base offset and a position."""
        with self._environment.begin() as transaction:
            cursor = transaction.cursor(self._table(transaction, b"batches"))
            return [(U64.unpack(key)[0], U64.unpack(value)[0]) for key, value in cursor]

    def close(self) -> None:
        """Close the file; no lookup may follow."""
        self._environment.close()

    def _at_or_before(self, name: bytes, key: int) -> int | None:
        if key < 0:
            return None
        with self._environment.begin() as transaction:
            cursor = transaction.cursor(self._table(transaction, name))
            found = cursor.set_range(U64.pack(key))
            if not (found and cursor.key() == U64.pack(key)) and not (cursor.prev() if found else cursor.last()):
                return None
            return int(U64.unpack(cursor.value())[0])

    def _table(self, transaction: Any, name: bytes) -> Any:
        return self._environment.open_db(name, txn=transaction, create=False)


def load_positions(file: File, path: str, segment: Segment | None, *, batch_bytes_max: int) -> SparsePositions:
    """Return the table of positions of a segment, from its index if that fits, else from the segment.

    `segment` is None while the segment's final size is unknown, and so whether an index fits. A damaged header is no
    obstacle as long as a salt fits (readable_header.py). Raises DamageError or ForeignError otherwise.
    """
    header = readable_header(file, path, batch_bytes_max=batch_bytes_max)
    end = file.size() if segment is None else segment.size
    indexed = None if segment is None else _indexed_positions(segment, header)
    if indexed is not None:
        return indexed
    positions = SparsePositions(header.salt_crc, end=end)
    walk = _walk(file, header, end, batch_bytes_max)
    for batch in walk:
        positions.add(batch.base_offset, walk.position)
    return positions


def _indexed_positions(segment: Segment, header: SegmentHeader) -> SparsePositions | None:
    """Return the positions in the segment's index; None if that is missing, does not fit or cannot be read."""
    index = Index.open(path_of_index(segment), segment, header)
    if index is None:
        return None
    positions = SparsePositions(header.salt_crc, end=segment.size)
    try:
        for base_offset, position in index.batches():
            positions.add(base_offset, position)
    except lmdb.Error:
        return None
    finally:
        index.close()
    return positions


def known_end(segment_path: str, file_id: int) -> int | None:
    """Return the first offset after those in the index of a segment, or None if no index of the file has a trailer.

    Whatever the manifest says: the caller compares it with that.
    """
    try:
        with Path(segment_path.removesuffix(".log") + ".index").open("rb") as file:
            file.seek(-_TRAILER_BYTES, os.SEEK_END)
            trailer = file.read(_TRAILER_BYTES)
    except OSError:
        return None
    if len(trailer) < _TRAILER_BYTES or trailer[60:] != _CRC.pack(crc32c(trailer[:60])):
        return None
    magic, version, _, indexed_id, _, next_offset, *_ = _TRAILER.unpack_from(trailer)
    return int(next_offset) if (magic, version, indexed_id) == (_MAGIC, _VERSION, file_id) else None


def _walk(
    file: File, header: SegmentHeader, end: int, batch_bytes_max: int, *, piece_bytes_max: int = _SCAN_BYTES
) -> BatchWalk:
    return BatchWalk(
        file,
        header.file_id,
        salt_crc=header.salt_crc,
        position=SEGMENT_HEADER_BYTES,
        end=end,
        batch_bytes_max=batch_bytes_max,
        piece_bytes_max=piece_bytes_max,
    )


def _header_of(file: File, path: str) -> SegmentHeader:
    header = SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), path)
    if header is None:
        raise DamageError(path, 0, "a segment header", "zeros")
    return header


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        Path(path).unlink()
