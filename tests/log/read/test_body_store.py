"""Bodies: hot ones from memory, cold ones from the segments, damaged ones never."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.format.segment import segment_path
from ambermq.log.format.sparse_positions import SPACING_BYTES, SparsePositions
from ambermq.log.read.body_cache import AGED_MAX, BODIES_MAX, RUNS_MAX, BodyCache
from ambermq.log.read.body_reads import DAMAGED
from tests.log.lives import DIRECTORY, Life, body_of
from tests.log.simulated import SimulatedFile, SimulatedStorage


@settings(deadline=None)
@given(
    runs=st.lists(st.lists(st.binary(max_size=300), min_size=1, max_size=5), max_size=20),
    forgotten=st.sets(st.integers(0, 100)),
    bytes_max=st.integers(0, 4000),
)
def test_the_hot_cache_is_bounded_and_tells_the_truth(
    runs: list[list[bytes]], forgotten: set[int], bytes_max: int
) -> None:
    """What is held counts with its overhead and stays below the bound; what it yields is what was kept last."""
    hot, model = BodyCache(bytes_max), dict[int, bytes]()
    for run in runs:
        hot.add(len(model), run, body_bytes=sum(map(len, run)))
        model |= dict(enumerate(run, len(model)))
        assert hot.size_bytes <= bytes_max
    hot.forget(forgotten)
    held = {offset: hot.get(offset) for offset in model if hot.get(offset) is not None}
    assert held == {offset: model[offset] for offset in held}
    assert hot.size_bytes == sum(len(body) + 150 for body in held.values() if body is not None)
    assert not forgotten & held.keys()
    assert hot.get_run(sorted(held)) == [held[offset] for offset in sorted(held)]


def test_the_hot_cache_holds_a_bounded_number_of_runs() -> None:
    """However small they are, and though all have left it already."""
    hot = BodyCache(1 << 30)
    for offset in range(3 * RUNS_MAX):
        hot.add(offset, [b""], body_bytes=0)
        if offset % 2:
            hot.forget([offset])
    assert len(hot._runs) <= RUNS_MAX
    assert RUNS_MAX // 4 < len(hot) <= RUNS_MAX


def test_the_hot_cache_holds_a_bounded_number_of_bodies() -> None:
    """However much room their bytes leave; the newest stay."""
    hot = BodyCache(1 << 30)
    for offset in range(0, 2 * BODIES_MAX, 1000):
        hot.add(offset, [b"body"] * 1000, body_bytes=4000)
        assert len(hot) <= BODIES_MAX
        assert hot.get(offset + 999) == b"body"
    assert len(hot) > BODIES_MAX * 3 // 4


def test_hot_bodies_leave_some_seconds_after_they_were_written() -> None:
    """Each call drops what was written before the call before the last one, and a limited number of bodies."""
    hot = BodyCache(1 << 30)
    hot.add(0, [b"old"], body_bytes=3)
    assert hot.age()
    hot.add(1, [b"new"], body_bytes=3)
    assert hot.age()
    assert hot.get_run([0, 1]) == [b"old", b"new"]
    assert hot.age()
    assert (hot.get(0), hot.get(1)) == (None, b"new")
    assert not hot.age()
    assert (hot.size_bytes, len(hot)) == (0, 0)
    assert not hot.age()
    for offset in range(2, AGED_MAX + 2002, 1000):
        hot.add(offset, [b"body"] * 1000, body_bytes=4000)
    hot.age()
    hot.age()
    before = len(hot)
    assert hot.age()
    assert AGED_MAX <= before - len(hot) < AGED_MAX + 1000
    assert not hot.age()
    hot = BodyCache(1 << 30)
    for offset in range(1000):
        hot.add(offset, [b"body"], body_bytes=4)
    hot.age()
    hot.add(1000, [b"body"], body_bytes=4)
    hot.age()
    hot.add(1001, [b"body"], body_bytes=4)
    assert 700 < len(hot) < 800, "a write drops old bodies, some at once"


@given(st.lists(st.integers(1, 3 * SPACING_BYTES), min_size=1, max_size=50))
def test_positions_lead_at_or_before_and_near(lengths: list[int]) -> None:
    """A batch at or before the offset is found, less than 16 KiB of batches away."""
    positions, position, where = SparsePositions(0), 4096, []
    for offset, length in enumerate(lengths):
        positions.add(offset, position)
        where.append(position)
        position += length
    for offset, there in enumerate(where):
        found = positions.locate(offset)
        assert found in where[: offset + 1]
        assert there - found < SPACING_BYTES or found == there
    assert positions.locate(-1) is None


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(0, 1500), min_size=1, max_size=5), min_size=1, max_size=15),
    data=st.data(),
)
def test_any_run_of_bodies_comes_back(sizes: list[list[int]], data: st.DataObject) -> None:
    """Hot or cold, before and after a restart, in any order: the bodies are those that were written."""
    storage = SimulatedStorage(random.Random(1))
    life = Life(storage)
    for number, run in enumerate(sizes):
        life.write([body_of(10 * number + index, size) for index, size in enumerate(run)])
        life.sync()
    written = life.written
    wanted = data.draw(st.lists(st.sampled_from(sorted(written)), min_size=1, max_size=8))
    assert life.bodies(wanted) == [written[offset] for offset in wanted]
    storage.kill()
    assert Life(storage).bodies(wanted) == [written[offset] for offset in wanted]


def test_a_cold_run_larger_than_the_cache_still_comes() -> None:
    """What was brought stays until the next time, so that asking again always ends."""
    storage = SimulatedStorage(random.Random(1))
    life = Life(storage)
    for number in range(20):
        life.write([body_of(number, 1000)])
        life.sync()
    storage.kill()
    again = Life(storage)
    assert again.log.bodies.get_run(list(life.written)) is None
    again.log.completed()
    assert again.log.bodies.get_run(list(life.written)) == list(life.written.values())


def test_a_damaged_body_is_never_bytes() -> None:
    """Every body of a batch whose bodies fail their CRC is the marker; those of other batches are whole."""
    storage = SimulatedStorage(random.Random(1))
    life = Life(storage)
    life.write([body_of(0, 500), body_of(1, 500)])
    life.write([body_of(2, 500)])
    life.log.close()
    again = Life(storage)
    path = segment_path(DIRECTORY, again.recovery.manifest.active.file_id)  # type: ignore[union-attr]
    storage.damage(path, 4096 + 64 + 96 + 20, b"\0\1\2\3")
    again.log.bodies.fetch([0, 1, 2])
    again.log.completed()
    bodies = again.log.bodies.get_run([0, 1, 2])
    assert bodies is not None
    assert bodies[0] is bodies[1] is DAMAGED
    assert bodies[2] == body_of(2, 500)


def test_an_offset_that_no_batch_holds_is_damaged() -> None:
    """An offset without a record is DAMAGED, because a caller requests only offsets that must exist."""
    storage = SimulatedStorage(random.Random(1))
    life = Life(storage)
    life.write([b"one"])
    assert life.log.bodies.get(500_000) in (None, DAMAGED)
    life.log.completed()
    assert life.log.bodies.get(500_000) is DAMAGED


def test_segments_are_opened_without_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync on the same disk would wait for megabytes that no read has asked for."""
    opened: list[tuple[str, bool]] = []
    open_file = SimulatedStorage.open

    def open_noted(self: SimulatedStorage, path: str, **terms: bool) -> SimulatedFile:
        opened.append((path, terms.get("read_ahead", True)))
        return open_file(self, path, **terms)

    storage = SimulatedStorage(random.Random(1))
    life = Life(storage)
    life.write([body_of(1, 1000)])
    life.sync()
    storage.kill()
    again = Life(storage)
    monkeypatch.setattr(SimulatedStorage, "open", open_noted)
    assert again.bodies(list(life.written)) == list(life.written.values())
    assert opened
    assert not any(is_ahead for _, is_ahead in opened)
