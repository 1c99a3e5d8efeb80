"""Repair: afterwards the log opens, holds all that can be believed, and tells what is lost; nothing is thrown away."""

import errno
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.errors import DamageError, LockedError, LogError
from ambermq.log.format.segment import segment_path
from ambermq.log.manifest.manifest import load, manifest_path
from ambermq.log.read.body_reads import DAMAGED
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.recovery.repair import apply, plan
from tests.log.lives import CONFIG, DIRECTORY, Life, body_of
from tests.log.simulated import SimulatedStorage


def closed(*, batches: int = 14) -> tuple[SimulatedStorage, dict[int, bytes]]:
    """A log at rest of several segments and two epochs, and its bodies."""
    storage, written = SimulatedStorage(random.Random(3)), dict[int, bytes]()
    for epoch in range(2):
        life = Life(storage)
        for number in range(batches // 2):
            life.write([body_of(100 * epoch + number, 700), body_of(1000 + 100 * epoch + number, 200)])
            life.sync()
        life.log.close()
        written |= life.written
    return storage, written


def segment_paths(storage: SimulatedStorage) -> list[str]:
    """Paths of the sealed segments and the active one."""
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    assert manifest.active is not None
    file_ids = [one.file_id for one in manifest.sealed] + [manifest.active.file_id]
    return [segment_path(DIRECTORY, file_id) for file_id in file_ids]


def flip(storage: SimulatedStorage, path: str, position: int) -> None:
    """Flip one bit on the platter."""
    storage.damage(path, position, bytes([storage.content(path)[position] ^ 4]))


def repaired_offsets(storage: SimulatedStorage) -> tuple[set[int], set[int]]:
    """Offsets that a repaired log holds, and those that it records as lost."""
    life = Life(storage)
    lost = {offset for one in life.recovery.manifest.lost for offset in range(one.first_offset, one.next_offset)}
    offsets = [record.offset for record in life.found]
    assert offsets == sorted(set(offsets))
    life.log.close()
    return set(offsets), lost


def test_a_whole_log_needs_no_repair() -> None:
    """Nothing is planned and nothing changes."""
    storage, _ = closed()
    before = load(storage, DIRECTORY)
    assert not plan(DIRECTORY, CONFIG, storage).is_needed
    assert apply(DIRECTORY, CONFIG, storage).steps() == []
    assert load(storage, DIRECTORY) == before


@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("position", [4, 20, 70])
def test_a_damaged_batch_is_lost_and_all_others_are_kept(which: int, position: int) -> None:
    """A batch whose head is wrong goes, those before and behind stay, and the damaged file is set aside as it was."""
    storage, written = closed()
    path = segment_paths(storage)[which]
    flip(storage, path, 4096 + position)
    damaged = bytes(storage.content(path))
    planned = plan(DIRECTORY, CONFIG, storage)
    assert [fault.position for fault in planned.damaged_segments[0].faults] == [4096]
    assert storage.listdir(f"{DIRECTORY}/segments")
    apply(DIRECTORY, CONFIG, storage)
    (aside,) = storage.listdir(f"{DIRECTORY}/aside")
    assert aside.startswith(path.rpartition("/")[2])
    assert bytes(storage.content(f"{DIRECTORY}/aside/{aside}")) == damaged
    offsets, lost = repaired_offsets(storage)
    assert offsets | lost >= set(written)
    assert len(set(written) & lost) == 2
    assert not plan(DIRECTORY, CONFIG, storage).is_needed


def test_damaged_bodies_stay_known_as_damaged() -> None:
    """A body that fails its CRC needs no repair, and one that is copied in a repair does not become valid by it."""
    storage, _ = closed()
    path = segment_paths(storage)[0]
    flip(storage, path, 4096 + 64 + 96 + 300)
    assert not plan(DIRECTORY, CONFIG, storage).is_needed
    length = int.from_bytes(storage.content(path)[4096 + 4 : 4096 + 8], "little")
    flip(storage, path, 4096 + length + 20)
    assert apply(DIRECTORY, CONFIG, storage).is_needed
    log = Life(storage).log
    assert log.bodies.get(0) is None
    log.completed()
    assert log.bodies.get(0) is DAMAGED


def test_a_missing_segment_is_recorded_as_lost() -> None:
    """All its offsets are lost, and the log opens."""
    storage, written = closed()
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    gone = manifest.sealed[1]
    storage.unlink(segment_path(DIRECTORY, gone.file_id))
    with pytest.raises(DamageError):
        list(Recovery.open(storage, DIRECTORY, CONFIG, 0).batches())
    storage.kill()
    apply(DIRECTORY, CONFIG, storage)
    offsets, lost = repaired_offsets(storage)
    assert lost == set(range(gone.base_offset, gone.next_offset))
    assert offsets >= set(written) - lost


@pytest.mark.parametrize("is_missing", [False, True])
def test_a_damaged_manifest_is_rebuilt(is_missing: bool) -> None:
    """Every record comes back, none twice, and offsets go on above all that there were."""
    storage, written = closed()
    if is_missing:
        storage.unlink(manifest_path(DIRECTORY))
    else:
        flip(storage, manifest_path(DIRECTORY), 30)
    repair = apply(DIRECTORY, CONFIG, storage)
    assert repair.manifest_fault is not None
    offsets, lost = repaired_offsets(storage)
    assert offsets == set(written)
    assert not lost & set(written)
    assert Life(storage).log.log_end > max(written)


def test_nothing_to_repair_from_is_told() -> None:
    """Without manifest and segments there is no log."""
    storage = SimulatedStorage(random.Random(1))
    with pytest.raises(LogError):
        plan(DIRECTORY, CONFIG, storage)


def test_a_running_log_is_not_repaired() -> None:
    """Repair needs the lock that the broker holds."""
    storage, _ = closed()
    Life(storage)
    for attempt in (plan, apply):
        with pytest.raises(LockedError):
            attempt(DIRECTORY, CONFIG, storage)


def test_a_repair_that_is_cut_short_anywhere_can_be_done_again() -> None:
    """For every n, a repair that dies at its n-th call of the disk is completed by the next one."""
    cuts = 0
    while True:
        storage, written = closed()
        flip(storage, segment_paths(storage)[0], 4096 + 20)
        storage.fail(errno.EIO, after=cuts)
        try:
            apply(DIRECTORY, CONFIG, storage)
        except (LogError, OSError):
            storage.crash(random.Random(cuts))
        else:
            break
        apply(DIRECTORY, CONFIG, storage)
        offsets, lost = repaired_offsets(storage)
        assert offsets | lost >= set(written)
        assert len(set(written) & lost) == 2
        cuts += 1
    assert cuts > 20


@settings(max_examples=60, deadline=None)
@given(
    flips=st.lists(st.tuples(st.integers(0, 10), st.integers(0, 9000)), max_size=6),
    is_manifest_lost=st.booleans(),
)
def test_whatever_is_damaged_a_repaired_log_opens(flips: list[tuple[int, int]], is_manifest_lost: bool) -> None:
    """Any bits may flip: afterwards the log opens, invents nothing, and tells which durable records are gone."""
    storage, written = closed()
    paths = segment_paths(storage)
    for which, position in flips:
        path = paths[which % len(paths)]
        if position < len(storage.content(path)):
            flip(storage, path, position)
    if is_manifest_lost:
        flip(storage, manifest_path(DIRECTORY), 3)
    try:
        apply(DIRECTORY, CONFIG, storage)
    except LogError:
        assert is_manifest_lost
        return
    offsets, lost = repaired_offsets(storage)
    assert offsets <= set(written)
    if not is_manifest_lost:
        assert set(written) <= offsets | lost
