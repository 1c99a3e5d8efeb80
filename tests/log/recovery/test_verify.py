"""Verification and reading from outside: a flipped bit anywhere is named, and a running log is not disturbed."""

from pathlib import Path
from typing import Any

import pytest

from ambermq.log.errors import ChecksumError, DamageError, LogError
from ambermq.log.format import checksum_pair
from ambermq.log.format.segment import segment_path
from ambermq.log.index.segment_index import build, path_of_index
from ambermq.log.manifest.manifest import commit, load, manifest_path, reserve_file_id
from ambermq.log.read import log_reader as inspect
from ambermq.log.read.log_reader import SegmentState, open_reader
from ambermq.log.recovery.verify import verify
from ambermq.log.segments.tail_survey import TailSurvey, survey
from ambermq.log.storage.disk import DiskFile, DiskStorage
from tests.log.lives import CONFIG, Life, body_of


def written(directory: Path, *, batches: int = 12) -> Life:
    """A log of several segments in `directory`, open and synced."""
    life = Life(DiskStorage(), str(directory))
    for number in range(batches):
        life.write([body_of(number, 700), body_of(number + 1000, 300)])
        life.sync()
        life.log.completed()
    return life


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A log at rest."""
    written(tmp_path).log.close()
    return tmp_path


def flip(path: str, position: int) -> None:
    """Flip one bit of a file."""
    with Path(path).open("rb+") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 16]))


def damage_found(directory: Path) -> tuple[str, int]:
    """File and position of the damage that verification reports."""
    damage = verify(str(directory), config=CONFIG).damage
    assert isinstance(damage, DamageError)
    return damage.file, damage.position


def test_a_whole_log_verifies(closed: Path) -> None:
    """Every batch is counted, every byte is told to the progress, and nothing is damaged."""
    told: list[tuple[int, int]] = []
    report = verify(str(closed), lambda done, total: told.append((done, total)), CONFIG)
    assert report.damage is None
    assert report.record_count == 24
    assert report.segment_count >= 2
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == report.byte_count
    assert report.unknown_files == []


def test_a_running_log_verifies(tmp_path: Path) -> None:
    """What is not yet written, synced or sealed is no damage, and reading takes no lock that the broker needs."""
    life = written(tmp_path)
    life.write([b"not yet synced"])
    report = verify(str(tmp_path), config=CONFIG)
    assert report.damage is None
    assert report.record_count == 25
    life.write([b"and on it goes"])
    life.log.close()


@pytest.mark.parametrize(
    ("position", "reported"),
    [
        pytest.param(2, 0, id="segment magic"),
        pytest.param(14, 0, id="segment salt"),
        pytest.param(4096 + 1, 4096, id="batch magic"),
        pytest.param(4096 + 5, 4096, id="length"),
        pytest.param(4096 + 12, 4096, id="body crc"),
        pytest.param(4096 + 33, 4096, id="durable end"),
        pytest.param(4096 + 70, 4096, id="records"),
        pytest.param(4096 + 64 + 96 + 300, 4096 + 160, id="bodies"),
    ],
)
@pytest.mark.parametrize("which", [0, -1])
def test_a_flipped_bit_is_named(closed: Path, position: int, reported: int, which: int) -> None:
    """File and position of the first damage are right in every region, in a sealed segment and in the active one."""
    with open_reader(str(closed), CONFIG) as reader:
        used = [info for info in reader.segments() if info.state != SegmentState.SPARE]
    path = used[which].path
    flip(path, position)
    if reported == 0 and position == 2:
        damage = verify(str(closed), config=CONFIG).damage
        assert damage is not None
        assert path in str(damage)
    else:
        assert damage_found(closed) == (path, reported)


def test_a_second_implementation_checks_samples(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it disagrees with the first, that is an error, and no damage."""
    monkeypatch.setattr(checksum_pair, "_second", lambda: lambda _buffer, crc: crc ^ 1)
    with pytest.raises(ChecksumError, match="crcmod-plus: one of these packages is at fault"):
        verify(str(closed), config=CONFIG)


def test_a_damaged_manifest_is_named(closed: Path) -> None:
    """The manifest is verified first."""
    path = manifest_path(str(closed))
    flip(path, 30)
    assert damage_found(closed)[0] == path


def test_a_segment_that_may_not_be_read_is_not_called_damaged(closed: Path) -> None:
    """A missing permission is reported as such: it is no damage, and needs no repair."""
    forbidden = segment_path(str(closed), load(DiskStorage(), str(closed)).sealed[0].file_id)

    class Forbidding(DiskStorage):
        def open(self, path: str, *, create: bool = False, direct: bool = False, read_ahead: bool = True) -> DiskFile:
            if path == forbidden:
                raise PermissionError(13, "Permission denied", path)
            return super().open(path, create=create, direct=direct, read_ahead=read_ahead)

    with pytest.raises(PermissionError, match=forbidden):
        verify(str(closed), config=CONFIG, storage=Forbidding())


