"""The index of a sealed segment: what it tells, and that one which does not fit is never believed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ambermq.log.format.batch import Batch
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, Segment, SegmentHeader
from ambermq.log.index.segment_index import Index, IndexBuilder, build, check_index, load_positions, path_of_index
from ambermq.log.manifest.manifest import load
from ambermq.log.read.log_reader import open_reader
from ambermq.log.storage.disk import DiskStorage
from tests.log.lives import CONFIG, Life, body_of


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """A sealed segment of a few batches, without an index."""
    life = Life(DiskStorage(), str(tmp_path))
    for number in range(12):
        life.write([body_of(number, 700), body_of(number, 40)])
        life.sync()
        life.log.completed()
    life.log.close()
    manifest = load(DiskStorage(), str(tmp_path))
    assert manifest is not None
    segment = manifest.sealed[0].at(str(tmp_path))
    Path(path_of_index(segment)).unlink(missing_ok=True)
    return segment


def header_of(segment: Segment) -> SegmentHeader:
    """The segment's header."""
    header = SegmentHeader.decode(Path(segment.path).read_bytes()[:SEGMENT_HEADER_BYTES], segment.path)
    assert header is not None
    return header


def built(segment: Segment) -> Index:
    """Build the index and open it."""
    build(DiskStorage().open(segment.path), segment, batch_bytes_max=CONFIG.batch_bytes_max)
    index = Index.open(path_of_index(segment), segment, header_of(segment))
    assert index is not None
    return index


def test_offsets_times_and_ids_are_found(segment: Segment) -> None:
    """Each look-up leads at or before what is sought; ids lead to every record with that hash."""
    index = built(segment)
    assert index.locate(segment.base_offset) == SEGMENT_HEADER_BYTES
    assert index.locate(segment.base_offset - 1) is None
    assert index.locate(1 << 40) is not None
    assert index.at(0) is None
    assert index.at(1 << 60) == segment.base_offset
    assert index.ids(701) == list(range(segment.base_offset, segment.next_offset, 2))
    assert index.ids(41) == list(range(segment.base_offset + 1, segment.next_offset, 2))
    assert index.ids(12345) == []
    index.close()


def cut(path: Path) -> None:
    """Cut a file in half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Flip a bit in its middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path: Path) -> None:
    """Leave no byte."""
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [cut, flip, empty, Path.unlink])
def test_an_index_that_does_not_fit_is_not_believed(segment: Segment, harm: Callable[[Path], None]) -> None:
    """Missing, cut or damaged: positions are read from the segment instead, and are the same once it is rebuilt."""
    built(segment).close()
    harm(Path(path_of_index(segment)))
    header, file = header_of(segment), DiskStorage().open(segment.path)
    assert Index.open(path_of_index(segment), segment, header) is None
    walked = load_positions(file, segment.path, segment, batch_bytes_max=CONFIG.batch_bytes_max)
    built(segment).close()
    loaded = load_positions(file, segment.path, segment, batch_bytes_max=CONFIG.batch_bytes_max)
    offsets = range(segment.base_offset - 1, segment.next_offset + 1)
    assert [walked.locate(offset) for offset in offsets] == [loaded.locate(offset) for offset in offsets]


def touches_of(batch: Batch) -> Iterator[tuple[int, int]]:
    """Every record touches two keys: half its offset, and one that all share and that uses all bits."""
    for record in batch.record_list():
        yield record.offset // 2, record.offset
        yield (1 << 64) - 1, record.offset


def test_touches_are_what_the_function_told(segment: Segment) -> None:
    """The law: touches(key) is exactly the offsets that were told with it, in order."""
    file = DiskStorage().open(segment.path)
    build(file, segment, batch_bytes_max=CONFIG.batch_bytes_max, touches_of=touches_of)
    index = Index.open(path_of_index(segment), segment, header_of(segment))
    assert index is not None
    offsets = range(segment.base_offset, segment.next_offset)
    for key in range(segment.next_offset // 2 + 2):
        assert index.touches(key) == [offset for offset in offsets if offset // 2 == key]
    assert index.touches((1 << 64) - 1) == list(offsets)
    index.close()


def test_an_index_of_an_earlier_version_is_stale(segment: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 1 had no touches: such an index is not believed, and rebuilt."""
    monkeypatch.setattr("ambermq.log.index.segment_index._VERSION", 1)
    built(segment).close()
    monkeypatch.undo()
    assert check_index(path_of_index(segment), segment, header_of(segment)) is not None
    built(segment).close()
    assert check_index(path_of_index(segment), segment, header_of(segment)) is None


