"""The open log: one write a tick, group commit, rolls that never wait, and failures that end it."""

import errno
import random
import select
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError, LogFailed
from ambermq.log.format.segment import segment_path
from ambermq.log.manifest.manifest import LostRange, Manifest, load
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import InlineWorkers, ThreadWorkers
from ambermq.log.write.log import Log
from tests.log.simulated import SimulatedStorage

DIRECTORY = "/data"
NOW_US = 1_700_000_000_000_000
CONFIG = LogConfig(
    segment_bytes_min=16384,
    segment_bytes_max=65536,
    batch_bytes_target=4096,
    batch_bytes_max=16384,
    ballast_bytes=0,
)


def _open(storage: SimulatedStorage, config: LogConfig = CONFIG) -> Log:
    return Recovery.open(storage, DIRECTORY, config, NOW_US).log(InlineWorkers())


def _write(log: Log, *sizes: int, now_us: int = NOW_US) -> list[int]:
    """One tick of commands of one record each."""
    offsets = []
    for size in sizes:
        offsets.append(log.draft.add(1, timestamp_us=now_us, body=bytes(size)))
        log.draft.end_command()
    log.write(now_us)
    return offsets


def _sync(log: Log) -> None:
    log.request_sync()
    log.completed()


def _write_and_sync(log: Log) -> None:
    _write(log, 10)
    _sync(log)


def _manifest(storage: SimulatedStorage) -> Manifest:
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    return manifest


def _offsets(storage: SimulatedStorage, config: LogConfig = CONFIG) -> list[int]:
    """Open again and list what is found."""
    recovery = Recovery.open(storage, DIRECTORY, config, NOW_US)
    found = [record.offset for batch in recovery.batches() for record in batch.record_list()]
    recovery.close()
    return found


@pytest.mark.parametrize("sizes", [(10,), (10, 20, 30), (3000, 3000, 3000, 3000), (100,) * 120])
def test_a_tick_is_one_write(sizes: tuple[int, ...]) -> None:
    """However many records and batches a tick has, they go in by one call, and move the log's end."""
    storage = SimulatedStorage()
    log = _open(storage, LogConfig(ballast_bytes=0))
    start, writes = log.log_end, storage.calls["write"]
    offsets = _write(log, *sizes)
    assert storage.calls["write"] == writes + 1
    assert offsets == list(range(start, start + len(sizes)))
    assert log.log_end == log.draft.next_offset == start + len(sizes)
    assert log.unsynced_bytes > sum(sizes)


def test_an_empty_tick_writes_nothing() -> None:
    """A tick without records makes no call and moves nothing."""
    storage = SimulatedStorage()
    log = _open(storage)
    writes, end = storage.calls["write"], log.log_end
    log.write(NOW_US)
    log.request_sync()
    assert (storage.calls["write"], log.log_end, log.unsynced_bytes) == (writes, end, 0)


def test_durable_is_what_was_written_before_the_sync_was_asked_for() -> None:
    """What is written between a request and its sync counts with the next one only."""
    log = _open(SimulatedStorage())
    _write(log, 10)
    log.request_sync()
    end = log.log_end
    _write(log, 20)
    assert log.completed()
    assert log.durable_end == end < log.log_end
    assert log.unsynced_bytes > 0
    assert not log.completed()
    _sync(log)
    assert log.durable_end == log.log_end
    assert log.unsynced_bytes == 0


