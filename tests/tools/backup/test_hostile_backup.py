"""Backups whose checksums are right and whose claims are not: each is refused, and nothing is allocated for a claim."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.snapshots.state_codec import ImageFault, image_of, state_of
from ambermq.log.buffer import Buffer
from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.format.batch import Mismatch
from ambermq.log.format.compression import decompress
from ambermq.log.format.crc_document import with_crc_line
from ambermq.snapshot.block_file import Block, BlockKind
from ambermq.tools.backup import format as backup_format
from ambermq.tools.backup import reader as backup_reader
from ambermq.tools.backup import writer as backup_writer
from ambermq.tools.backup.export import export_backup
from ambermq.tools.backup.format import (
    FRAME_BYTES_MAX,
    FRAME_HEADER_BYTES,
    TRAILER_BYTES,
    Table,
    decode_frame,
    decode_table,
    decode_trailer,
    encode_frame,
    encode_table,
    encode_trailer,
)
from ambermq.tools.backup.reader import BackupReader
from ambermq.tools.backup.restore import restore_backup
from ambermq.tools.backup.verify import verify_backup
from ambermq.tools.terminal.errors import ToolError
from tests.engine.histories import lived
from tests.tools.backups import taken


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a backup in one file."""
    return Path(taken(tmp_path_factory.mktemp("source"), 7)[0]).read_bytes()


def split(content: bytes) -> tuple[bytes, Table]:
    """What lies before the table, and the table."""
    position, length = decode_trailer(content[-TRAILER_BYTES:], "backup", len(content))
    return content[:position], decode_table(content[position : position + length], "backup")


def joined(before: bytes, text: bytes) -> bytes:
    """A backup with this table, its checksums right."""
    return before + text + encode_trailer(position=len(before), length=len(text))


