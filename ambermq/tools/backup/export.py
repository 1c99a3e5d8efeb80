"""Export a backup: a snapshot of a log and the records of the messages that were live at its end.

Rule 1. The export reads with or without a running broker, and pins the manifest. All that it reads lies below the
end of the snapshot, so it was durable before the snapshot had a name.
Rule 2. A body with a wrong checksum ends the export: a backup holds all live messages, or there is none.
Rule 3. Segments are copied one after the other. So the export needs memory for the state and a few batches.
"""

import secrets
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from ambermq.engine.compaction.live_records import kept_offsets
from ambermq.engine.model.state import State
from ambermq.log.buffer import Buffer
from ambermq.log.compaction.record_copy import copy_records
from ambermq.log.errors import DamageError
from ambermq.log.format.batch import KEPT, DraftBatch, decode_header, encode_batch
from ambermq.log.format.segment import SegmentHeader
from ambermq.log.manifest.manifest import Manifest, Snapshot, manifest_path, snapshot_path
from ambermq.log.read.log_reader import LogReader, open_reader
from ambermq.log.segments.segment_reader import walk_whole
from ambermq.log.storage.interface import Storage
from ambermq.tools.backup.format import SNAPSHOT_PART, VERSION, Head, SegmentPart, Table, segment_part_name
from ambermq.tools.backup.progress import Progress, no_progress
from ambermq.tools.backup.writer import BackupWriter
from ambermq.tools.past.background_storage import storage_of
from ambermq.tools.past.snapshot_files import snapshot_named, snapshot_state

__all__ = ["export_backup"]

_READ_BYTES: Final = 1 << 20
_SEGMENT_BYTES: Final = 64 << 20


def export_backup(
    directory: str,
    name: str,
    path: str,
    *,
    as_directory: bool,
    bytes_per_s: int = 0,
    progress: Progress = no_progress,
) -> Table:
    """Write the snapshot `name` of the log in `directory` to a backup at `path`, and return its table of contents.

    `bytes_per_s` limits the rate of writing; 0 is no limit. Raises ToolError if there is no such snapshot, if it is
    damaged, or if the backup cannot be written; LogError as `open_reader` does; DamageError if the log is damaged.
    """
    with open_reader(directory, storage=storage_of(directory)) as reader:
        manifest = reader.manifest
        snapshot = snapshot_named(manifest, name, directory)
        state = snapshot_state(reader, snapshot)
        head = Head(manifest.log_id, snapshot.end, snapshot.time_us)
        with BackupWriter(path, as_directory=as_directory, head=head, bytes_per_s=bytes_per_s) as writer:
            _write_snapshot(writer, reader.storage, snapshot_path(directory, snapshot.file_id))
            kept = kept_offsets(state)
            _write_segments(writer, reader, kept, directory=directory, end=snapshot.end, progress=progress)
            table = _table(manifest, snapshot, state, writer)
            writer.finish(table)
            return table


def _table(manifest: Manifest, snapshot: Snapshot, state: State, writer: BackupWriter) -> Table:
    return Table(
        version=VERSION,
        log_id=manifest.log_id.hex(),
        epoch=manifest.epoch,
        name=snapshot.name,
        end=snapshot.end,
        time_us=snapshot.time_us,
        created_us=snapshot.created_us,
        queue_count=len(state.queues),
        message_count=sum(queue.depth for queue in state.queues.values()),
        parts=writer.parts,
    )


def _write_snapshot(writer: BackupWriter, storage: Storage, path: str) -> None:
    writer.begin(SNAPSHOT_PART)
    file, position = storage.open(path), 0
    try:
        while piece := file.read(_READ_BYTES, position):
            writer.write(piece)
            position += len(piece)
    finally:
        file.close()
    writer.end()


def _write_segments(
    writer: BackupWriter, reader: LogReader, kept: Sequence[int], *, directory: str, end: int, progress: Progress
) -> None:
    # One salt serves all segments: a salt separates batches of different writes to one file, and these files are
    # written only once.
    salt = secrets.randbits(32)
    segments = _Segments(writer, SegmentHeader(salt, reader.manifest.log_id, 0, 0, reader.manifest.epoch))
    for batch in _kept_batches(reader, kept, salt_crc=segments.header.salt_crc, progress=progress):
        segments.add(batch)
    segments.finish(end)
    copied = sum(part.segment.record_count for part in writer.parts if part.segment is not None)
    if copied < len(kept):
        path = manifest_path(directory)
        raise DamageError(path, 0, f"segments with {len(kept)} live records", f"{copied}")


def _kept_batches(
    reader: LogReader, kept: Sequence[int], *, salt_crc: int, progress: Progress
) -> Iterator[list[Buffer]]:
    """Yield batches of the kept records of all segments; a segment without kept records is not read."""
    for number, sealed in enumerate(reader.manifest.sealed):
        progress(number, len(reader.manifest.sealed) + 1)
        wanted = _within(kept, sealed.base_offset, sealed.next_offset)
        if wanted:
            part = reader.open_sealed(sealed)
            walks = walk_whole(part, base_offset=sealed.base_offset, next_offset=sealed.next_offset)
            yield from copy_records(walks, wanted, path=part.path, salt_crc=salt_crc)
            # A running broker does not need these pages, and they would replace its own in the page cache.
            part.file.drop_cache(0, 0)
            part.file.close()
    parts = reader.survey.parts
    ends = [part.header.base_offset for part in parts[1:]] + [reader.survey.valid_end]
    for part, end in zip(parts, ends, strict=True):
        wanted = _within(kept, part.header.base_offset, end)
        walk = part.walk(end=part.end)
        yield from copy_records((walk for _ in walk), wanted, path=part.path, salt_crc=salt_crc)


def _within(kept: Sequence[int], base_offset: int, next_offset: int) -> Sequence[int]:
    return kept[bisect_left(kept, base_offset) : bisect_left(kept, next_offset)]


class _Segments:
    """Writes batches as segments, each a part of the backup; together they answer for [0, end)."""

    __slots__ = ("_count", "_record_count", "_writer", "header")

    def __init__(self, writer: BackupWriter, header: SegmentHeader) -> None:
        self._writer = writer
        self._count = 0
        self._record_count = 0
        self.header = header
        """The header of the present segment, or of the first one."""

    def add(self, batch: list[Buffer]) -> None:
        head = decode_header(batch[0])
        if self._count and self._writer.part_length + head.length > _SEGMENT_BYTES:
            self._end(head.base_offset)
            self._begin(head.base_offset)
        elif not self._count:
            self._begin(0)
        for buffer in batch:
            self._writer.write(buffer)
        self._record_count += head.count

    def finish(self, end: int) -> None:
        if not self._count:
            # A backup without live messages has a segment too: it states that the events below its end are gone.
            self._begin(0)
            for buffer in _empty_batch(self.header.salt_crc):
                self._writer.write(buffer)
        self._end(end)

    def _begin(self, base_offset: int) -> None:
        self._count += 1
        self._record_count = 0
        self.header = self.header._replace(file_id=self._count, base_offset=base_offset)
        self._writer.begin(segment_part_name(self._count))
        self._writer.write(self.header.encode())

    def _end(self, next_offset: int) -> None:
        self._writer.end(SegmentPart(self.header.base_offset, next_offset, self._record_count))


def _empty_batch(salt_crc: int) -> list[Buffer]:
    return encode_batch(DraftBatch(0, flags=KEPT), salt_crc=salt_crc, durable_end=0, epoch=0)