def test_a_missing_segment_is_named(closed: Path) -> None:
    """A file that the manifest names and that is not there is damage."""
    manifest = load(DiskStorage(), str(closed))
    assert manifest is not None
    path = manifest.sealed[0].at(str(closed)).path
    Path(path).unlink()
    assert damage_found(closed) == (path, 0)


def test_an_index_is_held_against_its_segment(closed: Path) -> None:
    """A missing index is counted, a whole one too, and a damaged one reported."""
    manifest = load(DiskStorage(), str(closed))
    assert manifest is not None
    segment = manifest.sealed[0].at(str(closed))
    Path(path_of_index(segment)).unlink(missing_ok=True)
    missing = verify(str(closed), config=CONFIG)
    build(DiskStorage().open(segment.path), segment, batch_bytes_max=CONFIG.batch_bytes_max)
    whole = verify(str(closed), config=CONFIG)
    assert (missing.damage, whole.damage) == (None, None)
    assert missing.index_missing_count == whole.index_missing_count + 1
    flip(path_of_index(segment), 5000)
    assert damage_found(closed)[0] == path_of_index(segment)


@pytest.mark.parametrize("what", ["index", "segment", "manifest"])
def test_a_directory_in_the_place_of_a_file_is_reported(closed: Path, what: str) -> None:
    """With the path of the directory."""
    manifest = load(DiskStorage(), str(closed))
    assert manifest is not None
    segment = manifest.sealed[0].at(str(closed))
    path = {"index": path_of_index(segment), "segment": segment.path, "manifest": manifest_path(str(closed))}[what]
    Path(path).unlink(missing_ok=True)
    Path(path).mkdir()
    damage = verify(str(closed), config=CONFIG).damage
    assert isinstance(damage, DamageError)
    assert (damage.file, damage.found) == (path, "a directory")


def test_what_a_broker_has_made_meanwhile_is_not_unknown(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was named and made since the manifest was opened is one of the log's."""
    storage = DiskStorage()
    listdir = storage.listdir

    def listed(self: DiskStorage, path: str) -> list[str]:
        if path.endswith("segments") and not stray.exists():
            made = commit(storage, str(closed), reserve_file_id).removed[-1]
            Path(segment_path(str(closed), made)).write_bytes(b"")
            stray.touch()
        return listdir(path)

    stray = closed / "made"
    monkeypatch.setattr(DiskStorage, "listdir", listed)
    report = verify(str(closed))
    assert stray.exists()
    assert report.unknown_files == []


def test_unknown_files_are_reported(closed: Path) -> None:
    """A file that the manifest does not name is reported, and is no damage."""
    stray = closed / "segments" / "stray.txt"
    stray.write_text("?")
    report = verify(str(closed), config=CONFIG)
    assert report.damage is None
    assert report.unknown_files == [str(stray)]


def test_no_log_is_told(tmp_path: Path) -> None:
    """An empty directory is an error of the caller, not damage."""
    assert type(verify(str(tmp_path)).damage) is LogError


def test_a_reader_yields_what_was_written(tmp_path: Path) -> None:
    """Records and bodies come back in order, from any offset on, while the log is open."""
    life = written(tmp_path)
    with open_reader(str(tmp_path), CONFIG) as reader:
        found = {record.offset: bytes(batch.body(record)) for batch in reader.batches() for record in batch.records()}
        late = [record.offset for batch in reader.batches(15) for record in batch.records()]
        infos = reader.segments()
        counted = [reader.counts(info) for info in infos]
    assert found == life.written
    assert late == [offset for offset in life.written if offset >= 14]
    assert sum(records for _, records in counted) == 24
    assert [info.next_offset for info in infos[:-2]] == [info.base_offset for info in infos[1:-1]]
    assert infos[-1].state == SegmentState.SPARE
    assert infos[-2].next_offset == life.log.log_end
    life.log.close()


def test_a_reader_is_not_held_up_by_a_busy_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written while it looks for the end is of the chain: it goes on from there, and begins once."""
    life = written(tmp_path, batches=2)
    read, asked, left = DiskFile.read, [0], [24]

    def busy_read(file: DiskFile, length: int, position: int) -> bytes:
        content = read(file, length, position)
        with monkeypatch.context() as quiet:
            # What the writer reads meanwhile, as for an index, brings nothing more.
            quiet.setattr(DiskFile, "read", read)
            for _ in range(min(3, left[0])):
                left[0] -= 1
                life.write([b"meanwhile"])
                life.sync()
        return content

    def counted(*arguments: Any, **named: Any) -> TailSurvey:
        asked[0] += 1
        return survey(*arguments, **named)

    monkeypatch.setattr(DiskFile, "read", busy_read)
    monkeypatch.setattr(inspect, "survey", counted)
    end = life.log.log_end
    with open_reader(str(tmp_path), CONFIG) as reader:
        assert asked[0] == 1
        assert not left[0]
        assert end < reader.survey.valid_end <= life.log.log_end
    life.log.close()
