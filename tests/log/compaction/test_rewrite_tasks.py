"""The tasks of a compaction: counted is what is there, rewritten what is kept, and the same input gives equal bytes."""

import pickle
from array import array
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.compaction.record_copy import bodies_of_walk
from ambermq.log.compaction.rewrite_tasks import (
    CountTask,
    GroupTask,
    RewrittenSegment,
    count_kept,
    pack_offsets,
    rewrite_group,
)
from ambermq.log.errors import DamageError
from ambermq.log.format.batch import KEPT
from ambermq.log.format.segment import Segment, SegmentHeader
from ambermq.log.manifest import manifest as manifests
from ambermq.log.manifest.manifest import Manifest, SealedSegment
from ambermq.log.segments.segment_reader import SegmentReader, walk_whole
from tests.log.compressed import words_of
from tests.log.lives import CONFIG, DIRECTORY, Life, body_of
from tests.log.simulated import SimulatedStorage

Found = dict[int, tuple[bytes, int, bytes]]


def written(sizes: list[int], body_of: Callable[[int, int], bytes] = body_of) -> tuple[SimulatedStorage, Manifest]:
    """A log of several lives with a batch of three records for each size, all of it sealed."""
    storage = SimulatedStorage()
    for start in range(0, len(sizes), 9):
        life = Life(storage)
        for number, size in enumerate(sizes[start : start + 9], start):
            life.write([body_of(number, size), b"", body_of(-number, size // 2)])
        life.sync()
        life.log.close()
    Life(storage).log.close()
    manifest = manifests.load(storage, DIRECTORY)
    assert manifest is not None
    return storage, manifest


def records_in(storage: SimulatedStorage, path: str, base_offset: int, next_offset: int, size: int) -> Found:
    """Body, time and meta by offset; every CRC is checked."""
    file = storage.open(path)
    header = SegmentHeader.decode(file.read(4096, 0), path)
    assert header is not None
    part = SegmentReader(path, file, header, CONFIG.batch_bytes_max, size, size)
    found: Found = {}
    for walk in walk_whole(part, base_offset=base_offset, next_offset=next_offset):
        bodies, head = bodies_of_walk(walk, path), walk.batch().header.head_bytes
        for record in walk.batch().record_list():
            at = record.body_position - head
            found[record.offset] = bytes(bodies[at : at + record.body_length]), record.timestamp_us, record.meta
    return found


def records_of(storage: SimulatedStorage, sealed: SealedSegment) -> Found:
    return records_in(storage, sealed.at(DIRECTORY).path, sealed.base_offset, sealed.next_offset, sealed.size)


def group_of(manifest: Manifest, kept: "list[array[int]]") -> GroupTask:
    segments = tuple(one.at(DIRECTORY) for one in manifest.sealed)
    packed = tuple(map(pack_offsets, kept))
    return GroupTask(segments, manifest.log_id, packed, "/data/jobs/1", CONFIG.batch_bytes_max)


def rewritten(storage: SimulatedStorage, task: GroupTask) -> tuple[RewrittenSegment, bytes]:
    storage.makedirs(task.directory)
    new = rewrite_group(storage, task)
    return new, bytes(storage.content(f"{task.directory}/{new.name}"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 2500), min_size=1, max_size=25), st.data())
def test_a_group_holds_what_is_kept_and_nothing_else(sizes: list[int], data: st.DataObject) -> None:
    """Each record as it was; what was counted is what is there; twice the same bytes under two names."""
    storage, manifest = written(sizes)
    every = [records_of(storage, one) for one in manifest.sealed]
    kept = [array("Q", sorted(data.draw(st.sets(st.sampled_from(sorted(found)))) if found else [])) for found in every]
    expected = {offset: found[offset] for found, offsets in zip(every, kept, strict=True) for offset in offsets}
    for sealed, found, offsets in zip(manifest.sealed, every, kept, strict=True):
        counting = CountTask(sealed.at(DIRECTORY), manifest.log_id, pack_offsets(offsets), CONFIG.batch_bytes_max)
        count = count_kept(storage, pickle.loads(pickle.dumps(counting)))
        size = sum(48 + len(found[offset][0]) + len(found[offset][2]) for offset in offsets)
        assert (count.record_count, count.kept_count, count.kept_bytes) == (len(found), len(offsets), size)
        assert count.missing == b""
    task = group_of(manifest, kept)
    (new, content), (again, other) = rewritten(storage, task), rewritten(storage, pickle.loads(pickle.dumps(task)))
    assert content == other
    assert new.name != again.name
    assert new.record_count == len(expected)
    path = f"{task.directory}/{new.name}"
    assert records_in(storage, path, new.base_offset, new.next_offset, new.size) == expected
    assert (new.base_offset, new.next_offset) == (manifest.sealed[0].base_offset, manifest.sealed[-1].next_offset)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2500), min_size=1, max_size=20), st.booleans(), st.data())
