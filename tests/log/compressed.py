"""A log whose sealed segments were compressed, on a simulated disk or a real one."""

from array import array
from dataclasses import replace

from ambermq.log.compaction.record_copy import bodies_of_walk
from ambermq.log.compaction.rewrite_tasks import GroupTask, pack_offsets, rewrite_group
from ambermq.log.config import LogConfig
from ambermq.log.format.batch import COMPRESSED
from ambermq.log.format.segment import SegmentHeader, segment_path
from ambermq.log.manifest import manifest as manifests
from ambermq.log.manifest.manifest import Horizon, Manifest, SealedSegment
from ambermq.log.segments.segment_reader import SegmentReader, open_sealed, walk_whole
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage
from tests.log.lives import CONFIG, DIRECTORY

__all__ = ["compress_sealed", "compressed_count", "compressed_parts", "words_of"]


def words_of(number: int, size: int) -> bytes:
    """A body that no other number has, and that becomes much smaller."""
    return (b"%08d " % number * (size // 9 + 1))[:size]


def compress_sealed(storage: Storage, directory: str = DIRECTORY) -> Manifest:
    """Rewrite the sealed segments of a log at rest as one compressed segment that keeps all; the horizon is its end."""
    manifest = _loaded(storage, directory)
    kept = [array("Q", _offsets_in(storage, directory, manifest, one)) for one in manifest.sealed]
    segments = tuple(one.at(directory) for one in manifest.sealed)
    packed = tuple(map(pack_offsets, kept))
    task = GroupTask(segments, manifest.log_id, packed, directory, CONFIG.batch_bytes_max, compresses=True)
    new = rewrite_group(storage, task)
    file_id = manifest.next_file_id
    file = storage.open(f"{directory}/{new.name}", create=True)
    header = SegmentHeader.decode(file.read(4096, 0), new.name)
    assert header is not None
    file.write([header._replace(file_id=file_id).encode()], 0)
    file.sync()
    file.close()
    storage.rename(f"{directory}/{new.name}", segment_path(directory, file_id))
    sealed = SealedSegment(file_id, new.base_offset, new.next_offset, new.size)

    def edit(old: Manifest) -> Manifest:
        horizon = Horizon(new.next_offset, 1)
        changed = replace(old, generation=old.generation + 1, next_file_id=file_id + 1, sealed=(sealed,))
        return replace(changed, horizon=horizon)

    return manifests.commit(storage, directory, edit)


def compressed_parts(storage: Storage, directory: str = DIRECTORY) -> list[tuple[SegmentReader, list[int]]]:
    """The sealed segments, open, and where in each of them compressed batches lie."""
    manifest = _loaded(storage, directory)
    found = []
    for one in manifest.sealed:
        part = open_sealed(storage, directory, manifest, one, batch_bytes_max=LogConfig().batch_bytes_max)
        walk = part.walk()
        found.append((part, [walk.position for header in walk if header.flags & COMPRESSED]))
    return found


def compressed_count(directory: str) -> int:
    """How many batches of a log on the disk are compressed."""
    count = 0
    for part, places in compressed_parts(DiskStorage(), directory):
        part.file.close()
        count += len(places)
    return count


def _loaded(storage: Storage, directory: str) -> Manifest:
    manifest = manifests.load(storage, directory)
    assert manifest is not None
    return manifest


def _offsets_in(storage: Storage, directory: str, manifest: Manifest, sealed: SealedSegment) -> list[int]:
    part = open_sealed(storage, directory, manifest, sealed, batch_bytes_max=CONFIG.batch_bytes_max)
    offsets = []
    for walk in walk_whole(part, base_offset=sealed.base_offset, next_offset=sealed.next_offset):
        bodies_of_walk(walk, part.path)
        offsets += [record.offset for record in walk.batch().record_list()]
    part.file.close()
    return offsets
