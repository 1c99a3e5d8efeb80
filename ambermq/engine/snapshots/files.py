"""Snapshot files: a state written to one, read from one, and the newest that can be believed.

Rule 1. A file is synced when `write_snapshot` returns; that its name is durable, and named, is its writer's business.
Rule 2. Writing is slow on purpose where somebody runs beside: `throttle` is asked after each block. What is written is
        synced every 2 MiB, since a long sync delays those of the log, and leaves the page cache then, so that the next
        pages are warm ones: pages that the machine has not used lately stop a processor for milliseconds.
Rule 3. What is read is held against what the manifest says of it: log, end and time. Any doubt is a DamageError, or a
        ForeignError where a newer version wrote it; there is no half a state.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ambermq.engine.model.state import State
from ambermq.engine.snapshots.state_codec import ImageFault, image_of, state_of
from ambermq.log.errors import DamageError, ForeignError, LogError
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.checksum_pair import SampledChecksum
from ambermq.log.manifest.manifest import Manifest, Snapshot, snapshot_path
from ambermq.log.storage.interface import File, Storage
from ambermq.snapshot.block_file import (
    HEADER_BYTES,
    BlockFault,
    BlockWriter,
    Checksum,
    ForeignBlocks,
    Header,
    decode_header,
    read_blocks,
)

__all__ = [
    "NewestSnapshot",
    "WriteCancelled",
    "check_snapshot",
    "header_of",
    "load_snapshot",
    "newest_snapshot",
    "read_whole",
    "read_whole_file",
    "write_snapshot",
]

_SYNC_BYTES: Final = 2 << 20
_END_POSITION: Final = 32

Throttle = Callable[[int], bool]
"""throttle(bytes just written) -> whether to stop; it may wait as long as it likes."""


class WriteCancelled(Exception):
    """`throttle` has said so: what was written is worth nothing."""


@dataclass(frozen=True, slots=True)
class NewestSnapshot:
    """The newest snapshot that can be believed."""

    snapshot: Snapshot | None
    """None where there is none."""
    state: State | None
    """The state that it holds."""
    faults: list[LogError] = field(default_factory=list)
    """What is wrong with the newer ones."""


def write_snapshot(
    storage: Storage, path: str, state: State, *, log_id: bytes, end: int, throttle: Throttle = lambda _: False
) -> int:
    """Write `state`, the fold of all events below `end`, to a new file, synced; return the file's size.

    Raises OSError, and WriteCancelled; the file is there then, and to be unlinked.
    """
    file = storage.open(path, create=True)
    try:
        size = _write(file, state, Header(state.epoch, log_id, end, state.time_us), throttle)
        file.sync()
        file.drop_cache(0, 0)
    finally:
        file.close()
    return size


def _write(file: File, state: State, header: Header, throttle: Throttle) -> int:
    writer = BlockWriter(crc32c)
    position = synced = 0
    for buffers in writer.all(header, image_of(state)):
        file.write(buffers, position)
        written = writer.position - position
        position = writer.position
        if position - synced >= _SYNC_BYTES:
            file.datasync()
            file.drop_cache(synced, position - synced)
            synced = position
        if throttle(written):
            raise WriteCancelled
    return position


def load_snapshot(
    storage: Storage, directory: str, manifest: Manifest, snapshot: Snapshot, *, checksum: Checksum = crc32c
) -> State:
    """Return the state that a snapshot of this log holds. Raises DamageError and ForeignError."""
    path = snapshot_path(directory, snapshot.file_id)
    try:
        file = storage.open(path)
    except FileNotFoundError as error:
        raise DamageError(path, 0, f"the snapshot {snapshot.name!r} that the manifest names", "no file") from error
    except OSError as error:
        raise DamageError(path, 0, "a file that can be opened", str(error)) from error
    try:
        return _load(file, path, log_id=manifest.log_id, snapshot=snapshot, checksum=checksum)
    except ForeignBlocks as fault:
        if not fault.position:
            # The manifest names it, so it was a snapshot once: without its magic it is not a newer one.
            raise DamageError(path, 0, fault.expected, fault.found) from fault
        raise ForeignError(
            f"{path} at position {fault.position}: expected {fault.expected}, found {fault.found}"
        ) from fault
    except BlockFault as fault:
        raise DamageError(path, fault.position, fault.expected, fault.found) from fault
    except OSError as error:
        raise DamageError(path, 0, "a file that can be read", str(error)) from error
    except ImageFault as fault:
        raise DamageError(path, HEADER_BYTES, "the blocks of a whole state", str(fault)) from fault
    finally:
        file.close()


def _load(file: File, path: str, *, log_id: bytes, snapshot: Snapshot, checksum: Checksum) -> State:
    header = _check_header(file, path, log_id=log_id, snapshot=snapshot)
    state = state_of(read_blocks(file.read, checksum))
    if (state.epoch, state.time_us) != (header.epoch, header.time_us):
        raise DamageError(path, _END_POSITION, f"a state at {header.time_us} us", f"{state.time_us}")
    return state


def _check_header(file: File, path: str, *, log_id: bytes, snapshot: Snapshot) -> Header:
    header = decode_header(file.read(HEADER_BYTES, 0), crc32c)
    if header.log_id != log_id:
        raise DamageError(path, 16, f"a snapshot of log {log_id.hex()}", header.log_id.hex())
    if (header.end, header.time_us) != (snapshot.end, snapshot.time_us):
        expected, found = (
            f"end {end} at {time_us} us"
            for end, time_us in ((snapshot.end, snapshot.time_us), (header.end, header.time_us))
        )
        raise DamageError(path, _END_POSITION, expected, found)
    return header


def check_snapshot(storage: Storage, directory: str, manifest: Manifest, snapshot: Snapshot) -> None:
    """Read all of a snapshot and throw it away; two implementations compute samples of the CRCs.

    Raises DamageError and ForeignError, and LogError if they disagree.
    """
    load_snapshot(storage, directory, manifest, snapshot, checksum=SampledChecksum())


def read_whole(storage: Storage, directory: str, manifest: Manifest, snapshot: Snapshot, throttle: Throttle) -> None:
    """Read a snapshot's file and check its every byte, a block at a time, without making a state of it.

    Raises DamageError and ForeignError, and WriteCancelled where `throttle` says so.
    """
    path = snapshot_path(directory, snapshot.file_id)
    read_whole_file(storage, path, log_id=manifest.log_id, snapshot=snapshot, throttle=throttle)


def header_of(storage: Storage, path: str) -> tuple[Header, int]:
    """Return the header of a snapshot's file, and the bytes of the file. Raises DamageError, ForeignError, OSError."""
    file = storage.open(path)
    try:
        return decode_header(file.read(HEADER_BYTES, 0), crc32c), file.size()
    except ForeignBlocks as fault:
        raise ForeignError(f"{path}: expected {fault.expected}, found {fault.found}") from fault
    except BlockFault as fault:
        raise DamageError(path, fault.position, fault.expected, fault.found) from fault
    finally:
        file.close()