def test_many_requests_ride_one_sync() -> None:
    """Requests made before a sync begins cost one call together, and one without news costs none."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    before = storage.calls["datasync"]
    for _ in range(5):
        _write(log, 10)
        log.request_sync()
    log.completed()
    assert log.durable_end == log.log_end
    log.request_sync()
    log.completed()
    assert storage.calls["datasync"] == before + 1


def test_a_mark_is_written_once_for_each_durable_end() -> None:
    """Where no batch carries the durable end, an empty one does; it has no record and ends the need."""
    storage = SimulatedStorage()
    log = _open(storage)
    _write(log, 10)
    _sync(log)
    end = log.log_end
    assert not log.is_marked
    assert log.write_mark(NOW_US)
    assert log.is_marked
    assert not log.write_mark(NOW_US)
    assert log.unsynced_bytes == 64
    _sync(log)
    assert log.is_marked
    assert (log.log_end, log.durable_end) == (end, end)
    storage.kill()
    recovery = Recovery.open(storage, DIRECTORY, CONFIG, NOW_US)
    assert recovery.durable_end == end


@pytest.mark.parametrize("size", [10, 15_000])
def test_a_segment_of_marks_alone_is_not_sealed(size: int) -> None:
    """A segment of marks alone would have no offset: no request, no age and no large batch makes the log roll."""
    config = replace(CONFIG, segment_age_ms_max=1000)
    storage = SimulatedStorage()
    log = _open(storage, config)
    log.completed()
    _write_and_sync(log)
    assert log.seal_active(NOW_US)
    assert log.write_mark(NOW_US)
    _sync(log)
    log.completed()
    assert not log.seal_active(NOW_US)
    _write(log, size, now_us=NOW_US + 2_000_000)
    _sync(log)
    log.completed()
    assert log.seal_active(NOW_US + 2_000_000)
    log.completed()
    log.completed()
    assert [(one.base_offset, one.next_offset) for one in _manifest(storage).sealed] == [(0, 1), (1, 2)]


def test_a_roll_goes_to_the_spare_and_into_the_manifest() -> None:
    """Segments follow each other without a gap, each twice as large as the one before up to the largest."""
    storage = SimulatedStorage()
    log = _open(storage)
    offsets = []
    for _ in range(120):
        offsets += _write(log, 2000)
        _sync(log)
    log.completed()
    manifest = _manifest(storage)
    sizes = [segment.size for segment in manifest.sealed]
    assert len(sizes) >= 4
    assert all(bound - 2200 < size <= bound for size, bound in zip(sizes, [16384, 32768, 65536, 65536], strict=False))
    assert manifest.active is not None
    ends = [segment.next_offset for segment in manifest.sealed]
    assert [*(segment.base_offset for segment in manifest.sealed[1:]), manifest.active.base_offset] == ends
    assert manifest.spare not in {None, manifest.active.file_id, *(segment.file_id for segment in manifest.sealed)}
    storage.kill()
    assert _offsets(storage) == offsets


def test_a_segment_grows_where_no_spare_is_ready() -> None:
    """Writing never waits for a spare; publishing has no room any more past four times the largest size."""
    storage = SimulatedStorage()
    log = _open(storage)
    offsets = []
    while log.room_bytes():
        offsets += _write(log, 3000)
    assert 4 * 65536 < storage.size(segment_path(DIRECTORY, 1)) < 5 * 65536
    assert _manifest(storage).sealed == ()
    offsets += _write(log, 3000)
    _sync(log)
    assert log.room_bytes() == 0
    offsets += _write(log, 3000)
    assert log.room_bytes() > 0
    _sync(log)
    log.completed()
    assert len(_manifest(storage).sealed) == 1
    storage.kill()
    assert _offsets(storage) == offsets


def test_a_log_has_outgrown_its_segment_until_a_spare_lies_ready() -> None:
    """Then the next write rolls. A writer that waited for the roll would wait forever."""
    log = _open(SimulatedStorage())
    while not log.is_outgrown:
        assert log.room_bytes()
        _write(log, 3000)
    _sync(log)
    assert not log.is_outgrown
    _write(log, 3000)
    assert not log.is_outgrown


def test_a_log_that_is_given_up_writes_nothing_more() -> None:
    """Not even what is drafted, and not at the close; the first reason stays."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    offsets = _write(log, 10)
    log.draft.add(1, timestamp_us=NOW_US, body=b"half of something")
    writes = storage.calls["write"]
    log.fail(ZeroDivisionError("our mistake"))
    log.fail(KeyError("later"))
    for call in (lambda: log.write(NOW_US), log.completed, lambda: log.write_mark(NOW_US)):
        with pytest.raises(LogFailed, match="our mistake"):
            call()
    log.close()
    assert storage.calls["write"] == writes
    assert _offsets(storage) == offsets


def test_a_segment_is_sealed_for_its_age() -> None:
    """The first write after the age goes to the next segment; an idle log rolls by itself never."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    late_us = NOW_US + 1000 * CONFIG.segment_age_ms_max + 1
    _write(log, 10)
    _sync(log)
    log.write(late_us)
    log.completed()
    assert _manifest(storage).sealed == ()
    _write(log, 10, now_us=late_us)
    _sync(log)
    log.completed()
    assert len(_manifest(storage).sealed) == 1
    _write(log, 10, now_us=late_us + 1)
    _sync(log)
    log.completed()
    assert len(_manifest(storage).sealed) == 1


@pytest.mark.parametrize("operation", ["write", "datasync"])
def test_a_failure_is_fatal_and_never_retried(operation: str) -> None:
    """After a failed write or sync every call raises LogFailed, closing only gives back, and nothing is tried again."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    _write(log, 10)
    _sync(log)
    durable_end = log.durable_end
    storage.fail(errno.EIO, operation=operation)
    with pytest.raises(LogFailed, match=r"failed at position \d+ of /data/segments/0+1.log: .*Input/output"):
        _write_and_sync(log)
    calls = storage.calls["write"], storage.calls["datasync"]
    log.draft.add(1, timestamp_us=NOW_US)
    for call in (lambda: log.write(NOW_US), lambda: log.write_mark(NOW_US), log.request_sync, log.completed):
        with pytest.raises(LogFailed, match="failed at position"):
            call()
    log.close()
    assert (storage.calls["write"], storage.calls["datasync"]) == calls
    assert log.durable_end == durable_end
    _open(storage).close()


def test_closing_makes_all_durable_and_marks_it() -> None:
    """What was drafted is written, what was written is synced, and the next recovery knows it without a doubt."""
    storage = SimulatedStorage()
    log = _open(storage)
    offsets = _write(log, 10, 20)
    offsets.append(log.draft.add(1, timestamp_us=NOW_US))
    log.draft.end_command()
    log.close()
    storage.crash(random.Random(1))
    recovery = Recovery.open(storage, DIRECTORY, CONFIG, NOW_US)
    assert recovery.durable_end == log.log_end == offsets[-1] + 1
    assert [record.offset for batch in recovery.batches() for record in batch.record_list()] == offsets