def test_compressed_or_not_the_records_are_equal(sizes: list[int], is_random: bool, data: st.DataObject) -> None:
    """What is kept is the same, twice the same bytes, and again of what was compressed before, to either kind."""
    storage, manifest = written(sizes, body_of if is_random else words_of)
    every = [records_of(storage, one) for one in manifest.sealed]
    kept = [array("Q", sorted(data.draw(st.sets(st.sampled_from(sorted(found)))) if found else [])) for found in every]
    plain = group_of(manifest, kept)
    task = replace(plain, compresses=True)
    (new, content), (_, other) = rewritten(storage, task), rewritten(storage, pickle.loads(pickle.dumps(task)))
    assert content == other
    expected = _read(storage, plain, rewritten(storage, plain)[0])
    assert _read(storage, task, new) == expected
    first = Segment(0, new.base_offset, new.next_offset, new.size, f"{task.directory}/{new.name}")
    offsets = pack_offsets(array("Q", sorted(expected)))
    for compresses in (True, False):
        again = GroupTask((first,), task.log_id, (offsets,), task.directory, task.batch_bytes_max, compresses)
        assert _read(storage, again, rewritten(storage, again)[0]) == expected


def _read(storage: SimulatedStorage, task: GroupTask, new: RewrittenSegment) -> Found:
    return records_in(storage, f"{task.directory}/{new.name}", new.base_offset, new.next_offset, new.size)


def test_what_compression_saves_is_counted() -> None:
    """Of a compressed segment the kept records weigh what they take there, so half of it is half, as of a plain one."""
    storage, manifest = written([2000] * 9, words_of)
    kept = [array("Q", sorted(records_of(storage, one))) for one in manifest.sealed]
    task = replace(group_of(manifest, kept), compresses=True)
    new, content = rewritten(storage, task)
    segment = Segment(0, new.base_offset, new.next_offset, new.size, f"{task.directory}/{new.name}")
    offsets = array("Q", sorted(offset for one in kept for offset in one))
    counts = [
        count_kept(storage, CountTask(segment, manifest.log_id, pack_offsets(part), CONFIG.batch_bytes_max))
        for part in (offsets, offsets[::6] + offsets[3::6])
    ]
    assert all(one.is_compressible for one in counts)
    assert counts[0].kept_bytes > 25_000 > 2 * len(content)
    # The count excludes the headers and the padding of batches.
    assert 0.5 * (new.size - 4096) < counts[0].stored_bytes <= new.size - 4096
    plain = count_kept(storage, CountTask(manifest.sealed[0].at(DIRECTORY), manifest.log_id, b"", 1 << 20))
    assert (plain.is_compressible, plain.saved_bytes) == (False, 0)


def test_a_group_that_keeps_nothing_says_that_something_was_there() -> None:
    """One empty batch, as old as the first of the group."""
    storage, manifest = written([100, 200])
    new, content = rewritten(storage, group_of(manifest, [array("Q") for _ in manifest.sealed]))
    assert (new.record_count, new.size) == (0, len(content))
    header = SegmentHeader.decode(content, "f")
    assert header is not None
    file = storage.open(f"/data/jobs/1/{new.name}")
    walk = SegmentReader("f", file, header, CONFIG.batch_bytes_max, new.size).walk()
    (batch,) = walk
    assert (batch.flags, batch.count, batch.base_timestamp_us) == (KEPT, 0, 1_000_000)


def test_other_groups_have_other_salts() -> None:
    """What is kept, and how, is part of what a group is made of: bytes of one never pass for those of another."""
    storage, manifest = written([100, 200])
    salts = set()
    for kept, compresses in (([0], False), ([1], False), ([0, 1], False), ([0, 1], True)):
        first = manifest.sealed[0]
        task = group_of(manifest, [array("Q", kept) if one is first else array("Q") for one in manifest.sealed])
        task = replace(task, compresses=compresses)
        header = SegmentHeader.decode(rewritten(storage, task)[1], "f")
        assert header is not None
        salts.add(header.salt)
    assert len(salts) == 4


def test_what_is_not_there_is_told() -> None:
    """Offsets that a repair has lost are missing, and no damage."""
    storage, manifest = written([100])
    sealed = next(one for one in manifest.sealed if records_of(storage, one))
    offsets = array("Q", [sealed.base_offset + 1, sealed.next_offset + 5])
    task = CountTask(sealed.at(DIRECTORY), manifest.log_id, pack_offsets(offsets), CONFIG.batch_bytes_max)
    count = count_kept(storage, task)
    assert (count.kept_count, count.missing) == (1, pack_offsets(offsets[1:]))


@pytest.mark.parametrize("where", ["head", "body", "header", "gone"])
def test_damage_is_found_wherever_it_is(where: str) -> None:
    """Every CRC counts, those of bodies too that are not kept; file and position are told."""
    storage, manifest = written([900, 700])
    sealed = next(one for one in manifest.sealed if records_of(storage, one))
    path = sealed.at(DIRECTORY).path
    if where == "gone":
        storage.unlink(path)
    else:
        at = {"head": 4096 + 20, "header": 20}.get(where, bytes(storage.content(path)).find(body_of(0, 900)) + 5)
        storage.damage(path, at, bytes([storage.content(path)[at] ^ 1]))
    task = CountTask(sealed.at(DIRECTORY), manifest.log_id, b"", CONFIG.batch_bytes_max)
    with pytest.raises(DamageError) as raised:
        count_kept(storage, task)
    assert raised.value.file == path


def test_a_segment_of_another_log_is_damage() -> None:
    """The header must say what the manifest says."""
    storage, manifest = written([100])
    task = CountTask(manifest.sealed[0].at(DIRECTORY), bytes(16), b"", CONFIG.batch_bytes_max)
    with pytest.raises(DamageError, match="of log 00000000"):
        count_kept(storage, task)
