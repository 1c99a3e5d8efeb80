"""The lines of the audit log and their chain.

    {"time":"2026-11-23T18:00:00.000000Z","event":"login","user":"alice","peer":"10.0.0.7:4000",...,"prev":"9f86…"}

`prev` is the SHA-256 of the line before, without its newline, in hexadecimal; zeros in the very first line. The first
line of a file continues the last one of the file before. Files are named 00000001.ndjson, 00000002.ndjson, …

Rule 1. A line that a kill has cut is the last one of its file, and no other line refers to it.
Rule 2. Lines that were cut off at the very end of the log leave no trace in it: store its last hash elsewhere if that
        must be seen.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

__all__ = ["FIRST", "Fault", "Line", "audit_files", "encode_line", "hash_of", "last_hash", "path_of_file", "walk"]

FIRST: Final = "0" * 64
"""The hash before the first line."""
_SUFFIX: Final = ".ndjson"
_TAIL_BYTES: Final = 1 << 16
_NEWLINES: Final = 2
"""The end of the last whole line, and the end of the one before."""
_encode = msgspec.json.Encoder().encode


class Line(NamedTuple):
    """One line of the log."""

    path: Path
    number: int
    """Its number in the file, from 1."""
    values: dict[str, Any]


class Fault(NamedTuple):
    """A place where the chain is broken."""

    path: Path
    number: int
    found: str


def encode_line(values: dict[str, Any], prev: str) -> bytes:
    """Return the bytes of a line, without a newline."""
    return _encode({**values, "prev": prev})


def hash_of(line: bytes) -> str:
    """Return the hash of a line without its newline."""
    return hashlib.sha256(line).hexdigest()


def path_of_file(directory: Path, number: int) -> Path:
    """Return the path of a file by its number, from 1."""
    return directory / f"{number:08}{_SUFFIX}"


def audit_files(directory: Path) -> list[Path]:
    """Return the files of the log, the oldest first."""
    return sorted(path for path in directory.glob(f"*{_SUFFIX}") if path.stem.isdecimal())


def last_hash(path: Path) -> str | None:
    """Return the hash of a file's last whole line; None if it has none. Only the end of the file is read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        tail, start = b"", size
        # The last line is whole when the newline before it is read, too.
        while start and tail.count(b"\n") < _NEWLINES:
            start = max(start - _TAIL_BYTES, 0)
            file.seek(start)
            tail = file.read(size - start)
    lines = tail.split(b"\n")[:-1]
    return hash_of(lines[-1]) if lines else None


def walk(directory: Path) -> Iterator[Line | Fault]:
    """Yield the lines of the log in order, and each place where the chain is broken."""
    expected: str | None = None
    for path in audit_files(directory):
        *lines, rest = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            values = _decoded(line)
            prev = None if values is None else values.pop("prev", None)
            if values is None or not isinstance(prev, str):
                yield Fault(path, number, "no line of the audit log")
                expected = hash_of(line)
                continue
            if expected is not None and prev != expected:
                yield Fault(path, number, f"the line before has the hash {expected[:16]}, expected {prev[:16]}")
            expected = hash_of(line)
            yield Line(path, number, values)
        if rest and _decoded(rest) is not None:
            # A kill cuts a line before its end; a whole line lost its newline in another way.
            yield Fault(path, len(lines) + 1, "the last line has no newline")


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        values = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return values if isinstance(values, dict) else None
