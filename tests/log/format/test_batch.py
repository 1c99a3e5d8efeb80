"""A batch is believed or refused as a whole."""

from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.format.batch import (
    BATCH_HEADER_BYTES,
    Batch,
    BatchHeader,
    DraftBatch,
    check,
    check_bodies,
    check_bounds,
    decode_header,
    encode_batch,
)
from ambermq.log.format.record import RECORD, RECORD_HEAD, RECORD_TAIL, Record
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.storage.interface import File
from tests.golden import GOLDEN_DIRECTORY

GOLDEN = GOLDEN_DIRECTORY / "batch.hex"
BATCH_BYTES_MAX = 4 << 20
SALT_CRC = 0x12345678

u8, u16, u32 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32))
i64 = st.integers(-(2**63), 2**63 - 1)
rows = st.lists(
    st.tuples(u32, i64, i64, st.integers(-(2**40), 2**40), u32, u16, u8, u8, st.binary(max_size=9)), max_size=6
)
bodies_of = st.lists(st.one_of(st.binary(max_size=30), st.binary(min_size=5000, max_size=5010)), min_size=6, max_size=6)


def _encode(records: list[bytes], *, meta: bytes = b"", bodies: list[bytes], salt_crc: int = SALT_CRC) -> bytes:
    batch = DraftBatch(
        1000,
        1_700_000_000_000_000,
        count=len(records),
        records=records,
        meta=[meta],
        bodies=bodies,
        body_bytes=sum(map(len, bodies)),
    )
    return b"".join(encode_batch(batch, salt_crc=salt_crc, durable_end=900, epoch=2))


def _golden_batch() -> bytes:
    first = RECORD.pack(0, 5, 3, 0xAABBCCDD, 17, -1, 0, 1, 2, 3, 4)
    second = RECORD.pack(1, 6, 0, 0, 18, 1000, 250, 0, 0, 5, 0)
    return _encode([first, second], meta=b"abc", bodies=[b"hello", b"world!"])


def _fault(content: bytes, salt_crc: int = SALT_CRC) -> str | None:
    wrong = check(salt_crc, content, batch_bytes_max=BATCH_BYTES_MAX)
    if wrong is None:
        header = decode_header(content)
        wrong = check_bodies(header, content[header.head_bytes : header.length])
    return None if wrong is None else f"{wrong.expected} | {wrong.found}"


def test_golden_bytes() -> None:
    """The format stands: these bytes were written by version 1 and are what it writes."""
    assert _golden_batch().hex() == "".join(GOLDEN.read_text().split())


def test_a_record_is_its_head_and_its_tail() -> None:
    """Packing a record whole or in its two halves gives the same 48 bytes."""
    columns = (1, 2, 3, 4, 5, -6, 7, 8, 9, 10, 11)
    assert RECORD.pack(*columns) == RECORD_HEAD.pack(*columns[:4]) + RECORD_TAIL.pack(*columns[4:])
    assert RECORD.size == 48


@given(rows, bodies_of)
@settings(max_examples=150, deadline=None)
def test_what_was_encoded_is_decoded(rows: list[tuple], bodies: list[bytes]) -> None:
    """Records, metas and bodies come back as they were, by absolute offset and time, and each body where it is said."""
    bodies = bodies[: len(rows)]
    records, expected = [], []
    for delta, (row, body) in enumerate(zip(rows, bodies, strict=True)):
        id_hash, queue, ref, time_delta, count, aux, kind, flags, meta = row
        records.append(
            RECORD.pack(delta, len(body), len(meta), id_hash, queue, ref, time_delta, count, aux, kind, flags)
        )
        timestamp_us = 1_700_000_000_000_000 + time_delta
        expected.append((1000 + delta, timestamp_us, kind, flags, queue, ref, count, aux, id_hash, meta, body))
    meta = b"".join(row[-1] for row in rows)
    content = _encode(records, meta=meta, bodies=bodies)
    assert _fault(content) is None
    header = decode_header(content)
    assert header.length == len(content)
    assert len(content) % 8 == 0
    assert (header.base_offset, header.durable_end, header.epoch, header.count) == (1000, 900, 2, len(rows))
    records_end = BATCH_HEADER_BYTES + 48 * len(rows)
    batch = Batch(header, content[BATCH_HEADER_BYTES:records_end], content[records_end : header.head_bytes], 1, 4096)
    found = batch.record_list()
    assert [(*record[:10], content[record.body_position :][: record.body_length]) for record in found] == expected
    assert all(type(record) is Record for record in found)
    assert [row[0] for row in batch.rows()] == list(range(len(rows)))
    assert batch.next_offset == 1000 + len(rows)


