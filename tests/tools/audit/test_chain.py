"""Any change of an audit log but at its very end is found."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.tools.audit.chain import FIRST, Fault, Line, encode_line, hash_of, path_of_file, walk


def _write(directory: Path, counts: tuple[int, ...] = (4, 3)) -> list[bytes]:
    """Write files with so many lines each; return all lines."""
    lines, prev = [], FIRST
    for number, count in enumerate(counts, 1):
        path = path_of_file(directory, number)
        with path.open("wb") as file:
            for _ in range(count):
                line = encode_line({"time": "2026-11-23T18:00:00.000000Z", "event": f"e{len(lines)}"}, prev)
                file.write(line + b"\n")
                prev = hash_of(line)
                lines.append(line)
    return lines


def _faults(directory: Path) -> list[Fault]:
    return [one for one in walk(directory) if isinstance(one, Fault)]


def test_a_whole_log_has_no_fault(tmp_path: Path) -> None:
    _write(tmp_path)
    found = list(walk(tmp_path))
    assert [one.values["event"] for one in found if isinstance(one, Line)] == [f"e{number}" for number in range(7)]
    assert _faults(tmp_path) == []


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_changed_byte_is_found(data: st.DataObject) -> None:
    """In every line but the last one, whose hash no other line has."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        lines = _write(directory)
        path = path_of_file(directory, data.draw(st.integers(1, 2)))
        content = bytearray(path.read_bytes())
        last = len(content) if path.stem.endswith("1") else len(content) - len(lines[-1]) - 1
        position = data.draw(st.integers(0, last - 1))
        content[position] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        assert _faults(directory)


def test_a_line_that_was_removed_or_inserted_is_found(tmp_path: Path) -> None:
    _write(tmp_path)
    path = path_of_file(tmp_path, 1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))
    assert [(fault.path, fault.number) for fault in _faults(tmp_path)] == [(path, 2)]
    path.write_bytes(
        b"".join([*lines[:2], encode_line({"event": "false"}, hash_of(lines[1][:-1])) + b"\n", *lines[2:]])
    )
    assert [(fault.path, fault.number) for fault in _faults(tmp_path)] == [(path, 4)]


def test_the_end_of_an_older_file_cannot_be_cut_off(tmp_path: Path) -> None:
    _write(tmp_path)
    path = path_of_file(tmp_path, 1)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert [fault.path for fault in _faults(tmp_path)] == [path_of_file(tmp_path, 2)]


def test_the_chain_begins_where_the_oldest_file_does(tmp_path: Path) -> None:
    """Old files go by size."""
    _write(tmp_path, (2, 2, 2))
    path_of_file(tmp_path, 1).unlink()
    assert _faults(tmp_path) == []


def test_a_line_that_a_kill_has_cut_is_no_fault(tmp_path: Path) -> None:
    lines = _write(tmp_path, (3,))
    path = path_of_file(tmp_path, 1)
    path.write_bytes(path.read_bytes() + lines[0][:40])
    assert _faults(tmp_path) == []
    with path_of_file(tmp_path, 2).open("wb") as file:
        file.write(encode_line({"event": "next"}, hash_of(lines[-1])) + b"\n")
    assert _faults(tmp_path) == []
