"""The times of sealed segments: whatever the clock did, the manifest has the bounds of their records."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.errors import LogError
from ambermq.log.format.segment import SegmentHeader
from ambermq.log.format.time_range import TimeRange
from ambermq.log.manifest.manifest import Manifest, load, store
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.recovery.repair import apply
from ambermq.log.segments.segment_reader import open_sealed
from ambermq.log.write.active_segment import ActiveSegment
from tests.log.lives import CONFIG, DIRECTORY, Life
from tests.log.simulated import SimulatedStorage


def manifest_of(storage: SimulatedStorage) -> Manifest:
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    return manifest


def told_and_true(storage: SimulatedStorage) -> list[tuple[TimeRange | None, TimeRange]]:
    """For each sealed segment the times in the manifest, and the bounds of its records."""
    manifest, found = manifest_of(storage), []
    for sealed in manifest.sealed:
        part = open_sealed(storage, DIRECTORY, manifest, sealed, batch_bytes_max=CONFIG.batch_bytes_max)
        walk = part.walk()
        times = [record.timestamp_us for _ in walk for record in walk.batch().record_list()]
        found.append((sealed.times, TimeRange(min(times), max(times))))
    return found


def live(life: Life, rng: random.Random, ticks: int) -> None:
    """Some ticks at times that rise and fall, also within one tick."""
    for _ in range(ticks):
        for _ in range(rng.randrange(1, 4)):
            life.log.draft.add(7, timestamp_us=rng.randrange(1_000_000), body=bytes(rng.randrange(2000)))
            life.log.draft.end_command()
        life.log.write(rng.randrange(1_000_000))
        if rng.randrange(3):
            life.sync()


@settings(max_examples=30)
@given(st.integers(0, 1 << 32))
def test_the_manifest_has_the_times_of_each_sealed_segment(seed: int) -> None:
    """After rolls, restarts and crashes the range has each record; it is never narrower, and rarely much wider."""
    storage, rng = SimulatedStorage(), random.Random(seed)
    for _ in range(3):
        life = Life(storage)
        live(life, rng, 20)
        if rng.randrange(2):
            life.log.close()
        else:
            storage.crash(rng)
    Life(storage)
    rows = told_and_true(storage)
    assert len(rows) > 2
    for told, true in rows:
        assert told is not None
        assert told.min_us <= true.min_us <= true.max_us <= told.max_us


def test_a_roll_seals_exact_times() -> None:
    """Where a tick does not span two segments the range is that of the records, not that of the segment before."""
    storage = SimulatedStorage()
    life = Life(storage)
    for number in range(12):
        life.log.draft.add(7, timestamp_us=1000 - number, body=bytes(3000))
        life.log.draft.end_command()
        life.log.write(number)
        life.sync()
    rows = told_and_true(storage)
    assert len(rows) > 3
    assert [told for told, _ in rows[1:]] == [true for _, true in rows[1:]]


def test_a_repair_finds_the_times_again() -> None:
    """A rebuilt manifest has the times of the segments that it lists."""
    storage = SimulatedStorage()
    life = Life(storage)
    live(life, random.Random(3), 20)
    life.log.close()
    storage.unlink(f"{DIRECTORY}/MANIFEST")
    with pytest.raises(LogError):
        Recovery.open(storage, DIRECTORY, CONFIG, 1_000_000)
    apply(DIRECTORY, CONFIG, storage)
    assert all(told == true for told, true in told_and_true(storage))


def test_a_manifest_without_times_is_continued() -> None:
    """A directory of version 0.1.0 has none: they are unknown until new segments are sealed."""
    storage = SimulatedStorage()
    life = Life(storage)
    live(life, random.Random(4), 10)
    life.log.close()
    old = manifest_of(storage)
    untimed = tuple(type(one)(one.file_id, one.base_offset, one.next_offset, one.size) for one in old.sealed)
    store(storage, DIRECTORY, replace(old, sealed=untimed, generation=old.generation + 1))
    Life(storage)
    assert [one.times is None for one in manifest_of(storage).sealed] == [True] * len(untimed) + [False]


def test_the_times_of_a_segment_are_the_bounds_of_all_its_writes() -> None:
    """Of those before a start too; a segment without records has none."""
    header = SegmentHeader(salt=1, log_id=bytes(16), file_id=1, base_offset=0, epoch=1)
    file: Any = None
    empty = ActiveSegment(file, header, position=0, size=100, allocated_bytes=0)
    assert empty.times is None
    segment = ActiveSegment(file, header, position=10, size=100, allocated_bytes=0, times=TimeRange(50, 60))
    for low_us, high_us, expected in ((55, 58, (50, 60)), (40, 45, (40, 60)), (52, 70, (40, 70)), (10, 90, (10, 90))):
        segment.widen(low_us, high_us)
        assert segment.times == expected
