"""Recovery on a disk that forgets: what was durable is there, nothing is invented, no offset comes back."""

import errno
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.errors import DamageError, LockedError, LogError, LogFailed
from ambermq.log.format.segment import segment_path
from ambermq.log.manifest.manifest import load, manifest_path
from ambermq.log.recovery.recovery import Recovery
from tests.log.lives import CONFIG, DIRECTORY, Life, SharingWorkers, body_of, recovered_bodies
from tests.log.simulated import SimulatedStorage

ROOMY = replace(CONFIG, segment_bytes_min=1 << 16, segment_bytes_max=1 << 16)
"""Segments that hold all that a test writes."""


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(st.integers(0, 900), min_size=1, max_size=6)),
        st.tuples(st.sampled_from(["sync", "mark", "crash", "kill", "close"]), st.just([])),
    ),
    max_size=30,
)


def check_survivors(life: Life, kept: dict[int, bytes], old: Life, *, promised: int) -> dict[int, bytes]:
    """Hold what a recovery found against what was there before the crash, and return it."""
    before = kept | old.written
    now = recovered_bodies(life)
    assert list(now) == list(before)[: len(now)]
    assert now == {offset: before[offset] for offset in now}
    assert all(offset in now for offset in before if offset < promised)
    assert life.log.log_end > max(before, default=-1)
    return now


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 1 << 32))
def test_what_survives_a_crash_is_a_prefix_that_holds_all_that_was_durable(
    steps: list[tuple[str, list[int]]], seed: int
) -> None:
    """All below the durable end survives byte for byte, the rest is a prefix of what was written, offsets only rise."""
    rng = random.Random(seed)
    storage = SimulatedStorage(rng)
    life, kept, number = Life(storage), dict[int, bytes](), 0
    for step, sizes in [*steps, ("crash", [])]:
        match step:
            case "write":
                life.write([body_of(number + index, size) for index, size in enumerate(sizes)])
                number += len(sizes)
            case "sync":
                life.sync()
            case "mark":
                life.log.write_mark(2_000_000)
            case _:
                promised = life.log.durable_end
                if step == "crash":
                    storage.crash(rng)
                elif step == "kill":
                    promised = life.log.log_end
                    storage.kill()
                else:
                    promised = life.log.log_end
                    life.log.close()
                old, life = life, Life(storage)
                kept = check_survivors(life, kept, old, promised=promised)


def grown(seed: int) -> tuple[SimulatedStorage, dict[int, bytes], int]:
    """A log of several segments that lost power with some batches not synced: disk, bodies, durable end."""
    storage = SimulatedStorage(random.Random(seed))
    life = Life(storage)
    for number in range(20):
        life.write([body_of(number, 700)])
        if number % 4 == 0 and number < 17:
            life.sync()
    promised = life.log.durable_end
    storage.crash(random.Random(seed))
    return storage, life.written, promised


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ending", ["crash", "kill"])
def test_a_recovery_that_is_cut_short_anywhere_can_be_done_again(seed: int, ending: str) -> None:
    """For every n, a recovery that dies at its n-th call of the disk leaves what the next one recovers all the same."""
    storage, _, _ = grown(seed)
    expected = recovered_bodies(Life(storage))
    cuts = 0
    while True:
        storage, written, promised = grown(seed)
        storage.fail(errno.EIO, after=cuts)
        try:
            life = Life(storage)
        except (LogError, OSError):
            getattr(storage, ending)(*([random.Random(cuts)] if ending == "crash" else []))
        else:
            break
        life = Life(storage)
        assert recovered_bodies(life) == expected
        assert set(range(promised)) <= set(expected)
        assert life.log.log_end > max(written)
        cuts += 1
    assert cuts > 20


def test_a_log_that_was_killed_right_after_a_roll_goes_on_in_the_spare() -> None:
    """A roll does not wait for the manifest: recovery follows the active segment into the spare."""
    storage = SimulatedStorage(random.Random(1))
    life = Life(storage)
    life.write([body_of(0, 3000)])
    life.sync()
    life.write([body_of(1, 3000)])
    before = load(storage, DIRECTORY)
    life.write([body_of(2, 3000)])
    assert before == load(storage, DIRECTORY)
    assert before is not None
    assert before.spare is not None
    storage.kill()
    assert len(recovered_bodies(Life(storage))) == 3


def test_restarts_leave_no_empty_segments() -> None:
    """A segment that holds nothing below the durable end is given up, and its file deleted by the log that follows."""
    storage = SimulatedStorage(random.Random(1))
    for _ in range(4):
        life = Life(storage)
        life.log.completed()
        storage.kill()
    assert len([name for name in storage.listdir(f"{DIRECTORY}/segments") if name.endswith(".log")]) == 2


