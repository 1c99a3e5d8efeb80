"""The container of a snapshot: a header, then typed blocks of bounded size. Each block has a checksum.

    header, 64 bytes
    offset width field
     0     8 B   magic      "AMBERSNP"
     8     u32   version    1
    12     u32   epoch      the epoch in which the snapshot was taken
    16     16 B  log_id
    32     i64   end        the snapshot is the fold of all events below this offset
    40     i64   time_us    the time of the last of these events
    48     12 B  zeros
    60     u32   crc        of bytes 0 to 60

    block, 16 bytes and its payload, back to back after the header
    offset width field
     0     u32   kind
     4     u32   length     of the payload; 1 MiB at most
     8     u32   crc        of bytes 0 to 8, then of the payload
    12     u32   zeros

The last block is END. Its payload is the number of blocks before it and its own position (two u64), so that a file cut
between two blocks is detected. Little-endian.

Rule 1. This module sees a payload only as bytes; engine/snapshots/state_codec.py and its parts define the payloads.
Rule 2. No field is used before its checksum is verified, except a length that is within its limit.
Rule 3. The checksum is an argument; all callers pass CRC-32C: checksum(buffer, crc=0) -> int, continued from `crc`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

__all__ = [
    "BLOCK_BYTES_MAX",
    "HEADER_BYTES",
    "Block",
    "BlockFault",
    "BlockKind",
    "BlockWriter",
    "Checksum",
    "ForeignBlocks",
    "Header",
    "decode_header",
    "encode_block",
    "encode_header",
    "read_blocks",
]

Checksum = Callable[..., int]
Read = Callable[[int, int], bytes]
"""read(length, position) -> bytes; fewer than `length` only at the end of the file."""

HEADER_BYTES: Final = 64
BLOCK_HEADER_BYTES: Final = 16
BLOCK_BYTES_MAX: Final = 1 << 20
VERSION: Final = 1

_MAGIC: Final = b"AMBERSNP"
_HEADER: Final = Struct("<8sII16sqq12s")
_BLOCK: Final = Struct("<II")
_CRC: Final = Struct("<I")
_CRC_AND_ZEROS: Final = Struct("<II")
_END: Final = Struct("<QQ")


class BlockKind(IntEnum):
    """The type of a payload. The numbers are on disk, and their meaning never changes."""

    STATE = 1
    """JSON: the single values of the state, and the number of items of each other kind."""
    MUXERS = 2
    """JSON: a list of muxers, without their attachments."""
    ATTACHMENTS = 3
    """JSON: a list of attachments."""
    PRODUCERS = 4
    """JSON: a list of producers."""
    CONSUMERS = 5
    """JSON: a list of consumers."""
    QUEUES = 6
    """JSON: a list of queues, without their entries."""
    WORDS = 7
    """Binary: runs of words."""
    ENTRIES = 8
    """JSON: a list of columns with the entries that have them."""
    SUBSCRIPTIONS = 9
    """JSON: a list of subscriptions."""
    DUES = 10
    """Binary: runs of entries that are scheduled, with their times."""
    EXPIRIES = 11
    """Binary: runs of entries that have a time to live of their own, with their expiries."""
    SUSPENDED = 20
    """JSON: a list of suspended links."""
    TAGS = 21
    """JSON: a list of links with the delivery-tags that are kept for their senders."""
    END = 255
    """The number of blocks before this one, and its position."""


class Header(NamedTuple):
    """The header of a snapshot file."""

    epoch: int
    log_id: bytes
    """16 bytes, the same as in the log's segments."""
    end: int
    """The snapshot is the fold of all events below this offset."""
    time_us: int
    """The time of the last of these events."""


class Block(NamedTuple):
    """One payload, in one part or in several consecutive parts."""

    kind: int
    parts: Sequence[bytes]

    @property
    def payload(self) -> bytes:
        """The payload as one `bytes`; a single part is not copied."""
        return b"".join(self.parts)


class BlockFault(Exception):
    """A snapshot is not what was written. The message has the position, the expected and the found value."""

    def __init__(self, position: int, expected: str, found: str) -> None:
        self.position = position
        self.expected = expected
        self.found = found
        super().__init__(f"position {position}: expected {expected}, found {found}")


class ForeignBlocks(BlockFault):
    """The file is no snapshot, or a newer version wrote it. It need not be damaged."""


def encode_header(header: Header, checksum: Checksum) -> bytes:
    """Return the 64 bytes of a header."""
    fields = _HEADER.pack(_MAGIC, VERSION, header.epoch, header.log_id, header.end, header.time_us, b"")
    return fields + _CRC.pack(checksum(fields))