def test_a_stale_index_is_not_believed(segment: Segment) -> None:
    """An index of a segment that was sealed at another size, or of another file, does not fit."""
    built(segment).close()
    header = header_of(segment)
    assert check_index(path_of_index(segment), segment, header) is None
    assert check_index(path_of_index(segment), segment._replace(size=segment.size - 8), header) is not None
    assert check_index(path_of_index(segment), segment, header._replace(salt=header.salt ^ 1)) is not None


def test_a_build_that_is_given_up_leaves_nothing(segment: Segment) -> None:
    """Steps can stop anywhere; only a finished index has its name."""
    builder = IndexBuilder(DiskStorage().open(segment.path), segment, batch_bytes_max=CONFIG.batch_bytes_max)
    assert [builder.step() for _ in range(3)] == [True, True, True]
    builder.close()
    assert not list(Path(segment.path).parent.glob(f"{segment.file_id:016x}.index*"))


def test_an_index_is_synced_before_it_has_its_name(segment: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss of power leaves a whole index or none: all its bytes are synced under the temporary name."""
    target, synced = Path(path_of_index(segment)), list[int]()

    def fsync(fd: int) -> None:
        assert not target.exists()
        synced.append(os.fstat(fd).st_size)

    monkeypatch.setattr(os, "fsync", fsync)
    build(DiskStorage().open(segment.path), segment, batch_bytes_max=CONFIG.batch_bytes_max)
    assert synced == [target.stat().st_size]


def test_an_index_that_fits_is_left_alone(segment: Segment) -> None:
    """Building again what is there and whole changes nothing."""
    built(segment).close()
    before = Path(path_of_index(segment)).stat()
    build(DiskStorage().open(segment.path), segment, batch_bytes_max=CONFIG.batch_bytes_max)
    assert Path(path_of_index(segment)).stat().st_ino == before.st_ino


def test_a_directory_in_the_place_of_an_index_stays(segment: Segment) -> None:
    """It is no index, and the build ends before its first step: no index could replace it."""
    path = Path(path_of_index(segment))
    path.mkdir()
    mismatch = check_index(str(path), segment, header_of(segment))
    assert mismatch is not None
    assert mismatch.found == "a directory"
    builder = IndexBuilder(DiskStorage().open(segment.path), segment, batch_bytes_max=CONFIG.batch_bytes_max)
    with pytest.raises(IsADirectoryError, match=path.name):
        builder.step()
    assert [one.name for one in path.parent.glob(f"{path.name}*")] == [path.name]
    assert Index.open(str(path), segment, header_of(segment)) is None


def test_a_damaged_segment_gets_no_index(segment: Segment) -> None:
    """What does not read as it was written is not indexed."""
    with Path(segment.path).open("rb+") as file:
        file.seek(SEGMENT_HEADER_BYTES + 70)
        file.write(b"\xff")
    with pytest.raises(ValueError, match="is invalid from position"):
        build(DiskStorage().open(segment.path), segment, batch_bytes_max=CONFIG.batch_bytes_max)
    assert not list(Path(segment.path).parent.glob(f"{segment.file_id:016x}.index*"))


def test_every_id_leads_to_its_records(segment: Segment) -> None:
    """The law: ids(hash) is exactly the offsets of the records with that hash."""
    index = built(segment)
    directory = str(Path(segment.path).parent.parent)
    with open_reader(directory, CONFIG) as reader:
        records = [record for batch in reader.batches() for record in batch.records()]
    for record in records:
        if record.offset < segment.next_offset:
            assert record.offset in index.ids(record.id_hash)
    index.close()
