"""Finding records by what they hold: with an index and without one alike."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import ambermq.log.read.search as search_module
from ambermq.log.format.batch import Batch
from ambermq.log.format.record import Record
from ambermq.log.index.segment_index import build, path_of_index
from ambermq.log.read.log_reader import LogReader, open_reader
from ambermq.log.read.search import Search
from ambermq.log.storage.disk import DiskStorage
from tests.log.lives import CONFIG, Life, body_of

TICKS = 60


def touches_of(batch: Batch) -> Iterator[tuple[int, int]]:
    """A record touches the length of its body, which its head holds as a u32."""
    for record in batch.record_list():
        yield record.body_length, record.offset


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A log of several sealed segments, the first of them indexed, in two epochs."""
    directory = str(tmp_path_factory.mktemp("searched"))
    for life_number in range(2):
        life = Life(DiskStorage(), directory)
        for number in range(TICKS):
            bodies = [body_of(number, 300 + number % 7), body_of(number + life_number, 90)]
            life.write(bodies[: 1 + number % 2])
            life.sync()
            life.log.completed()
        life.log.close()
    with open_reader(directory, CONFIG) as reader:
        for number, sealed in enumerate(reader.manifest.sealed):
            segment = sealed.at(directory)
            Path(path_of_index(segment)).unlink(missing_ok=True)
            if number % 2 == 0:
                file = DiskStorage().open(segment.path)
                build(file, segment, batch_bytes_max=CONFIG.batch_bytes_max, touches_of=touches_of)
                file.close()
    return directory


@pytest.fixture(autouse=True, params=["by pieces", "head by head"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Search as if batches were small, and as if they were large, with heads that take a read more."""
    if request.param == "head by head":
        monkeypatch.setattr(search_module, "_LARGE_BYTES", 64)
        monkeypatch.setattr(search_module, "_HEAD_BYTES", 128)


@pytest.fixture
def reader(directory: str) -> Iterator[LogReader]:
    with open_reader(directory, CONFIG) as reader:
        yield reader


@pytest.fixture
def search(reader: LogReader) -> Iterator[Search]:
    search = Search(reader, touches_of)
    yield search
    search.close()


def records_of(reader: LogReader) -> list[Record]:
    """Every record, by reading all."""
    return [record for batch in reader.batches() for record in batch.records()]


def test_ids_are_found_as_by_reading_everything(reader: LogReader, search: Search) -> None:
    """The law: the offsets of exactly the records with one of the hashes, in order."""
    records = records_of(reader)
    hashes = {record.id_hash for record in records}
    for wanted in [*({one} for one in hashes), hashes, {91, 301}, {12345}]:
        assert search.ids(wanted) == [record.offset for record in records if record.id_hash in wanted]


def test_touches_are_found_as_by_reading_everything(reader: LogReader, search: Search) -> None:
    """The law: exactly the records from an offset on that touch one of the keys, wherever they lie."""
    records = records_of(reader)
    for lengths in ({300}, {303, 90}, {306, 12345}):
        wanted = {length: length.to_bytes(4, "little") for length in lengths}
        for first_offset in (0, records[40].offset, records[-5].offset):
            expected = [one.offset for one in records if one.body_length in lengths and one.offset >= first_offset]
            assert search.touches(wanted, first_offset) == expected
            last_offset = records[50].offset
            bounded = [offset for offset in expected if offset <= last_offset]
            assert search.touches(wanted, first_offset, last_offset) == bounded


def test_what_an_epoch_begins_with_is_found(reader: LogReader, search: Search) -> None:
    """Of the segments without an index only the batches up to the first of their own epoch are looked into."""
    second = reader.manifest.start_offset
    found = search.touches_of_epochs(300, 0)
    assert second in found
    assert set(found) <= {record.offset for record in records_of(reader) if record.body_length == 300}


def test_the_bytes_of_a_body_are_no_record(reader: LogReader, search: Search) -> None:
    """What is found in a body is passed over: only heads are believed."""
    found = reader.find(reader.survey.durable_end - 9)
    assert found is not None
    readable, _ = found
    body = bytes(readable.body(readable.records()[0]))
    assert search.touches({300: body[10:30]}, readable.batch.header.base_offset) == []


def test_an_index_that_knows_no_touches_is_not_asked(reader: LogReader, search: Search, directory: str) -> None:
    """If an index was built without the function for the keys, its segment is searched instead."""
    segment = reader.manifest.sealed[1].at(directory)
    file = DiskStorage().open(segment.path)
    build(file, segment, batch_bytes_max=CONFIG.batch_bytes_max)
    file.close()
    again = Search(reader, touches_of)
    assert again.touches({300: (300).to_bytes(4, "little")}, 0) == search.touches({300: (300).to_bytes(4, "little")}, 0)
    again.close()
    Path(path_of_index(segment)).unlink()


def test_behind_a_damaged_head_the_search_goes_on(directory: str, tmp_path: Path) -> None:
    """A batch whose head cannot be believed hides nothing but itself."""
    copy = tmp_path / "damaged"
    shutil.copytree(directory, copy)
    for index in (copy / "segments").glob("*.index"):
        index.unlink()
    with open_reader(str(copy), CONFIG) as reader:
        records = records_of(reader)
        walk = reader.open_sealed(reader.manifest.sealed[0]).walk()
        headers = iter(walk)
        for _ in range(3):
            header = next(headers)
        path, position = reader.manifest.sealed[0].at(str(copy)).path, walk.position
    with Path(path).open("r+b") as file:
        file.seek(position + 12)
        file.write(b"\xff")
    lost = range(header.base_offset, header.base_offset + header.count)
    with open_reader(str(copy), CONFIG) as reader:
        search = Search(reader, touches_of)
        expected = [one.offset for one in records if one.body_length == 90 and one.offset not in lost]
        assert search.touches({90: (90).to_bytes(4, "little")}, 0) == expected
        search.close()