def decode_header(head: bytes, checksum: Checksum) -> Header:
    """Return the header in a file's first 64 bytes. Raises BlockFault; ForeignBlocks for a foreign format."""
    if not head.startswith(_MAGIC):
        raise ForeignBlocks(0, f"a snapshot with magic {_MAGIC!r}", f"{head[: len(_MAGIC)]!r}")
    if len(head) < HEADER_BYTES:
        raise BlockFault(len(head), f"a header of {HEADER_BYTES} bytes", f"the end of the file after {len(head)}")
    _, version, epoch, log_id, end, time_us, zeros = _HEADER.unpack_from(head)
    (crc,) = _CRC.unpack_from(head, _HEADER.size)
    found = checksum(head[: _HEADER.size])
    if crc != found:
        raise BlockFault(0, f"header CRC {crc:#010x}", f"{found:#010x}")
    if version != VERSION:
        raise ForeignBlocks(8, f"snapshot version {VERSION}", f"{version}")
    if any(zeros):
        raise BlockFault(48, "zeros to the end of the header", "other bytes")
    return Header(epoch, log_id, end, time_us)


def encode_block(kind: int, parts: Sequence[bytes], checksum: Checksum) -> list[bytes]:
    """Return a block as buffers to write one after the other. The parts are not copied."""
    length = sum(map(len, parts))
    assert length <= BLOCK_BYTES_MAX, f"a block of {length} bytes"
    head = _BLOCK.pack(kind, length)
    crc = checksum(head)
    for part in parts:
        crc = checksum(part, crc)
    return [head + _CRC_AND_ZEROS.pack(crc, 0), *parts]


class BlockWriter:
    """An encoder of a snapshot: it returns the buffers to write, in order, and counts blocks and bytes."""

    __slots__ = ("_checksum", "_count", "position")

    def __init__(self, checksum: Checksum) -> None:
        self._checksum = checksum
        self._count = 0
        self.position = 0
        """The bytes returned so far, which is the position of the next buffers."""

    def header(self, header: Header) -> list[bytes]:
        """Return the buffers of the header. It is the first call, and made once."""
        assert self.position == 0
        return self._count_bytes([encode_header(header, self._checksum)])

    def block(self, block: Block) -> list[bytes]:
        """Return the buffers of one block."""
        self._count += 1
        return self._count_bytes(encode_block(block.kind, block.parts, self._checksum))

    def end(self) -> list[bytes]:
        """Return the buffers of the END block. It is the last call, and made once."""
        payload = _END.pack(self._count, self.position)
        return self._count_bytes(encode_block(BlockKind.END, [payload], self._checksum))

    def all(self, header: Header, blocks: Iterable[Block]) -> Iterator[list[bytes]]:
        """Yield the buffers of a whole snapshot."""
        yield self.header(header)
        for block in blocks:
            yield self.block(block)
        yield self.end()

    def _count_bytes(self, buffers: list[bytes]) -> list[bytes]:
        self.position += sum(map(len, buffers))
        return buffers


def read_blocks(read: Read, checksum: Checksum) -> Iterator[Block]:
    """Yield the blocks after the header, up to END, which is checked and not yielded. Raises BlockFault."""
    position, count = HEADER_BYTES, 0
    while True:
        kind, payload = _read_block(read, position, checksum)
        if kind == BlockKind.END:
            return _check_end(read, payload, position=position, count=count)
        yield Block(kind, (payload,))
        position += BLOCK_HEADER_BYTES + len(payload)
        count += 1


def _read_block(read: Read, position: int, checksum: Checksum) -> tuple[int, bytes]:
    head = read(BLOCK_HEADER_BYTES, position)
    if len(head) < BLOCK_HEADER_BYTES:
        raise BlockFault(position + len(head), "a block or the END block", "the end of the file: it was cut")
    kind, length = _BLOCK.unpack_from(head)
    crc, zeros = _CRC_AND_ZEROS.unpack_from(head, _BLOCK.size)
    if length > BLOCK_BYTES_MAX:
        raise BlockFault(position + 4, f"a block of at most {BLOCK_BYTES_MAX} bytes", f"{length}")
    payload = read(length, position + BLOCK_HEADER_BYTES)
    if len(payload) < length:
        end = position + BLOCK_HEADER_BYTES + len(payload)
        raise BlockFault(end, f"a block of {length} bytes", f"the end of the file after {len(payload)}: it was cut")
    found = checksum(payload, checksum(head[: _BLOCK.size]))
    if crc != found or zeros:
        raise BlockFault(position, f"block CRC {crc:#010x} and zeros", f"{found:#010x} and {zeros}")
    return kind, payload


def _check_end(read: Read, payload: bytes, *, position: int, count: int) -> None:
    expected = _END.pack(count, position)
    if payload != expected:
        found = "{} blocks in {} bytes".format(*_END.unpack(payload)) if len(payload) == _END.size else f"{payload!r}"
        raise BlockFault(position, f"an END block of {count} blocks in {position} bytes", found)
    end = position + BLOCK_HEADER_BYTES + len(payload)
    if read(1, end):
        raise BlockFault(end, "the end of the file after its END block", "more bytes")