def changed(backup: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The backup with another table."""
    before, table = split(backup)
    values = json.loads(msgspec.json.encode(table))
    change(values)
    return joined(before, with_crc_line(json.dumps(values).encode() + b"\n"))


def refused(tmp_path: Path, content: bytes, *, match: str = "") -> None:
    """Neither verified nor restored, and nothing is left of the attempt."""
    path = tmp_path / "hostile.backup"
    path.write_bytes(content)
    with pytest.raises((DamageError, ForeignError), match=match):
        verify_backup(str(path))
    with pytest.raises((DamageError, ForeignError), match=match):
        restore_backup(str(path), str(tmp_path / "restored"))
    assert not (tmp_path / "restored").exists()


def frames_of(before: bytes, table: Table, number: int) -> Iterator[bytes]:
    """What the frames of a part hold."""
    part = table.parts[number]
    position = part.position
    while position < part.position + part.stored:
        frame = decode_frame(before[position : position + FRAME_HEADER_BYTES], "backup", position)
        start = position + FRAME_HEADER_BYTES
        position = start + frame.stored
        yield zstandard.ZstdDecompressor().decompress(before[start:position])


@pytest.mark.parametrize("claimed", [1 << 40, 1 << 62, 17])
def test_a_frame_that_promises_another_size_is_refused(tmp_path: Path, backup: bytes, claimed: int) -> None:
    """zstandard would allocate what its own header says."""
    before, table = split(backup)
    (content,) = frames_of(before, table, 0)
    payload = b"\x28\xb5\x2f\xfd\xe0" + claimed.to_bytes(8, "little") + b"\x01\x00\x00"
    frame = b"".join(encode_frame(payload, length=len(content), part=0))
    refused(tmp_path, with_first_part(before, table, frame), match="zstandard frame")


def with_first_part(before: bytes, table: Table, frames: bytes, **claims: int) -> bytes:
    """The backup with other frames in the place of the snapshot's, and with what the table says of it."""
    first = table.parts[0]
    shift = len(frames) - first.stored
    rest = [msgspec.structs.replace(part, position=part.position + shift) for part in table.parts[1:]]
    parts = (msgspec.structs.replace(first, stored=len(frames), **claims), *rest)
    content = before[: first.position] + frames + before[first.position + first.stored :]
    return joined(content, encode_table(msgspec.structs.replace(table, parts=parts)))


def test_a_part_ends_where_it_holds_more_than_was_said(
    tmp_path: Path, backup: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes a frame become a MiB each: of two hundred no more are read than the table claims, and one."""
    before, table = split(backup)
    zeros = zstandard.ZstdCompressor().compress(bytes(FRAME_BYTES_MAX))
    frames = b"".join(encode_frame(zeros, length=FRAME_BYTES_MAX, part=0)) * 200
    lengths: list[int] = []

    def counted(frame: Buffer, length: int) -> bytes | Mismatch:
        lengths.append(length)
        return decompress(frame, length)

    monkeypatch.setattr(backup_reader, "decompress", counted)
    claims = {"length": 3 * FRAME_BYTES_MAX}
    path = tmp_path / "backup"
    path.write_bytes(with_first_part(before, table, frames, **claims))
    with BackupReader(str(path)) as reader, pytest.raises(DamageError, match=f"expected {claims['length']} bytes"):
        assert sum(map(len, reader.content(0))) <= claims["length"]
    assert sum(lengths) <= 4 * FRAME_BYTES_MAX


@pytest.mark.parametrize(
    ("number", "limit"), [(0, "SNAPSHOT_BYTES_MAX"), (1, "SEGMENT_BYTES_MAX")], ids=["snapshot", "segment"]
)
def test_a_part_may_not_claim_more_than_its_limit(tmp_path: Path, backup: bytes, number: int, limit: str) -> None:
    """It is refused by the table alone."""

    def change(values: dict[str, Any]) -> None:
        values["parts"][number]["length"] = getattr(backup_format, limit) + 1

    refused(tmp_path, changed(backup, change), match=f"bytes at most as part {number}")


@pytest.mark.parametrize("count", [0, 65_537])
def test_the_number_of_parts_has_bounds(tmp_path: Path, backup: bytes, count: int) -> None:
    """No part at all, or more than can be."""
    refused(tmp_path, changed(backup, lambda values: values.update(parts=values["parts"][:1] * count)), match="parts")


def test_a_table_beyond_its_limit_is_not_read(tmp_path: Path, backup: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trailer says how long it is."""
    monkeypatch.setattr(backup_format, "TABLE_BYTES_MAX", 100)
    refused(tmp_path, backup, match="a table that ends at")


def test_segments_answer_for_all_offsets_below_the_end(tmp_path: Path, backup: bytes) -> None:
    """Neither a hole nor less than was said."""

    def hole(values: dict[str, Any]) -> None:
        values["parts"][1]["segment"]["base_offset"] += 1

    def short(values: dict[str, Any]) -> None:
        values["parts"][-1]["segment"]["next_offset"] -= 1

    refused(tmp_path, changed(backup, hole), match="a segment from 0")
    refused(tmp_path, changed(backup, short), match="segments up to")


_HOSTILE: st.SearchStrategy[Any] = st.one_of(
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from(["", "../../x", "a\x1b[2J", "x" * 5000, None, True, 1.5, [], [[]], {}, {"a": {}}]),
)


@settings(max_examples=80, deadline=None)
@given(field=st.sampled_from(Table.__struct_fields__), part=st.booleans(), value=_HOSTILE, data=st.data())
def test_whatever_a_field_claims_it_is_refused_or_checked(
    tmp_path_factory: pytest.TempPathFactory, backup: bytes, field: str, part: bool, value: Any, data: st.DataObject
) -> None:
    """No value of a field ends in anything but a refusal; where it is believed, all else was as it says."""

    def change(values: dict[str, Any]) -> None:
        where = values
        if part:
            where = data.draw(
                st.sampled_from([values["parts"][0], values["parts"][-1], values["parts"][-1]["segment"]])
            )
        where[data.draw(st.sampled_from(sorted(where))) if part else field] = value

    path = tmp_path_factory.mktemp("hostile") / "backup"
    path.write_bytes(changed(backup, change))
    try:
        table = verify_backup(str(path))
    except (DamageError, ForeignError):
        return
    assert table.name.isprintable()
    assert table.head == split(backup)[1].head


def test_nesting_without_end_is_refused(tmp_path: Path, backup: bytes) -> None:
    """In a field that is known, and in one that is not."""
    before, _ = split(backup)
    deep = b"[" * 100_000 + b"]" * 100_000
    for text in (b'{"version": 1, "x": %b}\n', b'{"version": %b}\n', b'{"version": 1, "parts": %b}\n'):
        refused(tmp_path, joined(before, with_crc_line(text % deep)), match="a JSON object with a version")


def test_entries_are_no_more_than_the_words_that_they_are_of() -> None:
    """An entry takes hundreds of bytes of memory, and two in a file: words bound their number."""
    blocks = list(image_of(lived(3, 200).state))
    queue = next(iter(lived(3, 200).state.queues))
    row = {"queue": queue, "entry": {}, "offsets": [1] * 100_000}
    hostile = [*blocks, Block(BlockKind.ENTRIES, [json.dumps([row]).encode()])]
    with pytest.raises(ImageFault, match="more entries of queue"):
        state_of(hostile)
    with pytest.raises(ImageFault, match="cannot be decoded"):
        state_of([*blocks, Block(BlockKind.QUEUES, [b"[" * 100_000])])


def test_an_export_writes_nothing_that_a_restore_would_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with one message instead, and leaves nothing."""
    taken(tmp_path, 7)
    monkeypatch.setattr(backup_writer, "part_bytes_max", lambda _: 12_000)
    with pytest.raises(ToolError, match="the backup would be too large: expected 12000 bytes at most in segment-0001"):
        export_backup(str(tmp_path / "source"), "one", str(tmp_path / "large"), as_directory=False)
    assert not list(tmp_path.glob("large*"))
