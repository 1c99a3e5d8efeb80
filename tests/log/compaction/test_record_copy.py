"""Picking: what is kept is as it was, at its own offset, and nothing else is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.compaction.record_copy import copy_records
from ambermq.log.errors import DamageError
from ambermq.log.format.batch import KEPT, check_bodies
from ambermq.log.format.record import Record
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader
from ambermq.log.manifest import manifest as manifests
from ambermq.log.manifest.manifest import SealedSegment
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.segment_reader import SegmentReader, open_sealed, walk_whole
from tests.log.lives import CONFIG, DIRECTORY, Life, body_of
from tests.log.simulated import SimulatedStorage

HEADER = SegmentHeader(salt=7, log_id=bytes(16), file_id=1, base_offset=0, epoch=1)
Found = dict[int, tuple[Record, bytes]]


def _written(storage: SimulatedStorage, sizes: list[int]) -> list[tuple[SegmentReader, SealedSegment]]:
    """Write a log of a batch of three records for each size; its segments, all of them sealed."""
    for start in range(0, len(sizes), 9):
        life = Life(storage)
        for number, size in enumerate(sizes[start : start + 9], start):
            life.write([body_of(number, size), b"", body_of(-number, size // 2)])
        life.sync()
        life.log.close()
    Life(storage).log.close()
    manifest = manifests.load(storage, DIRECTORY)
    assert manifest is not None
    return [
        (open_sealed(storage, DIRECTORY, manifest, one, batch_bytes_max=CONFIG.batch_bytes_max), one)
        for one in manifest.sealed
    ]


def _records(walk: BatchWalk) -> Found:
    batch, bodies, header = walk.batch(), walk.bodies(), walk.header
    assert header is not None
    assert check_bodies(header, bodies) is None
    found = {}
    for record in batch.record_list():
        start = record.body_position - header.head_bytes
        found[record.offset] = (record._replace(body_position=0), bodies[start : start + record.body_length])
    return found


def _all_records(part: SegmentReader, sealed: SealedSegment) -> Found:
    walks = walk_whole(part, base_offset=sealed.base_offset, next_offset=sealed.next_offset)
    return {offset: found for walk in walks for offset, found in _records(walk).items()}


def _picked(part: SegmentReader, kept: list[int]) -> bytes:
    whole = part.walk(end=part.size)
    batches = copy_records((whole for _ in whole), kept, path=part.path, salt_crc=HEADER.salt_crc)
    return b"".join(bytes(buffer) for batch in batches for buffer in batch)


def _segment_of(storage: SimulatedStorage, batches: bytes) -> SegmentReader:
    file = storage.open("/data/picked", create=True)
    file.write([HEADER.encode(), batches], 0)
    return SegmentReader("/data/picked", file, HEADER, CONFIG.batch_bytes_max, SEGMENT_HEADER_BYTES + len(batches))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2500), min_size=1, max_size=25), st.data())
def test_what_is_picked_is_as_it_was(sizes: list[int], data: st.DataObject) -> None:
    """Offset, time, columns, meta and body; whatever is kept, in batches that any reader takes, twice alike."""
    storage = SimulatedStorage()
    for part, sealed in _written(storage, sizes):
        records = _all_records(part, sealed)
        kept = sorted(data.draw(st.sets(st.sampled_from(sorted(records)))) if records else [])
        batches = _picked(part, kept)
        target = SealedSegment(1, sealed.base_offset, sealed.next_offset, SEGMENT_HEADER_BYTES + len(batches))
        copy = _segment_of(storage, batches)
        assert _all_records(copy, target) == {offset: records[offset] for offset in kept}
        walk = copy.walk()
        assert all(header.flags == KEPT for header in walk)
        assert _picked(part, kept) == batches


def test_damaged_bodies_are_never_copied() -> None:
    """A body that is not what was written ends the copying and is named."""
    storage = SimulatedStorage()
    (part, _), *_ = _written(storage, [900, 700])
    at = bytes(storage.content(part.path)).find(body_of(0, 900))
    storage.damage(part.path, at + 5, b"?")
    assert _picked(part, [3, 5])
    with pytest.raises(DamageError, match="expected body CRC") as raised:
        _picked(part, [1, 3])
    assert raised.value.file == part.path


@pytest.mark.parametrize("kept", [[1 << 30], [0, 1, 1 << 30]])
def test_a_record_that_is_missing_is_damage(kept: list[int]) -> None:
    """All that is asked for must be there, within a batch and behind the last one."""
    (part, _), *_ = _written(SimulatedStorage(), [100, 100])
    kept = [(part.header.base_offset + one) if one < 9 else one for one in kept]
    with pytest.raises(DamageError, match="expected a record at offset 1073741824, found none"):
        _picked(part, kept)


def test_a_hole_within_a_batch_is_told() -> None:
    """An offset that a batch does not hold, though it lies between two that it does."""
    storage = SimulatedStorage()
    (part, _), *_ = _written(storage, [100, 100])
    copy = _segment_of(storage, _picked(part, [0, 2, 3]))
    assert _picked(copy, [0, 3]) != b""
    with pytest.raises(DamageError, match="expected a record at offset 1, found none"):
        _picked(copy, [0, 1])
