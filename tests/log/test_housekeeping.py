"""Spares, disk space and the page cache, beside the loop."""

import errno

import pytest

from log.config import LogConfig
from log.errors import LogFailed
from log.housekeeping import segment_bytes
from log.log import Log
from log.manifest import load
from log.recovery import Recovery
from log.worker import InlineLane, InlineWorkers
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
    """After the first run the spare is allocated and named, and the ballast held."""
    storage = SimulatedStorage()
    log = _open(storage)
    log.completed()
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    assert storage.size(f"{DIRECTORY}/segments/{manifest.spare:016x}.log") == 16384
    assert storage.size(f"{DIRECTORY}/ballast") == 32768
    assert log.room_bytes() > 1 << 30


def test_a_full_disk_refuses_publishing_gives_the_ballast_and_recovers() -> None:
    """No space for a spare: no room, but settlements get the ballast's; with space again both come back."""
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
        log._written_bytes += is_busy << 20
        return False

    monkeypatch.setattr(InlineLane, "pause", pause)
    before = storage.calls["allocate"]
    log._housekeeper._fill(storage.open(f"{DIRECTORY}/spare", create=True), config.segment_bytes_max)
    assert storage.calls["allocate"] - before == allocations
    assert storage.size(f"{DIRECTORY}/spare") == config.segment_bytes_max
