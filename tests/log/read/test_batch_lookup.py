"""Single records of a log are found without walking it, and a reader takes in what is written behind its end."""

from pathlib import Path

import pytest

from ambermq.log.format.record import Record
from ambermq.log.manifest.writer_lock import is_alive, is_written, lock_path
from ambermq.log.read.body_reads import DAMAGED
from ambermq.log.read.log_reader import open_reader
from ambermq.log.storage.disk import DiskStorage
from tests.log.lives import CONFIG, Life, body_of


@pytest.fixture(params=["indexed", "without indexes"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two lives over more segments than are kept open."""
    for _ in range(2):
        life = Life(DiskStorage(), str(tmp_path))
        for number in range(60):
            life.write([body_of(number, 700), body_of(number, 40)])
            life.sync()
            life.log.completed()
        life.log.close()
    if request.param == "without indexes":
        for path in (tmp_path / "segments").glob("*.index"):
            path.unlink()
    return tmp_path


def records_of(directory: Path) -> dict[int, Record]:
    """Every record by its offset, by a walk."""
    with open_reader(str(directory), CONFIG) as reader:
        assert len(reader.manifest.sealed) > 8
        return {record.offset: record for batch in reader.batches() for record in batch.records()}


def test_every_record_is_found_and_nothing_else(written: Path) -> None:
    """By its offset, with its body; between two epochs and beyond the end there is none."""
    records = records_of(written)
    with open_reader(str(written), CONFIG) as reader:
        for offset in [*records, *reversed(records)]:
            found = reader.find(offset)
            assert found is not None
            assert found[1] == records[offset]
            assert found[0].body(found[1]) is not DAMAGED
            assert len(found[0].body(found[1])) == records[offset].body_length
        gap = max(offset for offset in records if offset < 1 << 20) + 1
        assert [reader.find(offset) for offset in (-1, gap, (1 << 20) - 1, max(records) + 1, 1 << 40)] == [None] * 5


def test_the_floor_is_the_last_record_at_or_before(written: Path) -> None:
    """Across gaps and segments; None before the first record."""
    records = records_of(written)
    gap = max(offset for offset in records if offset < 1 << 20)
    with open_reader(str(written), CONFIG) as reader:
        assert all(reader.floor(offset) == offset for offset in records)
        assert reader.floor((1 << 20) - 1) == gap
        assert reader.floor(1 << 40) == max(records)
        assert reader.floor(-1) is None


def test_a_walk_may_begin_in_the_middle(written: Path) -> None:
    """From any offset on, all records from there are met."""
    records = records_of(written)
    with open_reader(str(written), CONFIG) as reader:
        for first in [*list(records)[::17], (1 << 20) - 1]:
            met = [record.offset for batch in reader.batches(first) for record in batch.records()]
            assert [offset for offset in met if offset >= first] == [offset for offset in records if offset >= first]


def test_a_reader_takes_in_what_is_written_behind_its_end(tmp_path: Path) -> None:
    """As long as the manifest is the one that it opened; after that it says that it must be opened again."""
    life = Life(DiskStorage(), str(tmp_path))
    life.write([b"first"])
    life.sync()
    with open_reader(str(tmp_path), CONFIG) as reader:
        end = reader.end
        (offset,) = life.write([b"second"])
        assert reader.find(offset) is None
        assert reader.extend()
        assert reader.end == end + 1
        found = reader.find(offset)
        assert found is not None
        assert found[0].body(found[1]) == b"second"
        for number in range(60):
            life.write([body_of(number, 700)])
            life.sync()
        assert not reader.extend()
    life.log.close()


def test_the_lock_file_names_the_writer(tmp_path: Path) -> None:
    """A living process that is named there writes; an empty text, a dead process or none at all does not."""
    path = Path(lock_path(str(tmp_path)))
    assert not is_written(str(tmp_path))
    for text, written in (('{"pid": 1, "url": "x"}', True), ("", False), ("{", False), ('{"pid": 4194304}', False)):
        path.write_text(text)
        assert is_written(str(tmp_path)) is written
    assert not is_alive(1 << 40)