def read_whole_file(storage: Storage, path: str, *, log_id: bytes, snapshot: Snapshot, throttle: Throttle) -> None:
    """Do as `read_whole` with the file at `path`."""
    try:
        file = storage.open(path)
        try:
            _check_header(file, path, log_id=log_id, snapshot=snapshot)
            for block in read_blocks(file.read, crc32c):
                if throttle(sum(map(len, block.parts))):
                    raise WriteCancelled
        finally:
            file.close()
    except BlockFault as fault:
        raise DamageError(path, fault.position, fault.expected, fault.found) from fault
    except OSError as error:
        raise DamageError(path, 0, "a file that can be read", str(error)) from error


def newest_snapshot(
    storage: Storage, directory: str, manifest: Manifest, *, end_max: int | None = None
) -> NewestSnapshot:
    """Return the newest snapshot that can be believed, none that ends above `end_max`, and what is wrong with newer.

    A damaged one is never silently passed over: the caller tells the faults.
    """
    faults: list[LogError] = []
    for snapshot in _newest_first(manifest, end_max):
        try:
            state = load_snapshot(storage, directory, manifest, snapshot)
        except (DamageError, ForeignError) as fault:
            faults.append(fault)
        else:
            return NewestSnapshot(snapshot, state, faults)
    return NewestSnapshot(None, None, faults)


def _newest_first(manifest: Manifest, end_max: int | None) -> Iterator[Snapshot]:
    for snapshot in reversed(manifest.snapshots):
        if end_max is None or snapshot.end <= end_max:
            yield snapshot
