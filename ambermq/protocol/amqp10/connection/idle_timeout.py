"""Idle timeouts both ways (transport, 2.4.5).

Rule 1. A silent peer is dropped after the whole timeout. Our open advertises half of it, so a peer has a margin of two.
Rule 2. The peer is sent at least two frames within its own timeout; any frame counts.
"""

__all__ = ["IdleTimer"]


class IdleTimer:
    """When a connection last received and sent bytes, in milliseconds of the caller's clock."""

    __slots__ = ("_heartbeat_ms", "_timeout_ms", "now_ms", "received_ms", "sent_ms")

    def __init__(self, timeout_ms: int, now_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._heartbeat_ms = 0
        self.now_ms = self.received_ms = self.sent_ms = now_ms

    def follow(self, remote_timeout_ms: int | None) -> None:
        """Set the interval of our heartbeats by the timeout in the peer's open."""
        self._heartbeat_ms = max(remote_timeout_ms // 2, 1) if remote_timeout_ms else 0

    def is_silent(self) -> bool:
        """Return whether the peer has been silent for the whole timeout."""
        return bool(self._timeout_ms) and self.now_ms - self.received_ms >= self._timeout_ms

    def is_due(self) -> bool:
        """Return whether a heartbeat is due."""
        return bool(self._heartbeat_ms) and self.now_ms - self.sent_ms >= self._heartbeat_ms

    def deadline_ms(self) -> int | None:
        """Return the time of the next heartbeat or drop, whichever is earlier; None if neither has a deadline."""
        drop_ms = self.received_ms + self._timeout_ms
        beat_ms = self.sent_ms + self._heartbeat_ms
        if not self._heartbeat_ms:
            return drop_ms if self._timeout_ms else None
        return min(drop_ms, beat_ms) if self._timeout_ms else beat_ms