@pytest.mark.parametrize("where", [4096 + 4, 4096 + 20, 4096 + 70])
def test_a_flipped_bit_below_the_durable_end_is_damage(where: int) -> None:
    """A batch below D that is not what was written is never taken for a tail: file and position are named."""
    storage = SimulatedStorage(random.Random(1))
    life = Life(storage)
    for number in range(3):
        life.write([body_of(number, 100)])
        life.sync()
    storage.kill()
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    assert manifest.active is not None
    path = segment_path(DIRECTORY, manifest.active.file_id)
    storage.damage(path, where, bytes([storage.content(path)[where] ^ 4]))
    with pytest.raises(DamageError) as caught:
        Life(storage)
    assert (caught.value.file, caught.value.position) == (path, 4096)


def test_damage_in_a_sealed_segment_is_found_while_it_is_folded() -> None:
    """Sealed segments are checked batch by batch as `batches` yields them."""
    storage, _, _ = grown(5)
    Life(storage).log.close()
    manifest = load(storage, DIRECTORY)
    assert manifest is not None
    path = segment_path(DIRECTORY, manifest.sealed[0].file_id)
    storage.damage(path, 4096 + 64, b"\xff\xff")
    recovery = Recovery.open(storage, DIRECTORY, CONFIG, 0)
    with pytest.raises(DamageError) as caught:
        list(recovery.batches())
    assert (caught.value.file, caught.value.position) == (path, 4096)


@pytest.mark.parametrize("content", [b"", b"x", b'{"version": 1}\ncrc32c 00000000\n'])
def test_a_damaged_manifest_is_refused(content: bytes) -> None:
    """There is no fall-back: an older truth would lose segments silently."""
    storage, _, _ = grown(1)
    storage.content(manifest_path(DIRECTORY))[:] = content
    with pytest.raises(DamageError):
        Recovery.open(storage, DIRECTORY, CONFIG, 0)


def test_segments_without_a_manifest_are_refused() -> None:
    """A missing manifest beside segments is damage, not a new log."""
    storage, _, _ = grown(1)
    storage.unlink(manifest_path(DIRECTORY))
    with pytest.raises(DamageError):
        Recovery.open(storage, DIRECTORY, CONFIG, 0)


def test_a_held_directory_is_refused() -> None:
    """A second broker is told, and the first goes on."""
    storage = SimulatedStorage(random.Random(1))
    life = Life(storage)
    with pytest.raises(LockedError):
        Recovery.open(storage, DIRECTORY, CONFIG, 0)
    life.write([b"one"])
    life.sync()


def test_a_failed_recovery_releases_the_lock() -> None:
    """After a failure the directory can be opened again by the same process."""
    storage, _, _ = grown(1)
    storage.fail(errno.EIO, operation="read", after=1)
    with pytest.raises(LogFailed):
        Recovery.open(storage, DIRECTORY, CONFIG, 0)
    Recovery.open(storage, DIRECTORY, CONFIG, 0).close()
    assert Life(storage).found


def test_a_failed_start_leaves_no_file_behind() -> None:
    """Whatever call finds the disk full, the names are those of before, and a later start has every record."""
    storage = SimulatedStorage()
    life = Life(storage)
    offsets = life.write([body_of(1, 500)]) + life.write([body_of(2, 900)])
    life.sync()
    storage.kill()
    before, failures = _files(storage), 0
    for operation in ("open", "write", "sync", "sync_directory", "rename", "truncate"):
        for after in range(6):
            recovery = Recovery.open(storage, DIRECTORY, CONFIG, 1_000_000)
            storage.fail(errno.ENOSPC, after=after, operation=operation)
            try:
                recovery.log(SharingWorkers())
            except LogFailed as failure:
                recovery.close()
                if "after its manifest was replaced" not in str(failure):
                    failures += 1
                    assert _files(storage) == before, (operation, after)
            storage.kill()
            before = _files(storage)
    assert failures > 5
    assert set(offsets) <= set(recovered_bodies(Life(storage)))


def test_a_start_returns_what_earlier_segments_do_not_use() -> None:
    """A killed log leaves an allocated segment and spare: the next start needs no free byte for what it copies."""
    storage = SimulatedStorage()
    config = replace(CONFIG, segment_bytes_min=1 << 20, segment_bytes_max=1 << 20)
    life = Life(storage, config=config)
    life.log.completed()
    kept = []
    for number in range(40):
        kept += life.write([body_of(number, 4000)])
        life.sync()
        life.log.completed()
    storage.kill()
    storage.capacity_bytes -= storage.free_bytes("/")
    for _ in range(5):
        life = Life(storage, config=config)
        life.sync()
        life.log.completed()
        assert recovered_bodies(life).keys() >= set(kept)
        storage.kill()
    assert storage.free_bytes("/") > 0


def _files(storage: SimulatedStorage) -> set[str]:
    segments = f"{DIRECTORY}/segments"
    return {*storage.listdir(DIRECTORY), *(f"segments/{one}" for one in storage.listdir(segments))}
