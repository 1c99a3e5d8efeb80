"""The manifest: its bytes, its edits, and its swap on a disk that fails."""

import errno
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ambermq.log.errors import DamageError, ForeignError, LogFailed
from ambermq.log.format.time_range import TimeRange
from ambermq.log.manifest.manifest import (
    ActiveSegment,
    Horizon,
    LostRange,
    Manifest,
    SealedSegment,
    Snapshot,
    begin_epoch,
    commit,
    create,
    decode,
    encode,
    forget_lost,
    forget_removed,
    forget_snapshots,
    load,
    name_snapshot,
    name_spare,
    named_files,
    reserve_file_id,
    roll,
    store,
)
from tests.golden import GOLDEN_DIRECTORY
from tests.log.simulated import SimulatedStorage

GOLDEN = GOLDEN_DIRECTORY / "manifest.txt"
BEFORE_ARCHIVE = GOLDEN.with_name("manifest_before_archive.txt")
BEFORE_SNAPSHOTS = GOLDEN.with_name("manifest_before_snapshots.txt")
OFFSETS = st.integers(0, 1 << 62)
SNAPSHOT = st.builds(Snapshot, OFFSETS, st.text(max_size=9), OFFSETS, OFFSETS, OFFSETS, OFFSETS, st.booleans())
TIMES = st.none() | st.builds(TimeRange, OFFSETS, OFFSETS)
SEALED = st.builds(SealedSegment, OFFSETS, OFFSETS, OFFSETS, OFFSETS, TIMES)
MANIFESTS = st.builds(
    Manifest,
    version=st.just(1),
    log_id=st.binary(min_size=16, max_size=16),
    generation=OFFSETS,
    epoch=OFFSETS,
    next_file_id=OFFSETS,
    durable_end=OFFSETS,
    start_offset=OFFSETS,
    sealed=st.lists(SEALED, max_size=3).map(tuple),
    active=st.none() | st.builds(ActiveSegment, OFFSETS, OFFSETS),
    spare=st.none() | OFFSETS,
    removed=st.lists(OFFSETS, max_size=3).map(tuple),
    lost=st.lists(st.builds(LostRange, OFFSETS, OFFSETS), max_size=3).map(tuple),
    snapshots=st.lists(SNAPSHOT, max_size=3).map(tuple),
    horizon=st.none() | st.builds(Horizon, OFFSETS, OFFSETS),
    archive=st.lists(st.text(max_size=9), max_size=3).map(tuple),
)


def example() -> Manifest:
    """A manifest with every field filled."""
    return Manifest(
        version=1,
        log_id=bytes(range(16)),
        generation=9,
        epoch=2,
        next_file_id=6,
        durable_end=1048580,
        start_offset=1048576,
        sealed=(SealedSegment(1, 0, 500, 65536), SealedSegment(3, 500, 1048580, 8192)),
        active=ActiveSegment(4, 1048580),
        spare=5,
        removed=(2,),
        lost=(LostRange(10, 20),),
        snapshots=(Snapshot(2, "nightly", 480, 1_700_000_000_000_000, 1_700_000_000_500_000, 4096, False),),
        horizon=Horizon(480, 1_700_000_000_000_000),
        archive=("archive/date=2023-11-14/events.parquet",),
    )


@given(MANIFESTS)
def test_decode_undoes_encode(manifest: Manifest) -> None:
    """decode(encode(x)) == x."""
    assert decode(encode(manifest), file="m") == manifest


def test_the_bytes_are_as_they_were() -> None:
    """The format of version 1 stays readable and is written the same."""
    assert encode(example()) == GOLDEN.read_bytes()


def test_a_manifest_without_snapshots_is_read() -> None:
    """One that was written before there were any names none, and history begins with the first event."""
    old = replace(example(), removed=(2,), snapshots=(), horizon=None, archive=())
    assert decode(BEFORE_SNAPSHOTS.read_bytes(), file="m") == old


def test_a_manifest_without_archive_is_read() -> None:
    """One that was written before there were compactions has put nothing aside."""
    assert decode(BEFORE_ARCHIVE.read_bytes(), file="m") == replace(example(), archive=())


