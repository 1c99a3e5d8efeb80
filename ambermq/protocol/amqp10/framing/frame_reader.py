"""The buffer of all reads, and how a read is cut into headers and frames.

Rule 1. A read is processed whole before the next one. So one chunk serves any number of connections, and an idle
        connection holds none. A partial frame is copied into its connection; the copy grows with the input, never by
        the size that the frame claims.
Rule 2. Large payloads in events are views of a chunk. Their bytes are never overwritten: the next read goes after
        them, or to another chunk.
Rule 3. Small frames are cut from bytes: one copy of a read is cheaper than a copy of each payload.
"""

from struct import Struct
from sys import getrefcount
from typing import Final, TypeAlias

from ambermq.protocol.amqp10.errors import FramingError
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["CHUNK_BYTES", "Frame", "FrameReader", "ReadBuffer"]

CHUNK_BYTES: Final = 1024 * 1024
_LENT_MAX: Final = 40
_UNLENT_REFERENCES: Final = 2
_NOWHERE: Final = memoryview(b"")

_HEADER: Final = Struct(">IBBH").unpack_from
_HEADER_BYTES: Final = 8


class ReadBuffer:
    """The chunk for the next reads; for asyncio.BufferedProtocol and for `recv_into`.

    Use: `size = socket.recv_into(buffer.get_buffer())`, then
    `if connection.receive(buffer.free[:size], now_ms): buffer.keep(size)`.

    A chunk without references is used again, since its pages are mapped and in the cache.
    """

    __slots__ = ("_chunk", "_chunk_bytes", "_is_idle", "_lent", "_read_bytes_min", "free")

    def __init__(self, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._chunk_bytes = chunk_bytes
        self._read_bytes_min = chunk_bytes // 4
        self._lent: list[bytearray] = []
        self._chunk = bytearray()
        self.free = _NOWHERE
        """The memory for the next read; empty until `get_buffer` has found a chunk."""
        self._is_idle = True

    def get_buffer(self) -> memoryview:
        """Return `free`, a writable view of at least a quarter of a chunk."""
        if not self.free:
            self._chunk = self._free_chunk()
            self.free = memoryview(self._chunk)
        return self.free

    def keep(self, size: int) -> None:
        """Keep the first `size` bytes of `free`, because events hold views of them."""
        self._is_idle = False
        self.free = self.free[size:]
        if len(self.free) < self._read_bytes_min:
            self._lent.append(self._chunk)
            self._chunk, self.free = bytearray(), _NOWHERE

    def trim(self) -> None:
        """Free the chunks without references, if no bytes were kept since the last call."""
        if self._is_idle:
            self._lent = [chunk for chunk in self._lent if getrefcount(chunk) > _UNLENT_REFERENCES + 1]
        self._is_idle = True

    def _free_chunk(self) -> bytearray:
        for index in range(len(self._lent)):
            # The list and the call hold two references; a view of the chunk would be a third.
            if getrefcount(self._lent[index]) == _UNLENT_REFERENCES:
                return self._lent.pop(index)
        del self._lent[: len(self._lent) - _LENT_MAX]
        return bytearray(self._chunk_bytes)


Frame: TypeAlias = tuple[Buffer, int, int, int, int, int, int]
"""A whole frame in its buffer, where others like it may follow: data, position, body (where the performative begins;
frame_end for a heartbeat), frame_end, end (of the buffer), type, channel. A plain tuple, since there is one a frame."""


class FrameReader:
    """The unread input of one connection: a partial frame between reads, or the input that waits for a decision."""

    __slots__ = ("_data", "_large_bytes", "_rest", "end", "position")

    def __init__(self, large_bytes: int) -> None:
        self._large_bytes = large_bytes
        self._data: Buffer = b""
        self.position = 0
        self.end = 0
        self._rest: bytearray | None = None

    def put(self, data: Buffer, position: int = 0) -> None:
        """Begin a read: `header` and `frame` consume it while `position` < `end`, and `stop` keeps the rest."""
        size = len(data)
        self._data = bytes(data) if size < self._large_bytes and type(data) is memoryview else data
        self.position = position
        self.end = size

    def hold(self, data: Buffer) -> int:
        """Append `data` to the unread input; return the size of that."""
        if self._rest is None:
            self._rest = bytearray()
        self._rest += data
        return len(self._rest)

    def release(self) -> bytes:
        """Return the held input, to be processed now."""
        rest, self._rest = self._rest, None
        return bytes(rest or b"")

    def stop(self) -> int:
        """End the read; return how many bytes are kept, of this read and of earlier ones."""
        if self.position < self.end:
            self.hold(self._data[self.position : self.end])
        self._data = b""
        self.position = self.end = 0
        return 0 if self._rest is None else len(self._rest)

    def drop(self) -> None:
        """Drop the unread input."""
        self._data, self._rest = b"", None
        self.position = self.end = 0

    def peek(self) -> bytes:
        """Return at most the next eight bytes, without consuming them."""
        start = bytes(self._rest or b"")
        return start + bytes(self._data[self.position : self.position + _HEADER_BYTES - len(start)])

    def header(self) -> bytes | None:
        """Return the eight bytes of a protocol header; None if the input holds less."""
        header = self.peek()
        if len(header) < _HEADER_BYTES:
            return None
        self.position += _HEADER_BYTES - len(self._rest or b"")
        self._rest = None
        return header

    def frame(self, size_max: int) -> Frame | None:
        """Return the next whole frame, None if there is none.

        Raises FramingError for an illegal size, or one above `size_max`. A caller that consumes more of the buffer than
        this frame calls `skip`.
        """
        if self._rest is not None:
            return self._rest_frame(size_max)
        data, position, end = self._data, self.position, self.end
        if end - position < _HEADER_BYTES:
            return None
        size, offset, kind, channel = _HEADER(data, position)
        if not 8 <= offset * 4 <= size <= size_max:
            raise _bad_size(size, offset, size_max)
        if size > end - position:
            return None
        if size < self._large_bytes and type(data) is memoryview:
            self._data = data = bytes(data[position:])
            position = 0
            self.end = end = len(data)
        frame_end = self.position = position + size
        return (data, position, position + offset * 4, frame_end, end, kind, channel)

    def skip(self, frame: Frame, position: int) -> None:
        """Continue at `position` of the frame's buffer."""
        if frame[0] is self._data:
            self.position = position

    def _rest_frame(self, size_max: int) -> Frame | None:
        """Return the frame whose first bytes were kept, in a buffer of its own; None if it is still partial."""
        rest = self._rest
        assert rest is not None
        if not self._fill(rest, _HEADER_BYTES):
            return None
        size, offset, kind, channel = _HEADER(rest)
        if not 8 <= offset * 4 <= size <= size_max:
            raise _bad_size(size, offset, size_max)
        if not self._fill(rest, size):
            return None
        self._rest = None
        data: Buffer = bytes(rest) if size < self._large_bytes else memoryview(rest)
        return (data, 0, offset * 4, size, size, kind, channel)

    def _fill(self, rest: bytearray, size: int) -> bool:
        """Move bytes of the read into `rest` until it holds `size`; return False if the read has too few."""
        missing = size - len(rest)
        if missing > 0:
            piece = self._data[self.position : min(self.position + missing, self.end)]
            rest += piece
            self.position += len(piece)
        return len(rest) >= size


def _bad_size(size: int, offset: int, size_max: int) -> FramingError:
    return FramingError(f"a frame of {size} bytes with data offset {offset}; at most {size_max} bytes are taken")
