"""Spares, disk space and the page cache, beside the loop."""

import errno
import os
from dataclasses import replace

import pytest

from ambermq.log.config import LogConfig
from ambermq.log.errors import LogFailed
from ambermq.log.manifest.manifest import load, reserve_file_id
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.worker_threads import InlineLane, InlineWorkers
from ambermq.log.write.ballast import Ballast
from ambermq.log.write.housekeeping import _index_pauses
from ambermq.log.write.log import Log
from ambermq.log.write.spare import segment_bytes
from tests.log.simulated import SimulatedStorage

DIRECTORY = "/data"
NOW_US = 1_700_000_000_000_000
CONFIG = LogConfig(
    segment_bytes_min=16384,
    segment_bytes_max=16384,
    batch_bytes_target=4096,
    batch_bytes_max=16384,
    cached_bytes_max=40000,
    ballast_bytes=32768,
)


def _open(storage: SimulatedStorage) -> Log:
    return Recovery.open(storage, DIRECTORY, CONFIG, NOW_US).log(InlineWorkers())


def _fill_segment(log: Log) -> None:
    """Write and sync four fifths of a segment, and let the housekeeping follow."""
    for _ in range(4):
        log.draft.add(1, timestamp_us=NOW_US, body=bytes(3000))
        log.draft.end_command()
        log.write(NOW_US)
        log.request_sync()
        log.completed()
    log._housekeeping_lane.wake()
    log.completed()


def test_segments_double_from_the_smallest_to_the_largest() -> None:
    """A young log has small segments; each is as large as all before it and the smallest together."""
    config, sizes = LogConfig(), []
    for _ in range(6):
        sizes.append(segment_bytes(config, sum(sizes)))
    assert sizes == [mib << 20 for mib in (4, 8, 16, 32, 64, 64)]


def test_a_log_opens_with_spare_and_ballast() -> None:
    """After the first run the spare is named and empty, and the ballast held. At half a segment it is allocated."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    spare = f"{DIRECTORY}/segments/{manifest.spare:016x}.log"
    assert storage.size(spare) == 0
    assert storage.size(f"{DIRECTORY}/ballast") == 32768
    assert log.room_bytes() > 1 << 30
    _fill_segment(log)
    assert storage.size(spare) == 16384


@pytest.mark.parametrize(("number", "ends"), [(errno.EIO, True), (errno.ENOSPC, False), (errno.EDQUOT, False)])
def test_a_spare_that_cannot_be_allocated_ends_the_log_unless_the_disk_is_full(number: int, *, ends: bool) -> None:
    """On a full disk the log goes on with the spare as it is; what another failure left behind is not known."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    storage.fail(number, operation="allocate")
    if ends:
        with pytest.raises(LogFailed):
            _fill_segment(log)
        return
    _fill_segment(log)
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    assert storage.size(f"{DIRECTORY}/segments/{manifest.spare:016x}.log") == 0


def test_an_idle_log_takes_less_than_a_mebibyte() -> None:
    """A new log with the default sizes, and a start of it, allocate a small segment and no spare."""
    storage = SimulatedStorage()
    for _ in range(3):
        log = Recovery.open(storage, DIRECTORY, LogConfig(ballast_bytes=0), NOW_US).log(InlineWorkers())
        log.draft.add(1, timestamp_us=NOW_US)
        log.draft.end_command()
        log.write(NOW_US)
        log.request_sync()
        log.completed()
        assert storage.capacity_bytes - storage.free_bytes("/") < 1 << 20
        log.close()