def test_a_segment_has_its_times_if_they_are_known() -> None:
    """Two times of a segment are an array; a segment without them is written as version 0.1.0 wrote it."""
    first, second = example().sealed
    timed = replace(example(), sealed=(first, structs.replace(second, times=TimeRange(-5, 1_700_000_000_000_000))))
    assert encode(timed) == GOLDEN.with_name("manifest_with_times.txt").read_bytes()
    assert decode(encode(timed), file="m") == timed


@given(st.data())
def test_any_flipped_bit_is_damage(data: st.DataObject) -> None:
    """No changed manifest is believed, wherever the change lies."""
    text = bytearray(encode(example()))
    text[data.draw(st.integers(0, len(text) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DamageError):
        decode(bytes(text), file="m")


def test_a_newer_version_is_foreign() -> None:
    """A manifest that is whole and of another version is refused as such, not as damage."""
    newer = Manifest(2, bytes(16), generation=1, epoch=0, next_file_id=1, durable_end=0, start_offset=0)
    with pytest.raises(ForeignError):
        decode(encode(newer), file="m")


def test_every_edit_is_one_generation() -> None:
    """Edits leave what they were given as it was, and count."""
    first = create(bytes(16))
    begun = begin_epoch(first, sealed=(), file_id=1, durable_end=0, valid_end=0, start_offset=0)
    spared = name_spare(begun)
    rolled = roll(spared, base_offset=70, size=9000)
    assert [one.generation for one in (first, begun, spared, rolled)] == [1, 2, 3, 4]
    assert rolled.sealed == (SealedSegment(1, 0, 70, 9000),)
    assert rolled.active == ActiveSegment(2, 70)
    assert (rolled.spare, rolled.durable_end, rolled.next_file_id) == (3, 70, 4)


def test_a_recovery_gives_up_what_holds_nothing() -> None:
    """An active segment and a spare that are not sealed go on the list of files that may be deleted, until they are."""
    begun = name_spare(begin_epoch(create(bytes(16)), sealed=(), file_id=1, durable_end=0, valid_end=0, start_offset=0))
    again = begin_epoch(begun, sealed=(), file_id=3, durable_end=0, valid_end=5, start_offset=1 << 20)
    assert again.removed == (1, 2)
    assert (again.active, again.durable_end, again.epoch) == (ActiveSegment(3, 0), 5, 2)
    assert forget_removed(again, frozenset({1, 2})).removed == ()


def test_a_snapshot_is_named_in_order_and_forgotten_by_id() -> None:
    """A reserved id may be deleted until it is named, and again once it is forgotten; names lie by their ends."""
    reserved = reserve_file_id(reserve_file_id(create(bytes(16))))
    assert (reserved.removed, reserved.next_file_id, named_files(reserved)) == ((1, 2), 3, frozenset())
    later, earlier = Snapshot(1, "later", 20, 0, 0, 9, False), Snapshot(2, "earlier", 10, 0, 0, 9, True)
    named = name_snapshot(name_snapshot(reserved, later), earlier)
    assert (named.snapshots, named.removed, named.durable_end) == ((earlier, later), (), 20)
    assert named_files(named) == {1, 2}
    forgotten = forget_snapshots(named, frozenset({2, 77}))
    assert (forgotten.snapshots, forgotten.removed) == ((later,), (2,))


def test_lost_offsets_are_told_until_they_are_taken() -> None:
    """What a repair could not save is forgotten by an edit of its own."""
    assert forget_lost(example()).lost == ()


@pytest.mark.parametrize("seed", range(5))
def test_a_swap_that_fails_anywhere_leaves_the_old_or_the_new(seed: int) -> None:
    """Wherever the disk fails and then loses power, one of the two manifests is there, whole."""
    old, new = create(bytes(16)), name_spare(create(bytes(16)))
    cuts = 0
    while True:
        storage = SimulatedStorage(random.Random(seed))
        storage.makedirs("/data")
        store(storage, "/data", old)
        storage.fail(errno.EIO, after=cuts)
        try:
            commit(storage, "/data", name_spare)
        except OSError:
            assert load(storage, "/data") == old
            storage.crash(random.Random(seed))
            assert load(storage, "/data") == old
        except LogFailed:
            assert load(storage, "/data") == new
            storage.crash(random.Random(seed))
            assert load(storage, "/data") in (old, new)
        else:
            break
        cuts += 1
    storage.crash(random.Random(seed))
    assert load(storage, "/data") == new
    assert cuts >= 5
