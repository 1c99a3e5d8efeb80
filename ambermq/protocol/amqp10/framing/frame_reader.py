"""Where reads land, and how they are cut into headers and frames.

Rule 1: a read is handed over whole before the next one begins, so one chunk serves any number of connections, and an
        idle connection holds none; the rest of a partial frame is copied into its connection, where it grows with what
        comes, never by what is claimed.
Rule 2: what events still refer to (large payloads are views of a chunk) is never written again: the next read goes
        behind it, or to another chunk.
Rule 3: small frames are cut from bytes: one copy of a read is cheaper than a copy of each payload.
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

    Chunks that nobody refers to any more are used again: their pages are there already, and warm.
    """

    __slots__ = ("_chunk", "_chunk_bytes", "_is_idle", "_lent", "_read_bytes_min", "free")

    def __init__(self, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._chunk_bytes = chunk_bytes
        self._read_bytes_min = chunk_bytes // 4
        self._lent: list[bytearray] = []
        self._chunk = bytearray()
        self.free = _NOWHERE
        """Where the next read lands; empty until `get_buffer` has found a chunk for it."""
        self._is_idle = True

    def get_buffer(self) -> memoryview:
        """Hand out `free`, a writable view of a quarter of a chunk at least."""
        if not self.free:
            self._chunk = self._free_chunk()
            self.free = memoryview(self._chunk)
        return self.free

    def keep(self, size: int) -> None:
        """Leave the first `size` bytes of `free` to those who hold views of them."""
        self._is_idle = False
        self.free = self.free[size:]
        if len(self.free) < self._read_bytes_min:
            self._lent.append(self._chunk)
            self._chunk, self.free = bytearray(), _NOWHERE

    def trim(self) -> None:
        """Give back the chunks that nobody looks into, where nothing was kept since the last call."""
        if self._is_idle:
            self._lent = [chunk for chunk in self._lent if getrefcount(chunk) > _UNLENT_REFERENCES + 1]
        self._is_idle = True

    def _free_chunk(self) -> bytearray:
        for index in range(len(self._lent)):
            # Two references are this list's and the call's own; a view of the chunk would be a third.
            if getrefcount(self._lent[index]) == _UNLENT_REFERENCES:
                return self._lent.pop(index)
        del self._lent[: len(self._lent) - _LENT_MAX]
        return bytearray(self._chunk_bytes)


Frame: TypeAlias = tuple[Buffer, int, int, int, int, int, int]
"""A whole frame in its buffer, where others like it may follow: data, position, body (where the performative begins;
frame_end for a heartbeat), frame_end, end (of the buffer), type, channel. A plain tuple, since there is one a frame."""


class FrameReader:
    """The unread input of one connection: less than a frame between reads, or what waits for an answer."""

    __slots__ = ("_data", "_large_bytes", "_rest", "end", "position")

    def __init__(self, large_bytes: int) -> None:
        self._large_bytes = large_bytes
        self._data: Buffer = b""
        self.position = 0
        self.end = 0
        self._rest: bytearray | None = None

    def put(self, data: Buffer, position: int = 0) -> None:
        """Begin a read; `header` and `frame` take from it while `position` < `end`, then `stop` keeps what is left."""
        size = len(data)
        self._data = bytes(data) if size < self._large_bytes and type(data) is memoryview else data
        self.position = position
        self.end = size

    def hold(self, data: Buffer) -> int:
        """Put `data` behind what is kept, unread; returns how much is kept."""
        if self._rest is None:
            self._rest = bytearray()
        self._rest += data
        return len(self._rest)

    def release(self) -> bytes:
        """Give back what was held, to be read now."""
        rest, self._rest = self._rest, None
        return bytes(rest or b"")

    def stop(self) -> int:
        """End the read; returns how much is kept of it."""
        kept = 0
        if self.position < self.end:
            kept = self.hold(self._data[self.position : self.end])
        self._data = b""
        self.position = self.end = 0
        return kept

    def peek(self) -> bytes:
        """At most eight bytes, the next ones; nothing is taken."""
        start = bytes(self._rest or b"")
        return start + bytes(self._data[self.position : self.position + _HEADER_BYTES - len(start)])

    def header(self) -> bytes | None:
        """Take the eight bytes of a protocol header; None when they are not there yet."""
        header = self.peek()
        if len(header) < _HEADER_BYTES:
            return None
        self.position += _HEADER_BYTES - len(self._rest or b"")
        self._rest = None
        return header

    def frame(self, size_max: int) -> Frame | None:
        """Cut the next whole frame, if there is one. FramingError when its size cannot be, or is above size_max.

        Whoever took more than this frame from its buffer says with `skip` how far it came.
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
        """Go on behind `position` of the frame's buffer."""
        if frame[0] is self._data:
            self.position = position

    def _rest_frame(self, size_max: int) -> Frame | None:
        """Complete the frame whose beginning is kept; it gets a buffer of its own."""
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
        """Move bytes of the read into `rest` until it holds `size`; False when the read has not enough."""
        missing = size - len(rest)
        if missing > 0:
            piece = self._data[self.position : min(self.position + missing, self.end)]
            rest += piece
            self.position += len(piece)
        return len(rest) >= size


def _bad_size(size: int, offset: int, size_max: int) -> FramingError:
    return FramingError(f"a frame of {size} bytes with data offset {offset}; at most {size_max} bytes are taken")
