"""The file of a recording: what was written is read, whatever cuts it and whatever byte of it changes."""

import os
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.log.errors import DamageError, ForeignError
from ambermq.tools.proxy.recording import (
    HEADER_BYTES,
    RECORD_HEADER_BYTES,
    Kind,
    Record,
    RecordingReader,
    encode_header,
    encode_record,
)
from ambermq.tools.proxy.recording_file import LEAST_BYTES, RecordingWriter
from ambermq.tools.terminal.errors import ToolError
from tests.golden import GOLDEN_DIRECTORY

RECORDS = st.lists(
    st.builds(
        Record,
        st.integers(0, (1 << 62)),
        st.integers(0, (1 << 32) - 1),
        st.sampled_from(Kind),
        st.binary(max_size=40),
    ),
    max_size=6,
)
GOLDEN = [
    Record(1_700_000_000_000_001, 1, Kind.OPENED, b"127.0.0.1:40000"),
    Record(1_700_000_000_000_002, 1, Kind.CLIENT, b"AMQP\x00\x01\x00\x00"),
    Record(1_700_000_000_000_003, 1, Kind.BROKER, b"AMQP\x00\x01\x00\x00"),
    Record(1_700_000_000_000_004, 1, Kind.CLIENT_END, b""),
    Record(1_700_000_000_000_005, 1, Kind.BROKER_END, b"Connection reset by peer"),
    Record(1_700_000_000_000_006, 0, Kind.LIMIT, b""),
    Record(1_700_000_000_000_007, 0, Kind.END, b""),
]


def encoded(records: list[Record], time_us: int = 1_700_000_000_000_000) -> bytes:
    return encode_header(time_us) + b"".join(map(encode_record, records))


def read(data: bytes) -> tuple[list[Record], RecordingReader]:
    reader = RecordingReader(BytesIO(data), name="a.rec")
    return list(reader), reader


def test_the_bytes_are_those_of_version_1() -> None:
    """Old recordings stay readable, and new ones are equal to them."""
    golden = bytes.fromhex((GOLDEN_DIRECTORY / "recording.hex").read_text())
    records, reader = read(golden)
    assert (records, reader.time_us) == (GOLDEN, 1_700_000_000_000_000)
    assert encoded(GOLDEN) == golden


@given(RECORDS, st.data())
def test_a_file_that_is_cut_anywhere_has_the_records_before_the_cut(records: list[Record], data: st.DataObject) -> None:
    """A killed proxy leaves a readable file; the reader says whether a record is incomplete."""
    whole = encoded(records)
    end = data.draw(st.integers(HEADER_BYTES, len(whole)))
    found, reader = read(whole[:end])
    sizes = [len(encoded(records[:count])) for count in range(len(records) + 1)]
    count = max(index for index, size in enumerate(sizes) if size <= end)
    assert found == records[:count]
    assert reader.is_cut == (end not in sizes)


@given(RECORDS.filter(bool), st.data())
def test_a_changed_byte_is_damage(records: list[Record], data: st.DataObject) -> None:
    """No changed record is returned: the reader raises, or it takes the rest for a cut."""
    whole = bytearray(encoded(records))
    position = data.draw(st.integers(HEADER_BYTES, len(whole) - 1))
    whole[position] ^= data.draw(st.integers(1, 255))
    found: list[Record] = []
    try:
        found.extend(reader := RecordingReader(BytesIO(bytes(whole)), name="a.rec"))
    except DamageError:
        pass
    else:
        assert reader.is_cut
    assert found == records[: len(found)]
    assert len(found) < len(records)


@pytest.mark.parametrize("data", [b"", b"AMQP\0\1\0\0", b"{}"])
def test_another_file_is_named(data: bytes) -> None:
    """A file without the magic is no recording."""
    with pytest.raises(ForeignError, match=r"a\.rec: expected a recording"):
        read(data)


@pytest.mark.parametrize("size", range(8, HEADER_BYTES))
def test_a_cut_header_is_damage(size: int) -> None:
    """Nothing can be read of such a file."""
    with pytest.raises(DamageError):
        read(encode_header(1)[:size])


def test_a_length_is_checked_before_memory_is_allocated() -> None:
    """A record claims at most 1 MiB."""
    record = bytearray(encode_record(Record(1, 1, Kind.CLIENT, b"")))
    record[:4] = b"\xff\xff\xff\xff"
    with pytest.raises(DamageError, match="length of at most"):
        read(encode_header(1) + bytes(record))


def test_a_recording_ends_at_its_maximum_size(tmp_path: Path) -> None:
    """The last record says so, and the file is no longer than the limit."""
    path = tmp_path / "a.rec"
    limit = LEAST_BYTES + RECORD_HEADER_BYTES + 100
    writer = RecordingWriter(path, bytes_max=limit, time_us=1)
    appended = [writer.append(Record(2, 1, Kind.CLIENT, bytes(50))) for _ in range(3)]
    writer.close(3)
    assert appended == [True, False, True]
    found, reader = read(path.read_bytes())
    assert [record.kind for record in found] == [Kind.CLIENT, Kind.LIMIT]
    assert reader.is_ended
    assert path.stat().st_size <= limit


def test_a_recording_is_private_and_never_overwritten(tmp_path: Path) -> None:
    """It has passwords."""
    path = tmp_path / "a.rec"
    RecordingWriter(path, bytes_max=1000, time_us=1).close(2)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ToolError, match="the file exists"):
        RecordingWriter(path, bytes_max=1000, time_us=1)


def test_a_full_disk_ends_the_recording_at_a_whole_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written before stays readable."""
    path = tmp_path / "a.rec"
    writer = RecordingWriter(path, bytes_max=10_000, time_us=1)
    assert writer.append(Record(2, 1, Kind.CLIENT, b"first"))
    write = os.write
    calls = iter([lambda fd, data: write(fd, data[:10]), lambda _fd, _data: (_ for _ in ()).throw(OSError(28, "full"))])
    monkeypatch.setattr(os, "write", lambda *arguments: next(calls)(*arguments))  # noqa: PLW0108  # a new one each time
    assert not writer.append(Record(3, 1, Kind.CLIENT, b"second"))
    monkeypatch.undo()
    writer.close(4)
    found, reader = read(path.read_bytes())
    assert [record.content for record in found] == [b"first"]
    assert not reader.is_cut
