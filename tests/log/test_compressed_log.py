"""A log with compressed segments: each reader of log/ takes it as any other, and tells where it is damaged."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from ambermq.log.buffer import Buffer
from ambermq.log.format.batch import COMPRESSED, BatchHeader, Mismatch
from ambermq.log.format.compression import plain_bodies
from ambermq.log.format.sparse_positions import SparsePositions
from ambermq.log.index.segment_index import Index, build, path_of_index
from ambermq.log.index.tables import no_touches
from ambermq.log.read import body_reads as cold
from ambermq.log.read import body_store as log_bodies
from ambermq.log.read.body_reads import DAMAGED, ReadWouldWait, read_batches
from ambermq.log.read.log_reader import open_reader
from ambermq.log.read.search import Search
from ambermq.log.recovery.repair import apply
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage
from tests.log.compressed import compress_sealed, compressed_parts, words_of
from tests.log.lives import CONFIG, DIRECTORY, Life
from tests.log.simulated import SimulatedStorage

ROOMY = replace(CONFIG, cold_bytes_max=1 << 20)


def written(storage: Storage, directory: str = DIRECTORY) -> dict[int, bytes]:
    """Write a log whose sealed segment is compressed, at rest; its bodies by offset, those behind it too."""
    life = Life(storage, directory)
    for number in range(0, 90, 3):
        life.write([words_of(number, 900), b"", words_of(number + 1, 300)])
        life.sync()
        life.log.completed()
    life.log.close()
    Life(storage, directory).log.close()
    compress_sealed(storage, directory)
    behind = Life(storage, directory)
    behind.write([words_of(1000, 500)])
    behind.sync()
    behind.log.close()
    return life.written | behind.written


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The base offsets of batches that are decompressed from now on, as it happens."""
    seen: list[int] = []

    def counting(header: BatchHeader, stored: Buffer) -> Buffer | Mismatch:
        if header.flags & COMPRESSED:
            seen.append(header.base_offset)
        return plain_bodies(header, stored)

    monkeypatch.setattr(cold, "plain_bodies", counting)
    return seen