def test_closing_after_a_failed_sync_repeats_none() -> None:
    """A sync that failed and was not heard of yet is not repeated by `close`, which raises instead."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    _write(log, 10)
    log.request_sync()
    storage.fail(errno.EIO, operation="datasync")
    log._workers.collect()
    with pytest.raises(LogFailed, match="sync failed"):
        log.close()
    assert storage.locks == {}
    assert storage.calls["datasync"] == 1


def test_a_sync_that_cannot_begin_fails_the_request() -> None:
    """The request itself raises the error, because no event would wake the loop."""
    log = _open(SimulatedStorage())
    log.completed()
    _write(log, 10)
    log._sync_lane.error = OSError(errno.EMFILE, "too many open files")
    with pytest.raises(LogFailed, match="sync failed"):
        log.request_sync()
    with pytest.raises(LogFailed, match="sync failed"):
        log.write(0)


def test_a_change_of_the_manifest_is_committed_beside_the_loop() -> None:
    """A requested change is committed by the housekeeping thread, which alone edits the manifest."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    generation = _manifest(storage).generation
    log.edit_manifest(lambda manifest: replace(manifest, generation=manifest.generation + 1, lost=(LostRange(5, 6),)))
    assert _manifest(storage).generation == generation
    log.completed()
    assert _manifest(storage).lost == (LostRange(5, 6),)


steps = st.one_of(
    st.tuples(st.just("write"), st.lists(st.integers(0, 3000), max_size=6)),
    st.tuples(st.sampled_from(["request", "complete", "mark"]), st.just([])),
)


@given(st.lists(steps, max_size=60), st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_the_ends_only_advance_and_power_loss_keeps_the_durable(steps: list[tuple], seed: int) -> None:
    """durable_end <= log_end, neither moves back, no offset comes twice, and a crash leaves what was durable."""
    storage = SimulatedStorage(random.Random(seed))
    log = _open(storage)
    written: list[int] = []
    ends = (log.durable_end, log.log_end)
    for step, sizes in steps:
        match step:
            case "write":
                written += _write(log, *sizes)
            case "request":
                log.request_sync()
            case "complete":
                log.completed()
            case _:
                log.write_mark(NOW_US)
        assert log.durable_end <= log.log_end
        assert (log.durable_end, log.log_end) == (max(ends[0], log.durable_end), max(ends[1], log.log_end))
        ends = (log.durable_end, log.log_end)
    assert written == sorted(set(written))
    storage.crash(random.Random(seed))
    found = _offsets(storage)
    assert found == written[: len(found)]
    assert [offset for offset in written if offset < log.durable_end] == [
        offset for offset in found if offset < log.durable_end
    ]
    assert not written or _open(storage).draft.next_offset > written[-1]


def test_every_storage_call_fails_once() -> None:
    """Whichever call fails, the log ends with LogFailed or goes on, and loses nothing that was durable."""
    good = SimulatedStorage()
    _write_until_failure(good)
    for failing in range(good.calls.total()):
        storage = SimulatedStorage(random.Random(failing))
        storage.fail(errno.EIO, after=failing)
        durable = _write_until_failure(storage)
        storage.crash(random.Random(failing))
        assert set(durable) <= set(_offsets(storage)), f"call {failing}"


def _write_until_failure(storage: SimulatedStorage) -> list[int]:
    """Write through two rolls, and return the offsets that were said to be durable."""
    written, durable_end = [], 0
    try:
        log = _open(storage)
        for _ in range(24):
            written += _write(log, 2500)
            _sync(log)
            durable_end = log.durable_end
        log.close()
        durable_end = log.durable_end
    except LogError:
        pass
    return [offset for offset in written if offset < durable_end]


def test_threads_sync_and_tell(tmp_path: Path) -> None:
    """On a real disk, the descriptor becomes readable until everything asked for is durable; rolls go on beside."""
    config = LogConfig(segment_bytes_min=65536, segment_bytes_max=65536, ballast_bytes=1 << 20)
    log = Recovery.open(DiskStorage(), str(tmp_path), config, NOW_US).log(ThreadWorkers())
    offsets = []
    for number in range(10_000):
        offsets += _write(log, 5000, 100, 10)
        log.request_sync()
        if number % 3 == 0:
            _await_durable(log)
        if len(log._housekeeper.manifest.sealed) == 2:
            break
    _await_durable(log)
    log.close()
    recovery = Recovery.open(DiskStorage(), str(tmp_path), config, NOW_US)
    assert [record.offset for batch in recovery.batches() for record in batch.record_list()] == offsets
    assert recovery.durable_end == log.log_end
    assert len(recovery.manifest.sealed) >= 2
    recovery.close()


def _await_durable(log: Log) -> None:
    while log.durable_end < log.log_end:
        assert select.select([log.fileno()], [], [], 10)[0]
        log.completed()
