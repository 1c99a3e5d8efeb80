"""Starts on a directory with damage, and on a disk that is full: what is refused, what a repair mends, what stays."""

import errno
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ambermq.log.errors import DamageError, LogFailed
from ambermq.log.format.segment import segment_path
from ambermq.log.manifest.manifest import load, manifest_path
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.recovery.repair import apply
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import InlineWorkers, ThreadWorkers
from ambermq.log.write.ballast import Ballast
from tests.log.lives import CONFIG, DIRECTORY, Life, SharingWorkers, body_of, recovered_bodies
from tests.log.recovery.test_recovery import ROOMY
from tests.log.simulated import SimulatedStorage

_OPEN_FILES = Path("/proc/self/fd")


def _zero(storage: SimulatedStorage, path: str, length: int, *, position: int = 0) -> None:
    storage.damage(path, position, bytes(length))


def _stopped() -> tuple[SimulatedStorage, dict[int, bytes], str]:
    """Return a log that was stopped in its first segment, what it holds, and the path of that segment."""
    storage = SimulatedStorage()
    life = Life(storage, config=ROOMY)
    for number in range(5):
        life.write([body_of(number, 40)])
        life.sync()
    life.log.close()
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    assert manifest.active is not None
    return storage, life.written, segment_path(DIRECTORY, manifest.active.file_id)


@pytest.mark.parametrize("length", [512, 4096, 4096 + 200])
def test_a_zeroed_start_of_the_active_segment_is_damage_and_a_repair_saves_the_rest(length: int) -> None:
    """It opened as an empty log, and all that was accepted was gone without a word."""
    storage, written, path = _stopped()
    _zero(storage, path, length)
    with pytest.raises(DamageError, match="expected a segment header, found zeros"):
        Recovery.open(storage, DIRECTORY, ROOMY, 1)
    assert apply(DIRECTORY, ROOMY, storage).is_needed
    found = recovered_bodies(Life(storage, config=ROOMY))
    assert found == {offset: body for offset, body in written.items() if offset in found}
    assert len(found) >= len(written) - (0 if length <= 4096 else 2)


@pytest.mark.parametrize("length", [512, 4096])
def test_a_zeroed_header_after_a_roll_is_damage_where_a_later_batch_tells_what_was_durable(length: int) -> None:
    """The manifest does not know that something was written there. The batches do."""
    storage = SimulatedStorage()
    life = Life(storage, config=ROOMY)
    life.write([body_of(0, 40)])
    life.sync()
    assert life.log.seal_active(2)
    for number in range(1, 4):
        life.write([body_of(number, 40)])
        life.sync()
        life.log.completed()
    life.log.close()
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    assert manifest.active is not None
    _zero(storage, segment_path(DIRECTORY, manifest.active.file_id), length)
    with pytest.raises(DamageError, match="expected a segment header, found zeros"):
        Recovery.open(storage, DIRECTORY, ROOMY, 1)
    apply(DIRECTORY, ROOMY, storage)
    assert recovered_bodies(Life(storage, config=ROOMY)) == life.written


def test_a_log_without_a_header_and_without_a_batch_is_repaired() -> None:
    """What a start refuses a repair mends."""
    storage, _, path = _stopped()
    _zero(storage, path, len(storage.content(path)))
    with pytest.raises(DamageError):
        Recovery.open(storage, DIRECTORY, ROOMY, 1)
    apply(DIRECTORY, ROOMY, storage)
    assert recovered_bodies(Life(storage, config=ROOMY)) == {}


@pytest.mark.parametrize("junk", [b"X", b"AMBERSEH" + bytes(4088), bytes(range(256)) * 40])
def test_a_damaged_spare_without_a_batch_is_moved_aside(junk: bytes) -> None:
    """A repair said that the log opens, and no start opened it."""
    storage, written, _ = _stopped()
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    assert manifest.spare is not None
    file = storage.open(segment_path(DIRECTORY, manifest.spare), create=True)
    file.write([junk], 0)
    file.sync()
    with pytest.raises(DamageError):
        Recovery.open(storage, DIRECTORY, ROOMY, 1)
    repair = apply(DIRECTORY, ROOMY, storage)
    assert (repair.is_needed, repair.lost) == (True, ())
    assert recovered_bodies(Life(storage, config=ROOMY)) == written
    assert storage.listdir(f"{DIRECTORY}/aside") != []


@pytest.mark.parametrize("size", [1, 8, 20, 3155, 4095])
def test_a_spare_with_a_part_of_a_header_has_no_batch(size: int) -> None:
    """The first write to it failed, and the broker was killed: the next start refused the log as damaged."""
    storage, written, path = _stopped()
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    assert manifest.spare is not None
    file = storage.open(segment_path(DIRECTORY, manifest.spare), create=True)
    file.truncate(0)
    file.write([storage.content(path)[:size]], 0)
    file.sync()
    assert recovered_bodies(Life(storage, config=ROOMY)) == written