@pytest.mark.parametrize("body_bytes", [0, 11, 9000])
def test_a_flipped_bit_anywhere_is_found(body_bytes: int) -> None:
    """One wrong bit in header, records, meta, bodies or padding: refused, with what was expected and what was found."""
    record = RECORD.pack(0, body_bytes, 3, 1, 2, 3, 4, 5, 6, 7, 8)
    content = _encode([record], meta=b"abc", bodies=[b"b" * body_bytes])
    assert _fault(content) is None
    for bit in range(0, 8 * len(content), 1 if body_bytes < 100 else 7):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        assert _fault(damaged), f"bit {bit}"


def test_a_truncated_batch_is_found() -> None:
    """However much is missing at the end, the batch is refused."""
    content = _golden_batch()
    for length in range(len(content)):
        assert _fault(content[:length]), f"{length} bytes"


def test_another_segments_batch_is_found() -> None:
    """The same bytes under another salt are refused."""
    assert _fault(_golden_batch()) is None
    assert "head CRC" in (_fault(_golden_batch(), SALT_CRC + 1) or "")


def test_nothing_written_is_blank() -> None:
    """Zeros are no batch and no damage: the segment ends there."""
    content = _golden_batch() + bytes(128)
    file = SimpleNamespace(read=lambda length, position: content[position : position + length])
    walk = BatchWalk(
        cast("File", file), 1, salt_crc=SALT_CRC, position=0, end=len(content), batch_bytes_max=BATCH_BYTES_MAX
    )
    assert [header.count for header in walk] == [2]
    assert (walk.position, walk.mismatch) == (len(content) - 128, None)


@given(st.lists(u32, min_size=10, max_size=10), st.integers(0, 2**20))
@settings(max_examples=300, deadline=None)
def test_a_claimed_length_is_bounded_before_use(columns: list[int], content_bytes: int) -> None:
    """Whatever numbers a header claims, those that pass describe at most the largest batch, and themselves."""
    length, count, meta_bytes, body_bytes, *_ = columns
    for header in (
        _header(length, count, meta_bytes, body_bytes),
        _header(64 + content_bytes, 0, 0, content_bytes),
        _header((64 + 48 * (count % 9) + content_bytes + 7) // 8 * 8, count % 9, 0, content_bytes),
    ):
        if check_bounds(header, batch_bytes_max=1 << 20) is None:
            assert header.head_bytes + header.body_bytes <= header.length <= 1 << 20


def _header(length: int, count: int, meta_bytes: int, body_bytes: int) -> BatchHeader:
    return BatchHeader(0x42424D41, length, 0, 0, 0, 0, 0, count, 0, meta_bytes, body_bytes, 0, 0)


def test_large_bodies_are_not_copied() -> None:
    """Bodies of a page and more reach the write as they are; small ones are joined with the rest into one buffer."""
    large = [memoryview(bytes(5000)) for _ in range(3)]
    record = RECORD.pack(0, 5000, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    written = {"salt_crc": 0, "durable_end": 0, "epoch": 0}
    buffers = encode_batch(DraftBatch(0, count=3, records=3 * [record], bodies=large, body_bytes=15000), **written)
    assert [buffer for buffer in buffers if any(buffer is body for body in large)] == large
    small = DraftBatch(0, count=1, records=[record], bodies=[b"x" * 100], body_bytes=100)
    assert len(encode_batch(small, **written)) == 1
