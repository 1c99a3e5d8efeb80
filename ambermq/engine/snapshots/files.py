"""Snapshot files: writing a state, reading it, and finding the newest valid one.

Rule 1. A file is synced when `write_snapshot` returns. The caller makes its name durable and adds it to the manifest.
Rule 2. Beside a running broker writing is slow on purpose: `throttle` is called after each block. The file is synced
        every 2 MiB, because a long sync delays those of the log. Then the bytes leave the page cache, so that the next
        pages are warm: pages that the machine has not used lately stop a processor for milliseconds.
Rule 3. A file is compared with its entry in the manifest: log, end and time. Any difference is a DamageError, or a
        ForeignError if a newer version wrote the file. No caller gets a partial state.
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
"""throttle(number of bytes just processed) -> whether to stop. It may wait as long as needed."""


class WriteCancelled(Exception):
    """`throttle` stopped the work; a partly written file is useless."""


@dataclass(frozen=True, slots=True)
class NewestSnapshot:
    """The newest valid snapshot."""

    snapshot: Snapshot | None
    """None if no snapshot is valid."""
    state: State | None
    """The state in the snapshot."""
    faults: list[LogError] = field(default_factory=list)
    """The errors of the newer snapshots."""


def write_snapshot(
    storage: Storage, path: str, state: State, *, log_id: bytes, end: int, throttle: Throttle = lambda _: False
) -> int:
    """Write `state`, the fold of all events below `end`, to a new file, and sync it; return the file's size.

    Raises OSError and WriteCancelled. Then the caller must unlink the file.
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
    """Return the state in a snapshot of this log. Raises DamageError and ForeignError."""
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
            # The manifest names the file, so it was a snapshot. A wrong magic is damage, not a newer version.
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
    """Read a snapshot completely, as a check; two implementations compute samples of the CRCs.

    Raises DamageError and ForeignError, and LogError if they disagree.
    """
    load_snapshot(storage, directory, manifest, snapshot, checksum=SampledChecksum())


def read_whole(storage: Storage, directory: str, manifest: Manifest, snapshot: Snapshot, throttle: Throttle) -> None:
    """Read a snapshot's file and check each byte, block by block, without building a state.

    Raises DamageError, ForeignError, and WriteCancelled if `throttle` stops it.
    """
    path = snapshot_path(directory, snapshot.file_id)
    read_whole_file(storage, path, log_id=manifest.log_id, snapshot=snapshot, throttle=throttle)


def header_of(storage: Storage, path: str) -> tuple[Header, int]:
    """Return the header of a snapshot's file, and the file's size. Raises DamageError, ForeignError and OSError."""
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
    """Read and check the file at `path` in the same way as `read_whole`."""
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
    """Return the newest valid snapshot that does not end above `end_max`, and the errors of the newer ones.

    The caller must report these errors.
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
