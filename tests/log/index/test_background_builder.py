"""Building indexes beside a log: little by little, however busy that is, and none that is half."""

import errno
import os
from pathlib import Path

import pytest

from ambermq.log.errors import DamageError
from ambermq.log.format.segment import Segment
from ambermq.log.index.background_builder import BackgroundBuilder
from ambermq.log.index.segment_index import load_positions, path_of_index
from ambermq.log.index.tables import no_touches
from ambermq.log.manifest.manifest import load
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import InlineLane
from tests.log.lives import CONFIG, Life, body_of


def _write_segments(life: Life) -> None:
    for number in range(30):
        life.write([body_of(number, 700), body_of(number, 40)])
        life.sync()
        life.log.completed()


def _sealed(directory: Path) -> list[Segment]:
    manifest = load(DiskStorage(), str(directory))
    assert manifest is not None
    return [one.at(str(directory)) for one in manifest.sealed]


def _has_index(segment: Segment) -> bool:
    return Path(path_of_index(segment)).exists()


@pytest.fixture
def segments(tmp_path: Path) -> list[Segment]:
    """Sealed segments without indexes, of a log that is closed."""
    life = Life(DiskStorage(), str(tmp_path))
    _write_segments(life)
    life.log.close()
    segments = _sealed(tmp_path)
    for segment in segments:
        Path(path_of_index(segment)).unlink(missing_ok=True)
    assert len(segments) > 1
    return segments


def _indexing(segments: list[Segment]) -> BackgroundBuilder:
    return BackgroundBuilder(DiskStorage(), segments, batch_bytes_max=CONFIG.batch_bytes_max, touches_of=no_touches)


def test_a_log_that_is_never_quiet_is_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy log makes the builder rest, and no more: its sealed segments get their indexes all the same."""
    life = Life(DiskStorage(), str(tmp_path))
    rested_s = 0.0

    def wait_for_wake(lane: InlineLane, seconds: float) -> bool:
        nonlocal rested_s
        rested_s += seconds
        life.log.written_bytes += 1 << 30
        return False

    monkeypatch.setattr(InlineLane, "wait_for_wake", wait_for_wake)
    _write_segments(life)
    assert len(_sealed(tmp_path)) > 1
    assert all(map(_has_index, _sealed(tmp_path)))
    assert rested_s > 0.1 * len(_sealed(tmp_path))
    life.log.close()


@pytest.mark.parametrize(("bytes_each_time", "expected"), [(0, 1), (1000, 10), (100_000, 3), (1_000_000, 40)])
def test_a_builder_rests_by_how_much_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_each_time: int, expected: int
) -> None:
    """In two waits at most, together times of 5 ms: one without any write, ten where little is written, three at more
    than 4 MiB a second so that indexes keep up, forty at more than 64 MiB a second, where they do not.
    """
    life = Life(DiskStorage(), str(tmp_path))
    rests: list[float] = []

    def wait_for_wake(lane: InlineLane, seconds: float) -> bool:
        rests.append(seconds)
        life.log.written_bytes += bytes_each_time
        return False

    monkeypatch.setattr(InlineLane, "wait_for_wake", wait_for_wake)
    assert not life.log._housekeeper._pause_indexing()
    assert sum(rests) == pytest.approx(0.005 * expected)
    assert len(rests) <= 2
    life.log.close()


def test_a_builder_that_has_rested_for_little_rests_on_where_much_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that stood still for the first 5 ms, as where it waits for the disk, is as busy as it is after that."""
    life = Life(DiskStorage(), str(tmp_path))
    rests: list[float] = []

    def wait_for_wake(lane: InlineLane, seconds: float) -> bool:
        rests.append(seconds)
        life.log.written_bytes += 1000 if len(rests) == 1 else 1 << 24
        return False

    monkeypatch.setattr(InlineLane, "wait_for_wake", wait_for_wake)
    assert not life.log._housekeeper._pause_indexing()
    assert rests == pytest.approx([0.005, 0.045, 0.15])
    life.log.close()