@pytest.mark.parametrize("position", [0, 8, 12, 20, 33, 41, 49, 60])
def test_a_wrong_byte_in_the_header_of_a_segment_that_is_read_is_damage(position: int) -> None:
    """A wrong magic was called another program's file, with the advice to use another version."""
    storage, written, path = _stopped()
    storage.damage(path, position, bytes([storage.content(path)[position] ^ 0x55]))
    with pytest.raises(DamageError):
        Recovery.open(storage, DIRECTORY, ROOMY, 1)
    apply(DIRECTORY, ROOMY, storage)
    assert recovered_bodies(Life(storage, config=ROOMY)) == written


@pytest.mark.parametrize("length", [1, 4096])
def test_a_log_without_its_manifest_keeps_a_segment_with_a_damaged_header(length: int) -> None:
    """All its batches were given up as lost."""
    storage = SimulatedStorage()
    written = dict[int, bytes]()
    paths = []
    for number in range(3):
        life = Life(storage, config=ROOMY)
        life.write([body_of(number, 40)])
        life.sync()
        written |= life.written
        life.log.close()
        manifest = load(storage, DIRECTORY)
        assert manifest is not None
        assert manifest.active is not None
        paths.append(segment_path(DIRECTORY, manifest.active.file_id))
    storage.unlink(manifest_path(DIRECTORY))
    _zero(storage, paths[1], length)
    apply(DIRECTORY, ROOMY, storage)
    assert recovered_bodies(Life(storage, config=ROOMY)) == written


def test_an_active_segment_cut_off_after_a_stop_is_damage() -> None:
    """A clean stop tells the manifest how far the log went."""
    storage, _, path = _stopped()
    storage.damage(path, 4096, bytes(len(storage.content(path)) - 4096))
    with pytest.raises(DamageError):
        Recovery.open(storage, DIRECTORY, ROOMY, 1)


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_start_behind_a_snapshot_misses_a_sealed_segment_that_is_gone_or_cut(is_missing: bool) -> None:
    """It reads no sealed segment below its snapshot, but each must be there."""
    storage, _, path = _stopped()
    Life(storage, config=ROOMY).log.close()
    if is_missing:
        storage.unlink(path)
    else:
        storage.truncate(path, 4200)
    expected = "expected a segment that the manifest names, found no file" if is_missing else "expected a file of"
    with pytest.raises(DamageError, match=expected):
        Recovery.open(storage, DIRECTORY, ROOMY, 1)


def test_an_index_that_knows_more_than_its_segment_is_damage(tmp_path: Path) -> None:
    """As where an older manifest was put back: the newer events would be gone without a word."""
    directory, storage = str(tmp_path), DiskStorage()
    life = Life(storage, directory, config=ROOMY)
    old = manifest_of(tmp_path)
    life.write([b"one"])
    life.sync()
    life.log.close()
    later = Life(storage, directory, config=ROOMY)
    later.log.completed()
    later.log.close()
    Path(manifest_path(directory)).write_bytes(old)
    Path(segment_path(directory, 1)).write_bytes(Path(segment_path(directory, 1)).read_bytes()[:4096])
    with pytest.raises(DamageError, match="which its index has"):
        Recovery.open(storage, directory, ROOMY, 1)


def manifest_of(directory: Path) -> bytes:
    """Return the bytes of a manifest."""
    return Path(manifest_path(str(directory))).read_bytes()


@pytest.mark.skipif(not _OPEN_FILES.exists(), reason="this system has no list of open files")
def test_a_start_leaves_no_file_open(tmp_path: Path) -> None:
    """Not even the spare, which is read at every start, whether it is allocated or not."""
    config = replace(ROOMY, ballast_bytes=0)
    counts = []
    for _ in range(3):
        log = Recovery.open(DiskStorage(), str(tmp_path / "data"), config, 1).log(InlineWorkers())
        log.completed()
        for _ in range(50):
            log.draft.add(1, timestamp_us=1, body=bytes(800))
            log.draft.end_command()
            log.write(1)
        log.request_sync()
        log.completed()
        log.close()
        counts.append(sum(str(tmp_path) in str(each.readlink()) for each in _OPEN_FILES.iterdir() if each.is_symlink()))
    assert counts == [0, 0, 0]


def test_a_start_that_fails_closes_its_lanes() -> None:
    """The next try of the same process begins as the first one did."""
    Life(storage := SimulatedStorage()).log.close()
    recovery, workers = Recovery.open(storage, DIRECTORY, CONFIG, 1), ThreadWorkers()
    storage.fail(errno.EIO, operation="sync")
    with pytest.raises(LogFailed):
        recovery.log(workers)
    assert workers.fileno() < 0


def test_the_end_of_a_chain_keeps_the_segments_before_it() -> None:
    """A batch of the tail whose bodies are wrong ends the log there; all before it stays, whatever its segment."""
    life = Life(SimulatedStorage(random.Random(0)))
    for number in range(12):
        life.write([body_of(number, 900)])
    storage = life.storage
    assert isinstance(storage, SimulatedStorage)
    storage.kill()
    for name in storage.listdir(f"{DIRECTORY}/segments"):
        path = f"{DIRECTORY}/segments/{name}"
        at = bytes(storage.content(path)).find(body_of(11, 900))
        if at >= 0:
            storage.damage(path, at, bytes([storage.content(path)[at] ^ 1]))
    assert list(recovered_bodies(Life(storage)).values()) == [body_of(number, 900) for number in range(11)]