def test_segments_return_what_they_do_not_use() -> None:
    """A sealed segment, and the active one of a closed log, are as long as what they hold."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    _fill_segment(log)
    assert log.seal_active(NOW_US)
    log.request_sync()
    log.completed()
    log.completed()
    sealed = log.manifest.sealed
    assert sealed[-1].size < 16384
    assert [storage.size(one.at(DIRECTORY).path) for one in sealed] == [one.size for one in sealed]
    log.draft.add(1, timestamp_us=NOW_US)
    log.draft.end_command()
    log.close()
    assert log.manifest.active is not None
    assert storage.size(f"{DIRECTORY}/segments/{log.manifest.active.file_id:016x}.log") < 8192
    assert storage.size(f"{DIRECTORY}/segments/{log.manifest.spare:016x}.log") == 0


def test_the_ballast_fits_the_file_system_and_is_shared() -> None:
    """It takes a fiftieth at most; a larger one of an earlier version is cut, and two logs hold it once."""
    storage = SimulatedStorage(capacity_bytes=10 << 20)
    storage.makedirs(DIRECTORY)
    storage.open(f"{DIRECTORY}/ballast", create=True).allocate(0, 1 << 20, zero=False)
    one = Ballast(storage, DIRECTORY, 128 << 20)
    assert one.missing_bytes == one.size == (10 << 20) // 50 & -4096
    assert one.allocate(0)
    assert one.allocate(1 << 40)
    assert one.missing_bytes == 0
    assert storage.size(f"{DIRECTORY}/ballast") == one.size
    assert one.release()
    assert not one.release()
    assert one.missing_bytes == one.size
    assert not one.allocate(10 << 20)
    storage.fail(errno.ENOSPC, operation="allocate")
    with pytest.raises(OSError, match="No space left"):
        one.allocate(0)
    assert not storage.exists(f"{DIRECTORY}/ballast")


def test_a_full_disk_refuses_publishing_gives_the_ballast_and_recovers() -> None:
    """No space for publishing: settlements get the ballast's; with space again both come back."""
    storage = SimulatedStorage(capacity_bytes=140_000)
    log = _open(storage)
    log.completed()
    assert log.room_bytes() > 0
    while log.room_bytes():
        _fill_segment(log)
    assert not storage.exists(f"{DIRECTORY}/ballast")
    end = log.log_end
    _fill_segment(log)
    assert log.durable_end == log.log_end == end + 4
    assert log.room_bytes() == 0
    storage.capacity_bytes = 1 << 30
    _fill_segment(log)
    assert storage.size(f"{DIRECTORY}/ballast") == 32768
    assert log.room_bytes() > 0


def test_a_write_that_finds_the_disk_full_gets_the_space_of_the_ballast() -> None:
    """Another program may take the last byte at any time: the write is repeated once, and fails without a ballast."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    storage.capacity_bytes -= storage.free_bytes("/")
    while storage.exists(f"{DIRECTORY}/ballast"):
        log.draft.add(1, timestamp_us=NOW_US, body=bytes(900))
        log.draft.end_command()
        log.write(NOW_US)
    assert log.room_bytes() == 0
    log.request_sync()
    log.completed()
    assert log.durable_end == log.log_end
    storage.capacity_bytes -= storage.free_bytes("/")
    log.draft.add(1, timestamp_us=NOW_US, body=bytes(9000))
    log.draft.end_command()
    with pytest.raises(LogFailed, match="No space left"):
        log.write(NOW_US)


def test_a_disk_that_a_write_finds_full_has_no_room_from_then_on() -> None:
    """The loop knows it at once: housekeeping may come seconds later."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    housekeeper = log._housekeeper
    assert housekeeper.space.free_bytes > 0
    assert housekeeper.release_ballast()
    assert housekeeper.space == (0, True, log.written_bytes)
    assert log.room_bytes() == 0
    assert not housekeeper.release_ballast()


def test_a_log_opens_on_a_full_disk() -> None:
    """A disk without room for segment, spare and ballast opens all the same, without room for publishing."""
    storage = SimulatedStorage(capacity_bytes=12_000)
    log = _open(storage)
    log.completed()
    assert log.room_bytes() == 0
    log.draft.add(1, timestamp_us=NOW_US)
    log.draft.end_command()
    log.write(NOW_US)
    log.request_sync()
    assert log.completed()
    assert log.durable_end == log.log_end


def test_another_failure_of_the_housekeeping_is_fatal() -> None:
    """A spare that cannot be made for another reason than space ends the log."""
    storage = SimulatedStorage()
    log = _open(storage)
    storage.fail(errno.EIO, operation="allocate")
    with pytest.raises(LogFailed, match="housekeeping failed"):
        log.completed()


