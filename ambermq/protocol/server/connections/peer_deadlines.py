"""The deadlines of one peer: for its open, for what it sends of a frame, and for what it reads of the output.

    open     it opens its connection, or sends its token, handshake_ms after it was accepted
    frame    of a header or a frame that has begun it sends handshake_bytes_min a second, after the first seconds
    output   it reads something of the output that waits within write_timeout_ms
    close    of a closed connection it reads something of the rest within close_ms

Rule 1. Output has a new deadline whenever the peer has read of it. The open has one, and a frame a rate.
Rule 2. After a standstill of this process all of them are extended by it.
Rule 3. They are checked now and then: nothing here is called for a read. The caller gives the time, and ends the peer.
"""

from typing import Final, final

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["PeerDeadlines"]

_SLOW_MS: Final = 5000
"""The time for an incomplete header or frame before its rate counts: a lost packet costs a second or two."""


@final
class PeerDeadlines:
    """The deadlines of one connection, by the monotonic clock."""

    __slots__ = (
        "_close_ms",
        "_frame_bytes_in",
        "_frame_since_ms",
        "_open_ms",
        "_read_bytes",
        "_read_ms",
        "_rest_bytes",
    )

    def __init__(self, open_ms: int) -> None:
        """`open_ms` is the time by which the peer has opened its connection."""
        self._open_ms = open_ms
        """0 after the open."""
        self._frame_since_ms = self._frame_bytes_in = 0
        """When an incomplete header or frame was first seen, 0 without one, and the input by then."""
        self._read_bytes = -1
        """The bytes of output that the peer had read at the last check; -1 before the first, and without a timeout."""
        self._read_ms = 0
        self._rest_bytes = -1
        """The output of a closed connection that was left at the last check; -1 before the first."""
        self._close_ms = 0

    def extend(self, stall_ms: int) -> None:
        """Extend the deadlines by the time in which this process stood still: the peer's bytes may lie unread."""
        if self._open_ms:
            self._open_ms += stall_ms
        if self._frame_since_ms:
            self._frame_since_ms += stall_ms
        self._read_ms += stall_ms
        self._close_ms += stall_ms

    def opened(self) -> None:
        """Note that the peer has opened its connection, and sent its token if it needs one."""
        self._open_ms = 0

    def misses_open(self, now_ms: int) -> bool:
        """Return whether the peer has not opened in time."""
        return 0 < self._open_ms < now_ms

    def missed(
        self,
        now_ms: int,
        connection: Connection,
        limits: ServerLimits,
        *,
        unsent_bytes: int,
        bytes_in: int,
        is_read: bool,
    ) -> str:
        """Return why the peer of an open transport is dropped, empty if it is not.

        `unsent_bytes` of the connection's output wait, and the peer has sent `bytes_in`. `is_read` says whether it is
        read from.
        """
        timeout_ms, least = limits.write_timeout_ms, limits.handshake_bytes_min
        if self._is_unread(now_ms, connection.output.taken_bytes, unsent_bytes, timeout_ms):
            return f"it read nothing for {timeout_ms} ms (write_timeout_ms)"
        is_begun = is_read and connection.incomplete_bytes > 0
        if self._is_slow(now_ms, bytes_in, least=least if is_begun else 0):
            return f"a frame came with less than {least} bytes a second (handshake_bytes_min)"
        return ""

    def _is_unread(self, now_ms: int, taken_bytes: int, unsent_bytes: int, timeout_ms: int) -> bool:
        """Return whether the peer has read nothing of the output that waits for too long."""
        read_bytes = taken_bytes - unsent_bytes
        if not timeout_ms:
            self._read_bytes = -1
            return False
        if not unsent_bytes or read_bytes != self._read_bytes:
            self._read_bytes, self._read_ms = read_bytes, now_ms + timeout_ms
            return False
        return now_ms > self._read_ms

    def _is_slow(self, now_ms: int, bytes_in: int, *, least: int) -> bool:
        """Return whether the peer sends a header or a frame at less than `least` bytes a second; 0 without one."""
        if not least:
            self._frame_since_ms = 0
        elif not self._frame_since_ms:
            self._frame_since_ms, self._frame_bytes_in = now_ms, bytes_in
        elif (now_ms - self._frame_since_ms - _SLOW_MS) * least > (bytes_in - self._frame_bytes_in) * 1000:
            return True
        return False

    def misses_close(self, now_ms: int, *, unsent_bytes: int, close_ms: int) -> bool:
        """Return whether the peer of a closed connection has read nothing of the rest of its output for too long."""
        if unsent_bytes != self._rest_bytes:
            self._rest_bytes, self._close_ms = unsent_bytes, now_ms + close_ms
            return False
        return now_ms > self._close_ms