_BALLAST = replace(ROOMY, ballast_bytes=32_768)


def _with_tail(*, has_removed: bool) -> SimulatedStorage:
    """Return a disk with a ballast, and a log whose tail has ten kilobytes; perhaps with files to be deleted."""
    storage = SimulatedStorage()
    Life(storage, config=_BALLAST).log.completed()
    storage.kill()
    life = Life(storage, config=_BALLAST)
    if not has_removed:
        life.log.completed()
    for number in range(10):
        life.write([body_of(number, 1000)])
    storage.kill()
    assert storage.exists(f"{DIRECTORY}/ballast")
    return storage


@pytest.mark.parametrize(("spared_bytes", "keeps"), [(12_000, True), (9_000, False), (0, False)])
def test_a_start_on_a_nearly_full_disk_gives_the_ballast_for_the_tail(spared_bytes: int, *, keeps: bool) -> None:
    """The copy of the tail needs as many bytes as it has, besides those of a start."""
    storage = _with_tail(has_removed=False)
    recovery = Recovery.open(storage, DIRECTORY, _BALLAST, 1)

    def fill(_recovery: Recovery) -> None:
        storage.capacity_bytes -= storage.free_bytes("/") - (1 << 20) - spared_bytes

    with pytest.MonkeyPatch.context() as patch:
        # It comes after what the log itself gives back.
        patch.setattr(Recovery, "_empty_spare", fill)
        recovery.log(SharingWorkers())
    assert storage.exists(f"{DIRECTORY}/ballast") is keeps


def test_a_start_on_a_full_disk_deletes_what_the_manifest_has_removed() -> None:
    """Before it gives the ballast away."""
    storage = _with_tail(has_removed=True)
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    removed = [segment_path(DIRECTORY, file_id) for file_id in manifest.removed]
    left = [path for path in removed if storage.exists(path)]
    assert left
    storage.capacity_bytes -= storage.free_bytes("/") - 20_000
    recovery = Recovery.open(storage, DIRECTORY, _BALLAST, 1)
    recovery._make_room(Ballast(storage, DIRECTORY, _BALLAST.ballast_bytes))
    assert [path for path in left if storage.exists(path)] == []


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_start_gives_back_what_is_not_written_and_keeps_what_follows_a_fault(*, is_damaged: bool) -> None:
    """The bytes behind a fault are for a report; the allocated rest of a segment is for nothing."""
    storage = _with_tail(has_removed=False)
    names = storage.listdir(f"{DIRECTORY}/segments")
    paths = [f"{DIRECTORY}/segments/{name}" for name in names]
    (path,) = [path for path in paths if body_of(9, 1000) in bytes(storage.content(path))]
    if is_damaged:
        at = bytes(storage.content(path)).find(body_of(5, 1000))
        storage.damage(path, at, bytes([storage.content(path)[at] ^ 1]))
    recovery = Recovery.open(storage, DIRECTORY, _BALLAST, 1)
    recovery._make_room(Ballast(storage, DIRECTORY, _BALLAST.ballast_bytes))
    assert body_of(9, 1000) in bytes(storage.content(path))
    assert storage.size(path) < 20_000


def test_a_close_makes_all_files_durable() -> None:
    """Those before the active one too, whose sync nothing has requested."""
    life = Life(storage := SimulatedStorage(random.Random(0)))
    for number in range(30):
        life.write([body_of(number, 700)])
        # The housekeeping makes the spares.
        life.log.completed()
    assert life.log._unsealed
    life.log.close()
    storage.crash(random.Random(1))
    assert recovered_bodies(Life(storage)) == life.written


def test_a_write_that_is_repeated_on_a_full_disk_is_there() -> None:
    """The first one has written nothing."""
    life = Life(storage := SimulatedStorage(), config=_BALLAST)
    life.log.completed()
    life.write([body_of(1, 100)])
    storage.fail(errno.ENOSPC, operation="write")
    life.write([body_of(2, 100)])
    life.sync()
    storage.crash(random.Random(0))
    assert list(recovered_bodies(Life(storage, config=_BALLAST)).values())[-2:] == [body_of(1, 100), body_of(2, 100)]


def test_a_fold_from_an_offset_reads_all_segments_behind_it() -> None:
    """Those before it are left out, and none of the others."""
    life = Life(storage := SimulatedStorage(random.Random(0)))
    for number in range(60):
        life.write([body_of(number, 700)])
        life.sync()
    life.log.close()
    recovery = Recovery.open(storage, DIRECTORY, CONFIG, 1)
    sealed = recovery.manifest.sealed
    assert len(sealed) > 3
    for segment in sealed[:3]:
        offsets = [record.offset for batch in recovery.batches(segment.next_offset) for record in batch.record_list()]
        assert sorted(offsets) == [offset for offset in sorted(life.written) if offset >= segment.next_offset]
    recovery.close()