def test_a_backlog_is_decompressed_a_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads of one message after the other return each body unchanged and decompress each batch once."""
    storage = SimulatedStorage(random.Random(1))
    expected = written(storage)
    life = Life(storage, config=ROOMY)
    seen = counted(monkeypatch)
    for offset, body in expected.items():
        while (found := life.log.bodies.get(offset)) is None:
            life.log.completed()
        assert found == body
        life.log.completed()
    ((_, positions),) = [one for one in compressed_parts(storage) if one[1]]
    assert len(positions) >= 2
    assert len(seen) == len(set(seen)) == len(positions)


def test_what_is_brought_stays_within_its_bound() -> None:
    """The batches that a drain leaves in memory are as large as their bodies, and no more than the limit says."""
    storage = SimulatedStorage(random.Random(1))
    expected = written(storage)
    life = Life(storage, config=replace(CONFIG, cold_bytes_max=40_000))
    for offset in expected:
        while life.log.bodies.get(offset) is None:
            life.log.completed()
    life.log.completed()
    read: log_bodies._ReadBatches = life.log.bodies._read
    assert 0 < read.size_bytes <= 40_000
    assert sum(len(one._data) for one in read._batches.values()) <= read.size_bytes


def test_the_loop_decompresses_nothing() -> None:
    """A read that must not wait refuses a compressed batch, although every byte of it is in memory."""
    storage = SimulatedStorage(random.Random(1))
    expected = written(storage)
    ((part, _),) = [one for one in compressed_parts(storage) if one[1]]
    positions = SparsePositions(part.header.salt_crc, end=part.size)
    for header in (walk := part.walk()):
        positions.add(header.base_offset, walk.position)
    wanted = sorted(expected)[4]
    with pytest.raises(ReadWouldWait):
        read_batches(part.file.read, positions, wanted, batch_bytes_max=CONFIG.batch_bytes_max, decompresses=False)
    first, *_ = read_batches(part.file.read, positions, wanted, batch_bytes_max=CONFIG.batch_bytes_max)
    assert first.body(wanted) == expected[wanted]


def test_reading_ahead_is_bounded_by_what_comes_of_it() -> None:
    """Batches that become a hundredth are not read ahead by the hundred."""
    storage = SimulatedStorage(random.Random(1))
    life = Life(storage)
    for number in range(60):
        life.write([bytes([number]) * 3000])
        life.sync()
        life.log.completed()
    life.log.close()
    Life(storage).log.close()
    compress_sealed(storage)
    ((part, places),) = [one for one in compressed_parts(storage) if one[1]]
    assert part.size < 4096 + (16 << 10)
    positions = SparsePositions(part.header.salt_crc, end=part.size)
    positions.add(0, places[0])
    batches = read_batches(part.file.read, positions, 1, batch_bytes_max=CONFIG.batch_bytes_max)
    assert 2 <= len(batches) < len(places)
    assert sum(one.cost_bytes for one in batches[:-1]) < (64 << 10) + 400 * len(batches)


def test_readers_find_every_body(tmp_path: Path) -> None:
    """By batch and by offset, with an index or without; a batch is decompressed once for all of its messages."""
    storage, directory = DiskStorage(), str(tmp_path)
    expected = written(storage, directory)
    with open_reader(directory, CONFIG) as reader:
        found = {one.offset: bytes(batch.body(one)) for batch in reader.batches() for one in batch.records()}
        assert found == expected
        for offset, body in expected.items():
            one = reader.find(offset)
            assert one is not None
            assert one[0].body(one[1]) == body
            assert reader.find_batch(offset) is one[0]
        search = Search(reader, no_touches)
        assert search.ids([1 + 900]) == [offset for offset, body in expected.items() if len(body) == 900]
        search.close()


def test_an_index_is_that_of_the_plain_segment(tmp_path: Path) -> None:
    """Ids and positions lead to the same records; verification holds them against the compressed segment."""
    storage, directory = DiskStorage(), str(tmp_path)
    expected = written(storage, directory)
    ((part, _),) = [one for one in compressed_parts(storage, directory) if one[1]]
    with open_reader(directory, CONFIG) as reader:
        sealed = next(one for one in reader.manifest.sealed if one.file_id == part.header.file_id)
        segment = sealed.at(directory)
        build(part.file, segment, batch_bytes_max=CONFIG.batch_bytes_max)
    index = Index(path_of_index(segment))
    assert index.ids(1 + 300) == [offset for offset, body in expected.items() if len(body) == 300]
    index.close()
    report = verify(directory, config=CONFIG)
    assert (report.damage, report.index_count) == (None, 1)
    assert report.record_count >= len(expected)


@pytest.mark.parametrize("place", [0, -1])
def test_damage_is_told_by_file_and_position(tmp_path: Path, place: int) -> None:
    """A wrong bit in a frame: verification names it, a reader and the broker never give bytes of that batch."""
    storage, directory = DiskStorage(), str(tmp_path)
    expected = written(storage, directory)
    ((part, places),) = [one for one in compressed_parts(storage, directory) if one[1]]
    walk = part.walk(places[place])
    header = next(iter(walk))
    with Path(part.path).open("rb+") as file:
        file.seek(places[place] + header.head_bytes + header.body_bytes // 2)
        (byte,) = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte ^ 8]))
    damage = verify(directory, config=CONFIG).damage
    assert (damage.file, damage.position) == (part.path, places[place] + header.head_bytes)  # type: ignore[union-attr]
    assert "expected body CRC" in str(damage)
    hurt = range(header.base_offset, walk.next_offset())
    with open_reader(directory, CONFIG) as reader:
        found = {one.offset: batch.body(one) for batch in reader.batches() for one in batch.records()}
    assert {offset for offset, body in found.items() if body is DAMAGED} == expected.keys() & set(hurt)
    life = Life(storage, directory)
    life.log.bodies.fetch([hurt[0], max(expected)])
    life.log.completed()
    assert life.log.bodies.get(hurt[0]) is DAMAGED
    assert life.log.bodies.get(max(expected)) == expected[max(expected)]
    life.log.close()


def test_a_repair_copies_compressed_batches_as_they_are() -> None:
    """Of a segment whose header or a batch of which is damaged the others stay, compressed, and are read again."""
    for position, keeps_first in ((20, True), (4096 + 20, False)):
        storage = SimulatedStorage(random.Random(1))
        expected = written(storage)
        ((part, places),) = [one for one in compressed_parts(storage) if one[1]]
        following = next(iter(part.walk(places[1]))).base_offset
        storage.damage(part.path, position, bytes([storage.content(part.path)[position] ^ 4]))
        apply(DIRECTORY, CONFIG, storage)
        ((copy, kept),) = [one for one in compressed_parts(storage) if one[1]]
        assert copy.header.is_compressible
        assert len(kept) == len(places) - (not keeps_first)
        life = Life(storage, config=ROOMY)
        wanted = sorted(offset for offset in expected if keeps_first or offset >= following)
        assert life.bodies(wanted) == [expected[offset] for offset in wanted]
        life.log.close()


def test_a_segment_that_must_not_be_compressed_is_told(tmp_path: Path) -> None:
    """A reader without zstandard may read version 1, so a compressed batch there is damage."""
    storage, directory = DiskStorage(), str(tmp_path)
    written(storage, directory)
    ((part, places),) = [one for one in compressed_parts(storage, directory) if one[1]]
    storage.open(part.path, create=True).write([part.header._replace(version=1).encode()], 0)
    damage = verify(directory, config=CONFIG).damage
    assert (damage.file, damage.position) == (part.path, places[0])  # type: ignore[union-attr]
    assert "found flags 3 in a segment of version 1" in str(damage)
