"""Read a backup, from one file or from a directory. Nothing is used before its checksum was right."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.format.batch import Mismatch
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.compression import decompress
from ambermq.tools.backup.format import (
    FRAME_HEADER_BYTES,
    HEADER_BYTES,
    TABLE_BYTES_MAX,
    TABLE_NAME,
    TRAILER_BYTES,
    BackupPart,
    Table,
    check_frame,
    decode_frame,
    decode_header,
    decode_table,
    decode_trailer,
)

__all__ = ["BackupReader"]

_ENDING: Final = ".part"


class BackupReader:
    """An open backup; the caller closes it."""

    def __init__(self, path: str) -> None:
        """Open and read the table of contents.

        Raises ForeignError if `path` is no backup, or one of a newer version; DamageError if it was truncated or
        changed; FileNotFoundError if it does not exist.
        """
        self._path = Path(path)
        self._is_directory = self._path.is_dir()
        self._file: BinaryIO | None = None
        if self._is_directory:
            self.table = _table_of_directory(self._path)
        else:
            self._file = self._path.open("rb")
            try:
                self.table = _table_of_file(self._file, str(self._path))
            except BaseException:
                self._file.close()
                raise

    def content(self, number: int) -> Iterator[bytes]:
        """Yield the content of a part, by its number in the table. Raises DamageError at the first wrong frame."""
        part = self.table.parts[number]
        if not self._is_directory:
            assert self._file is not None
            yield from self._frames(self._file, str(self._path), part, number)
            return
        path = self._path / (part.name + _ENDING)
        try:
            file = path.open("rb")
        except FileNotFoundError as error:
            raise DamageError(str(path), 0, "a part that the table names", "no file") from error
        with file:
            yield from self._frames(file, str(path), part, number)
            if file.read(1):
                raise DamageError(str(path), part.stored, "the end of the part", "more bytes")

    def _frames(self, file: BinaryIO, name: str, part: BackupPart, number: int) -> Iterator[bytes]:
        position, end = part.position, part.position + part.stored
        length = crc = 0
        size = file.seek(0, 2)
        if position > size:
            raise DamageError(name, size, f"{part.name} at {position}", "the end of a truncated file")
        file.seek(position)
        while position < end:
            content, stored = self._frame(file, name, position, number)
            position += stored
            length += len(content)
            crc = crc32c(content, crc)
            if length > part.length:
                break
            yield content
        if (position, length, crc) != (end, part.length, part.crc32c):
            expected = f"{part.length} bytes with crc32c {part.crc32c:08x} for {part.name}"
            raise DamageError(name, part.position, expected, f"{length} with {crc:08x}")

    def _frame(self, file: BinaryIO, name: str, position: int, number: int) -> tuple[bytes, int]:
        """Return the content of the frame at `position`, and the length of the frame."""
        frame = decode_frame(file.read(FRAME_HEADER_BYTES), name, position)
        payload = file.read(frame.stored)
        check_frame(frame, payload, name, position)
        if frame.part != number:
            raise DamageError(name, position, f"a frame of part {number}", f"one of part {frame.part}")
        content = decompress(payload, frame.length)
        if isinstance(content, Mismatch):
            raise DamageError(name, position, content.expected, content.found)
        return content, FRAME_HEADER_BYTES + frame.stored

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()


def _table_of_directory(directory: Path) -> Table:
    path = directory / TABLE_NAME
    try:
        with path.open("rb") as file:
            text = file.read(TABLE_BYTES_MAX)
    except FileNotFoundError as error:
        raise ForeignError(f"{directory} is no backup: expected a file {TABLE_NAME}, found none") from error
    return decode_table(text, str(path))


def _table_of_file(file: BinaryIO, name: str) -> Table:
    head = decode_header(file.read(HEADER_BYTES), name)
    size = file.seek(0, 2)
    file.seek(max(0, size - TRAILER_BYTES))
    position, length = decode_trailer(file.read(TRAILER_BYTES), name, size)
    file.seek(position)
    table = decode_table(file.read(length), f"{name} (table)")
    if table.head != head:
        raise DamageError(name, 16, f"the header of {table.head}", f"{head}")
    return table
