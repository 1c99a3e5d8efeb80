"""Idle timeouts both ways (transport, 2.4.5).

Rule 1: a silent peer is dropped after the whole timeout; half of it is advertised, so it has twice what it was told.
Rule 2: the peer is sent something at least twice in each timeout of its own; what else is sent counts.
"""

__all__ = ["IdleTimer"]


class IdleTimer:
    """When a connection last heard and spoke; times in milliseconds of the caller's clock."""

    __slots__ = ("_heartbeat_ms", "_timeout_ms", "heard_ms", "now_ms", "spoke_ms")

    def __init__(self, timeout_ms: int, now_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._heartbeat_ms = 0
        self.now_ms = self.heard_ms = self.spoke_ms = now_ms

    def follow(self, remote_timeout_ms: int | None) -> None:
        """Take the peer's own timeout, from its open."""
        self._heartbeat_ms = max(remote_timeout_ms // 2, 1) if remote_timeout_ms else 0

    def is_silent(self) -> bool:
        """Whether the peer has been silent for too long."""
        return bool(self._timeout_ms) and self.now_ms - self.heard_ms >= self._timeout_ms

    def is_due(self) -> bool:
        """Whether the peer must be sent something now."""
        return bool(self._heartbeat_ms) and self.now_ms - self.spoke_ms >= self._heartbeat_ms

    def deadline_ms(self) -> int | None:
        """Say when one of the two will be; None: never."""
        drop_ms = self.heard_ms + self._timeout_ms
        beat_ms = self.spoke_ms + self._heartbeat_ms
        if not self._heartbeat_ms:
            return drop_ms if self._timeout_ms else None
        return min(drop_ms, beat_ms) if self._timeout_ms else beat_ms
