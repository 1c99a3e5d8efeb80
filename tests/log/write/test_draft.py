"""The batches of a tick, before they are written."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.config import LogConfig
from ambermq.log.format.batch import (
    BATCH_HEADER_BYTES,
    Batch,
    DraftBatch,
    check,
    check_bodies,
    decode_header,
    encode_batch,
)
from ambermq.log.format.record import Record
from ambermq.log.write.draft import Draft

CONFIG = LogConfig(batch_bytes_target=4096, batch_bytes_max=16384)
NOW_US = 1_700_000_000_000_000
BIGGEST_BYTES = CONFIG.batch_bytes_max - BATCH_HEADER_BYTES - 48 - 8

run_sizes = st.lists(st.one_of(st.integers(0, 60), st.integers(1000, 2500)), min_size=1, max_size=3)
runs = st.tuples(run_sizes, st.binary(max_size=20), st.integers(0, 10**6))
commands_of_runs = st.lists(st.lists(runs, min_size=1, max_size=2), max_size=30)


def _records(batch: DraftBatch) -> list[tuple[Record, bytes]]:
    """Encode, check, decode: each record and its body."""
    content = b"".join(encode_batch(batch, salt_crc=5, durable_end=0, epoch=1))
    assert len(content) == batch.size <= CONFIG.batch_bytes_max
    assert check(5, content, batch_bytes_max=CONFIG.batch_bytes_max) is None
    header = decode_header(content)
    assert check_bodies(header, content[header.head_bytes :]) is None
    meta_at = BATCH_HEADER_BYTES + 48 * header.count
    read = Batch(header, content[BATCH_HEADER_BYTES:meta_at], content[meta_at : header.head_bytes], 1, 0)
    return [(record, content[record.body_position :][: record.body_length]) for record in read.record_list()]


def _add_run(draft: Draft, sizes: list[int], meta: bytes, time_us: int, *, one_by_one: bool) -> list[tuple]:
    """Add a run by either way, and return what it must read back as."""
    first = draft.next_offset
    bodies = [bytes([offset % 251]) * size for offset, size in enumerate(sizes, first)]
    hashes = list(range(len(sizes)))
    timestamp_us = NOW_US + time_us
    if one_by_one:
        for body, id_hash in zip(bodies, hashes, strict=True):
            draft.add(
                7, timestamp_us=timestamp_us, flags=3, queue=5, ref=-1, aux=9, id_hash=id_hash, meta=meta, body=body
            )
    else:
        offset = draft.add_bodies(
            7, timestamp_us=timestamp_us, queue=5, bodies=bodies, id_hashes=hashes, flags=3, ref=-1, aux=9, meta=meta
        )
        assert offset == first
    assert draft.next_offset == first + len(sizes)
    return [
        (Record(first + index, timestamp_us, 7, 3, 5, -1, 0, 9, index, meta, len(body), 0), body)
        for index, body in enumerate(bodies)
    ]


@given(commands_of_runs, st.integers(0, 2**40), st.booleans())
@settings(max_examples=150, deadline=None)
def test_drafts_hold_the_laws(commands: list[list[tuple]], next_offset: int, one_by_one: bool) -> None:
    """A run is as its records one by one; all reads back in order, commands whole, batches within their bounds."""
    draft = Draft(CONFIG, next_offset=next_offset)
    expected, command_bytes = [], {}
    for command in commands:
        start, before = draft.next_offset, len(expected)
        for sizes, meta, time_us in command:
            expected += _add_run(draft, sizes, meta, time_us, one_by_one=one_by_one)
        command_bytes[start] = sum(48 + len(record.meta) + len(body) for record, body in expected[before:])
        draft.end_command()
    assert draft.record_count == len(expected)
    batches = draft.take()
    found = [pair for batch in batches for pair in _records(batch)]
    assert [(record._replace(body_position=0), body) for record, body in found] == expected
    for batch, following in pairwise(batches):
        next_bytes = command_bytes[following.base_offset]
        assert batch.size >= CONFIG.batch_bytes_target or batch.size + next_bytes > CONFIG.batch_bytes_max - 8
    hot = {offset: body for batch in batches for first, run, _ in batch.runs for offset, body in enumerate(run, first)}
    assert {offset: body for offset, body in hot.items() if body} == {
        record.offset: body for record, body in expected if body
    }
    assert (draft.record_count, draft.take()) == (0, [])


def test_the_target_is_reached_by_whole_commands() -> None:
    """A batch is closed by the command that takes it to the target, not before."""
    draft = Draft(CONFIG, next_offset=0)
    for _ in range(8):
        draft.add(1, timestamp_us=NOW_US, body=b"x" * 1000)
        draft.end_command()
    assert [batch.count for batch in draft.take()] == [4, 4]


def test_a_command_that_does_not_fit_begins_a_batch() -> None:
    """A batch is closed before a command that would take it past the largest size, and that command stays whole."""
    draft = Draft(CONFIG, next_offset=100)
    draft.add(1, timestamp_us=NOW_US, meta=b"m", body=b"a" * 10)
    draft.end_command()
    for _ in range(2):
        draft.add(2, timestamp_us=NOW_US + 5, meta=b"n", body=b"b" * 8080)
    draft.end_command()
    batches = draft.take()
    assert [(batch.base_offset, batch.count) for batch in batches] == [(100, 1), (101, 2)]
    assert [record.timestamp_us for batch in batches for record, _ in _records(batch)] == [
        NOW_US,
        NOW_US + 5,
        NOW_US + 5,
    ]


def test_the_largest_command_fits_and_a_larger_one_is_our_mistake() -> None:
    """One command has at most the bytes of one batch; a larger one is stopped before it is written."""
    draft = Draft(CONFIG, next_offset=0)
    draft.add(1, timestamp_us=NOW_US, body=bytes(BIGGEST_BYTES))
    draft.end_command()
    assert [batch.size for batch in draft.take()] == [CONFIG.batch_bytes_max - 8]
    draft.add(1, timestamp_us=NOW_US, body=bytes(BIGGEST_BYTES + 1))
    with pytest.raises(AssertionError, match="one command of"):
        draft.end_command()


def test_the_largest_record_fits_behind_what_its_command_has() -> None:
    """However much that is, and the commands before it in the batch: a part never ends below the target."""
    meta = bytes(CONFIG.record_bytes_max - 48)
    for before in (0, CONFIG.batch_bytes_target - BATCH_HEADER_BYTES - 49):
        draft = Draft(CONFIG, next_offset=0)
        draft.add(1, timestamp_us=NOW_US, meta=bytes(before))
        draft.end_command()
        draft.add(1, timestamp_us=NOW_US, meta=bytes(CONFIG.batch_bytes_target - 49))
        draft.end_part()
        draft.add(1, timestamp_us=NOW_US, meta=meta)
        draft.end_part()
        assert [len(_records(batch)) for batch in draft.take()] == [1, 2]


def test_byte_count_is_what_will_be_written() -> None:
    """The count grows with every record by 48 bytes, meta and body, over closed batches and the open one."""
    draft = Draft(CONFIG, next_offset=0)
    for _ in range(10):
        before = draft.byte_count
        draft.add(1, timestamp_us=NOW_US, meta=b"abc", body=b"x" * 997)
        assert draft.byte_count == before + 48 + 1000
        draft.end_command()
    assert abs(draft.byte_count - sum(batch.size for batch in draft.take())) <= 2 * BATCH_HEADER_BYTES
