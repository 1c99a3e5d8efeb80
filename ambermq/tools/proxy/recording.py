r"""The bytes of a recording: a header, then a record for each read of the proxy, and for each begin and end.

    header, 32 bytes
    offset width field
     0     8 B   magic      "AMBERREC"
     8     u32   version    1
    12     u32   zero
    16     i64   time_us    of the start of the recording
    24     u32   zero
    28     u32   crc        CRC-32C of bytes 0 to 28

    record, 24 bytes and its content
     0     u32   length     bytes of the content; 1 MiB at most
     4     u32   connection number of the connection, from 1; 0 for the recording itself
     8     i64   time_us
    16     u32   kind       see Kind
    20     u32   crc        CRC-32C of bytes 0 to 20, then of the content
    24     the content      bytes of a peer, or UTF-8 text

Little-endian. Times are microseconds since 1970, UTC. A recording that ends without LIMIT or END was cut off by a kill.

Rule 1. The reader uses no field before its checksum was right, except a length within its bound.
Rule 2. A kill cuts the file within its last record at most: what is before that record is whole.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.format.checksum import crc32c

__all__ = [
    "CONTENT_BYTES_MAX",
    "HEADER_BYTES",
    "RECORD_HEADER_BYTES",
    "VERSION",
    "Kind",
    "Record",
    "RecordingReader",
    "encode_header",
    "encode_record",
]

VERSION: Final = 1
HEADER_BYTES: Final = 32
RECORD_HEADER_BYTES: Final = 24
CONTENT_BYTES_MAX: Final = 1 << 20
"""The maximum length of a record's content; a reader allocates no more for one record."""

_MAGIC: Final = b"AMBERREC"
_HEADER: Final = Struct("<8sIIqI")
_RECORD: Final = Struct("<IIqI")
_CRC: Final = Struct("<I")


class Kind(IntEnum):
    """The kind of a record, as the file has it."""

    OPENED = 1
    """A client has connected; the content is its address."""
    CLIENT = 2
    """Bytes of the client."""
    BROKER = 3
    """Bytes of the broker."""
    CLIENT_END = 4
    """The client sends no more bytes; the content is the reason, empty for a normal end of its stream."""
    BROKER_END = 5
    """The broker sends no more bytes, or does not answer; the content is as for the client."""
    LIMIT = 6
    """The recording has reached its maximum size; later bytes were relayed and not recorded."""
    END = 7
    """The proxy has ended the recording."""


class Record(NamedTuple):
    """A record of a recording."""

    time_us: int
    connection: int
    kind: Kind
    content: bytes

    @property
    def text(self) -> str:
        """The content as text."""
        return self.content.decode(errors="replace")


def encode_header(time_us: int) -> bytes:
    """Return the header of a recording that starts at a time."""
    head = _HEADER.pack(_MAGIC, VERSION, 0, time_us, 0)
    return head + _CRC.pack(crc32c(head))


def encode_record(record: Record) -> bytes:
    """Return the bytes of a record."""
    assert len(record.content) <= CONTENT_BYTES_MAX
    head = _RECORD.pack(len(record.content), record.connection, record.time_us, record.kind)
    return b"".join((head, _CRC.pack(crc32c(record.content, crc32c(head))), record.content))


class RecordingReader:
    """The records of a file, in order; the file may end within a record."""

    def __init__(self, file: BinaryIO, *, name: str) -> None:
        """Read the header; raise ForeignError or DamageError if the file is not a recording."""
        self._file = file
        self._name = name
        self._position = 0
        self.is_cut = False
        """Whether the file ended within a record: its writer was killed. It is known after the last record."""
        self.is_ended = False
        """Whether the last record was LIMIT or END."""
        self.time_us = self._read_header()
        """The start of the recording."""

    def __iter__(self) -> Iterator[Record]:
        """Yield the records; raise DamageError for a record whose checksum is wrong."""
        while (record := self._read_record()) is not None:
            self.is_ended = record.kind in (Kind.LIMIT, Kind.END)
            yield record

    def _read_header(self) -> int:
        header = self._file.read(HEADER_BYTES)
        if not header.startswith(_MAGIC):
            raise ForeignError(f"{self._name}: expected a recording of ambermq proxy, found {header[:8]!r}")
        if len(header) < HEADER_BYTES:
            raise self._damage(f"a header of {HEADER_BYTES} bytes", f"{len(header)} bytes")
        _, version, _, time_us, _ = _HEADER.unpack_from(header)
        crc = crc32c(header[:-4])
        if _CRC.unpack_from(header, HEADER_BYTES - 4)[0] != crc:
            raise self._damage(f"the header's crc {crc:08x}", header[-4:][::-1].hex())
        if version != VERSION:
            raise ForeignError(f"{self._name}: expected version {VERSION} of a recording, found {version}")
        self._position = HEADER_BYTES
        return int(time_us)

    def _read_record(self) -> Record | None:
        head = self._file.read(RECORD_HEADER_BYTES)
        if len(head) < RECORD_HEADER_BYTES:
            self.is_cut = bool(head)
            return None
        length, connection, time_us, kind = _RECORD.unpack_from(head)
        if length > CONTENT_BYTES_MAX:
            raise self._damage(f"a length of at most {CONTENT_BYTES_MAX} bytes", str(length))
        content = self._file.read(length)
        if len(content) < length:
            self.is_cut = True
            return None
        crc = crc32c(content, crc32c(head[: _RECORD.size]))
        if _CRC.unpack_from(head, _RECORD.size)[0] != crc:
            raise self._damage(f"crc {crc:08x}", head[-4:][::-1].hex())
        if kind not in _KINDS:
            raise self._damage("a kind from 1 to 7", str(kind))
        self._position += RECORD_HEADER_BYTES + length
        return Record(time_us, connection, Kind(kind), content)

    def _damage(self, expected: str, found: str) -> DamageError:
        return DamageError(self._name, self._position, expected, found)


_KINDS: Final = frozenset(kind.value for kind in Kind)
