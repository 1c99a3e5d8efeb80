"""The windows of the sessions of one connection on which large messages arrive.

Rule 1. A session whose pieces wait for the disk gets no wider window until they are durable. Other sessions go on.
Rule 2. A closed window takes no frames back. So what was sent before the peer has seen the flow arrives and is stored.
Rule 3. The connection is not read from above a larger limit, which only a peer reaches that ignores its windows, or one
        with very much on its way.
"""

from typing import Protocol, final

from ambermq.protocol.server_limits import ServerLimits

__all__ = ["UploadWindows"]


class UploadSession(Protocol):
    """A session on which large messages arrive."""

    def close_window(self) -> None:
        """Close the incoming window at once."""

    def open_window(self) -> None:
        """Open the incoming window again."""


@final
class UploadWindows:
    """The bytes that wait for the disk, and the sessions whose windows are closed."""

    __slots__ = ("_closed", "_limits", "size")

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._closed: dict[UploadSession, None] = {}
        self.size = 0
        """The bytes of large messages that wait for the disk; with many of them the server does not read the socket."""

    def arrived(self, session: UploadSession, size: int) -> None:
        """Count a piece that waits for the disk; close the window of its session if too much waits."""
        self.size += size
        if self.size > self._limits.upload_ahead_bytes:
            self._closed[session] = None
            session.close_window()

    def stored(self, size: int) -> None:
        """Count a piece that is durable; open the windows when half of the limit or less waits."""
        self.size -= size
        if self._closed and self.size <= self._limits.upload_ahead_bytes // 2:
            closed, self._closed = self._closed, {}
            for session in closed:
                session.open_window()