def test_a_build_rests_until_the_thread_is_woken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for meanwhile goes first; the build goes on in the next run, which has been asked for."""
    life = Life(DiskStorage(), str(tmp_path))
    asked: list[bool] = []

    def wait_for_wake(lane: InlineLane, seconds: float) -> bool:
        asked.append(len(asked) % 4 == 3)
        if asked[-1]:
            lane.wake()
        return asked[-1]

    monkeypatch.setattr(InlineLane, "wait_for_wake", wait_for_wake)
    _write_segments(life)
    assert any(asked)
    assert all(map(_has_index, _sealed(tmp_path)))
    life.log.close()


def test_builds_are_made_in_turn(segments: list[Segment]) -> None:
    """The first one first, each whole before the next is begun."""
    indexing = _indexing(segments)
    while indexing.has_work:
        indexing.step()
        done = [_has_index(segment) for segment in segments]
        assert done == sorted(done, reverse=True)
    assert all(done)


def test_a_build_that_is_given_up_is_begun_again(segments: list[Segment]) -> None:
    """Nothing of it is left; the next step begins anew."""
    indexing = _indexing(segments[:1])
    indexing.step()
    indexing.step()
    indexing.close()
    assert list(Path(segments[0].path).parent.glob("*.new")) == []
    while indexing.has_work:
        indexing.step()
    assert _has_index(segments[0])


def test_what_is_no_more_part_of_the_log_is_left_out(segments: list[Segment]) -> None:
    """Whether its build has begun or not."""
    indexing = _indexing(segments)
    indexing.step()
    indexing.step()
    indexing.leave_out({segments[0].file_id, segments[-1].file_id})
    while indexing.has_work:
        indexing.step()
    assert [_has_index(segment) for segment in segments] == [segment in segments[1:-1] for segment in segments]
    assert list(Path(segments[0].path).parent.glob("*.new")) == []


def test_a_segment_that_cannot_be_read_holds_up_no_other(segments: list[Segment]) -> None:
    """One is missing, one is damaged: those behind them are indexed."""
    Path(segments[0].path).unlink()
    Path(segments[1].path).write_bytes(bytes(5000))
    indexing = _indexing(segments)
    while indexing.has_work:
        indexing.step()
    assert [_has_index(segment) for segment in segments] == [False, False, *[True] * (len(segments) - 2)]


def test_a_file_that_cannot_be_removed_ends_nothing(
    segments: list[Segment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An input or output error of `index.new` costs the index; neither a step nor the end of the log raises it."""
    builder = _indexing(segments)
    builder.step()
    builder.step()

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("ambermq.log.index.segment_index._remove", failing)
    builder.leave_out({segments[0].file_id})
    while builder.has_work:
        builder.step()
    builder.close()
    assert list(tmp_path.rglob("*.index")) == []


def damage(path: str, position: int) -> None:
    """Change one byte of a file."""
    with Path(path).open("rb+") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 0x55]))


@pytest.mark.parametrize("position", [0, 9, 13, 20, 33, 41, 49, 53, 60, 4095])
def test_a_wrong_byte_in_a_header_is_a_fault_and_ends_nothing(segments: list[Segment], position: int) -> None:
    """Magic, version, salt, ids, offset, epoch, CRC or padding: the fault is told, and the other indexes are built."""
    damage(segments[0].path, position)
    indexing = _indexing(segments)
    while indexing.has_work:
        indexing.step()
    assert list(map(_has_index, segments)) == [False, *[True] * (len(segments) - 1)]
    (fault,) = indexing.faults
    assert (fault.file_id, fault.is_damage) == (segments[0].file_id, True)
    assert segments[0].path in fault.reason
    indexing.leave_out({segments[0].file_id})
    assert indexing.faults == ()


def test_a_missing_segment_is_damage_and_a_failed_index_is_none(
    segments: list[Segment], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what differs from what was written is called damage."""
    Path(segments[0].path).unlink()
    Path(path_of_index(segments[1]) + ".new").mkdir()
    indexing = _indexing(segments[:2])
    while indexing.has_work:
        indexing.step()
    assert [fault.is_damage for fault in indexing.faults] == [True, False]
    assert "expected a segment that the manifest names, found no file" in indexing.faults[0].reason


def test_an_error_of_our_own_ends_no_broker(segments: list[Segment]) -> None:
    """Whatever the function of the keys raises for a batch that is damaged in a way that no CRC shows."""

    def touches_of(_batch: object) -> object:
        raise KeyError("a key")

    indexing = BackgroundBuilder(
        DiskStorage(), segments[:1], batch_bytes_max=CONFIG.batch_bytes_max, touches_of=touches_of
    )
    while indexing.has_work:
        indexing.step()
    assert "KeyError" in indexing.faults[0].reason


def test_a_disk_that_refuses_to_remove_an_index_ends_nothing(
    segments: list[Segment], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An input or output error at `index.new`, also where the build is given up."""
    indexing = _indexing(segments[:1])
    indexing.step()
    indexing.step()

    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(Path, "unlink", unlink)
    indexing.close()
    while indexing.has_work:
        indexing.step()
    assert not indexing.faults[0].is_damage


@pytest.mark.parametrize("position", [0, 9, 12, 15, 20, 33, 41, 49, 53, 60, 4095])
@pytest.mark.parametrize("has_index", [True, False])
def test_a_segment_with_a_wrong_byte_in_its_header_is_served(tmp_path: Path, position: int, *, has_index: bool) -> None:
    """All its bodies are read, by the salt that the first batch proves; the log that serves does not end."""
    life = Life(DiskStorage(), str(tmp_path))
    _write_segments(life)
    life.log.close()
    first = _sealed(tmp_path)[0]
    if not has_index:
        Path(path_of_index(first)).unlink()
    again = Life(DiskStorage(), str(tmp_path))
    damage(first.path, position)
    offsets = [offset for offset in life.written if offset < first.next_offset]
    assert again.bodies(offsets) == [life.written[offset] for offset in offsets]
    again.log.close()


def test_a_header_that_no_salt_fits_is_refused(segments: list[Segment]) -> None:
    """Without a batch that proves a salt nothing is served as if it were whole."""
    damage(segments[0].path, 12)
    content = Path(segments[0].path).read_bytes()
    Path(segments[0].path).write_bytes(content[:4096] + bytes(len(content) - 4096))
    file = DiskStorage().open(segments[0].path)
    with pytest.raises(DamageError):
        load_positions(file, segments[0].path, segments[0], batch_bytes_max=CONFIG.batch_bytes_max)
    file.close()