def test_the_page_cache_of_old_segments_is_dropped() -> None:
    """Sealed segments beyond the bound leave the page cache, the oldest first and each once."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    for _ in range(6):
        _fill_segment(log)
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    kept_bytes = sum(segment.size for segment in manifest.sealed[storage.calls["drop_cache"] :])
    assert storage.calls["drop_cache"] > 0
    assert kept_bytes <= CONFIG.cached_bytes_max < kept_bytes + 16384


def test_removed_files_are_deleted_and_forgotten() -> None:
    """What the manifest lists as removed is unlinked, and then taken off the list."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    first = load(storage, DIRECTORY)
    assert first is not None
    assert first.active is not None
    storage.kill()
    log = _open(storage)
    recovered = load(storage, DIRECTORY)
    assert recovered is not None
    assert recovered.removed
    log.completed()
    last = load(storage, DIRECTORY)
    assert last is not None
    assert last.removed == ()
    names = storage.listdir(f"{DIRECTORY}/segments")
    assert not [file_id for file_id in recovered.removed if f"{file_id:016x}.log" in names]


@pytest.mark.parametrize(("is_busy", "allocations"), [(False, 4), (True, 1)])
def test_zeros_are_written_while_the_log_is_quiet(
    is_busy: bool, allocations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet log's spare is written with zeros 4 MiB at a time; a busy one's is promised at once."""
    config = LogConfig(segment_bytes_min=16 << 20, segment_bytes_max=16 << 20, ballast_bytes=0)
    storage = SimulatedStorage()
    log = Recovery.open(storage, DIRECTORY, config, NOW_US).log(InlineWorkers())

    def pause(lane: InlineLane, seconds: float) -> bool:
        log.written_bytes += is_busy << 20
        return False

    monkeypatch.setattr(InlineLane, "pause", pause)
    before = storage.calls["allocate"]
    log._housekeeper._fill(storage.open(f"{DIRECTORY}/spare", create=True), config.segment_bytes_max)
    assert storage.calls["allocate"] - before == allocations
    assert storage.size(f"{DIRECTORY}/spare") == config.segment_bytes_max


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_manifest_that_may_not_stay_is_fatal(error: int) -> None:
    """Replaced and not synced, it is not tried again, even on a full disk; what is told of it is what readers see."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    before = log.manifest
    log.edit_manifest(reserve_file_id)
    storage.fail(error, operation="sync_directory")
    with pytest.raises(LogFailed, match="sync failed after its manifest was replaced"):
        log.completed()
    assert log.manifest == load(storage, DIRECTORY) != before
    with pytest.raises(LogFailed):
        log.completed()
    assert log.manifest == load(storage, DIRECTORY)


def test_a_manifest_that_a_full_disk_refuses_is_tried_again() -> None:
    """Before it is replaced nothing has changed, so the edit is made later, once."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    before = log.manifest
    log.edit_manifest(reserve_file_id)
    storage.fail(errno.ENOSPC, operation="sync")
    log.completed()
    assert log.manifest.generation > before.generation
    assert log.manifest.next_file_id == before.next_file_id + 1
    assert log.manifest == load(storage, DIRECTORY)


def _reopened(storage: SimulatedStorage) -> Log:
    """A log after a kill, with files to be deleted; nothing was done beside it yet."""
    _open(storage).completed()
    storage.kill()
    log = _open(storage)
    assert log.manifest.removed
    return log


@pytest.mark.parametrize("error", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY])
@pytest.mark.parametrize("operation", ["unlink", "sync_directory", "listdir"])
def test_what_may_not_be_deleted_is_told_once_and_tried_again(error: int, operation: str) -> None:
    """It costs room and one message, however often it is refused; it goes when it may, and later trouble is told."""
    storage = SimulatedStorage()
    log = _reopened(storage)
    one = frozenset(log.manifest.removed[:1])
    deleter = log._housekeeper._file_deletion
    for _ in range(3):
        storage.fail(error, operation=operation)
        assert deleter.delete(one) == frozenset()
    (told,) = log.take_faults()
    assert "deletion of unneeded files failed; the broker tries again" in told
    assert os.strerror(error) in told
    log.completed()
    assert log.manifest.removed == ()
    storage.fail(error, operation=operation)
    deleter.delete(one)
    assert len(log.take_faults()) == 1


def test_a_refusal_stops_nothing_else() -> None:
    """The log goes on while a file stays, and others go."""
    storage = SimulatedStorage()
    log = _reopened(storage)
    log.edit_manifest(reserve_file_id)
    storage.fail(errno.EACCES, operation="unlink")
    log.completed()
    assert len(log.manifest.removed) == 1
    assert len(log.take_faults()) == 1
    _fill_segment(log)
    assert log.durable_end == log.log_end
    assert log.manifest.removed == ()


def test_a_disk_that_fails_to_delete_fails_the_log() -> None:
    """A refusal is one thing, an input or output error another."""
    storage = SimulatedStorage()
    log = _reopened(storage)
    storage.fail(errno.EIO, operation="unlink")
    with pytest.raises(LogFailed, match="housekeeping failed"):
        log.completed()


def test_a_full_disk_is_given_the_space_of_files_to_delete_first() -> None:
    """A spare that finds no space does not keep away the deletion that would make it."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    storage.kill()
    log = _open(storage)
    recovered = load(storage, DIRECTORY)
    assert recovered is not None
    assert recovered.removed
    storage.unlink(f"{DIRECTORY}/ballast")
    storage.capacity_bytes -= storage.free_bytes(DIRECTORY) - 2000
    log.completed()
    last = load(storage, DIRECTORY)
    assert last is not None
    assert last.removed == ()
    assert log.deletion_count


@pytest.mark.parametrize(("mib_per_s", "pauses"), [(0, 10), (4, 10), (4.1, 3), (64, 3), (64.1, 40)])
def test_an_index_is_built_slowly_beside_a_log_that_is_written_to(mib_per_s: float, pauses: int) -> None:
    """Faster beside a busy log, since indexes fall behind; hardly at all beside one at full speed."""
    assert _index_pauses(mib_per_s * (1 << 20)) == pauses


def test_room_is_what_is_free_beside_the_reserve_and_the_ballast() -> None:
    """The ballast counts until it is allocated: it takes its bytes from what publishing may use."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    housekeeper = log._housekeeper
    assert housekeeper.space.free_bytes == storage.free_bytes("/") - CONFIG.segment_bytes_min
    assert housekeeper.release_ballast()
    assert housekeeper._sample().free_bytes == storage.free_bytes("/") - CONFIG.segment_bytes_min - CONFIG.ballast_bytes


def test_no_index_is_built_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take the bytes that settlements need; the build comes when there is room again."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    builds: list[bool] = []
    monkeypatch.setattr(type(log._housekeeper), "_build_indexes", lambda self: builds.append(self.space.is_full))
    capacity_bytes = storage.capacity_bytes
    storage.capacity_bytes -= storage.free_bytes("/")
    log._housekeeping_lane.wake()
    log.completed()
    assert builds == []
    storage.capacity_bytes = capacity_bytes
    log._housekeeping_lane.wake()
    log.completed()
    assert builds == [False]


@pytest.mark.parametrize(
    ("disk_bytes", "expected"), [(1 << 40, 1 << 20), (64 * 16384 * 5 + 64 * 100, 5 * 16384), (1 << 20, 16384)]
)
def test_the_largest_segment_is_a_small_part_of_the_file_system(disk_bytes: int, expected: int) -> None:
    """A multiple of the smallest one, which is the bound below; the configuration is the bound above."""
    storage = SimulatedStorage(capacity_bytes=disk_bytes)
    config = replace(CONFIG, segment_bytes_max=1 << 20, ballast_bytes=0)
    log = Recovery.open(storage, DIRECTORY, config, NOW_US).log(InlineWorkers())
    assert log._housekeeper._segment_bytes_max == expected
    assert not log.is_congested


def test_a_log_with_a_segment_starts_with_a_whole_one() -> None:
    """A small one is for a log with little content."""
    config = replace(CONFIG, segment_bytes_min=1 << 20, segment_bytes_max=4 << 20, batch_bytes_max=1 << 19)
    storage, sizes = SimulatedStorage(), []
    for _ in range(3):
        log = Recovery.open(storage, DIRECTORY, config, NOW_US).log(InlineWorkers())
        sizes.append(log._active.size)
        for _ in range(4):
            log.completed()
            log.draft.add(1, timestamp_us=NOW_US, body=bytes(400_000))
            log.draft.end_command()
            log.write(NOW_US)
            log.request_sync()
        log.completed()
        log.close()
    assert sizes[0] == 256 * 1024
    assert min(sizes[1:]) >= 1 << 20
