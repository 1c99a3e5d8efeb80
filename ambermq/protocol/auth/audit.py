"""The seam between the broker and its audit log: who did what, and what was refused."""

from typing import Any, Protocol, final

from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import Peer

__all__ = ["NO_AUDIT", "AuditTrail"]


class AuditTrail(Protocol):
    """Takes events; it neither waits nor raises."""

    def note(self, event: str, identity: Identity | None, peer: Peer | None, /, **values: Any) -> None:
        """Append an event: its name, the user, the peer, and values that are no secrets and no bodies."""


@final
class _NoAudit:
    """Drops every event: a broker without a data directory has no audit log."""

    def note(self, event: str, identity: Identity | None, peer: Peer | None, /, **values: Any) -> None:
        """Drop the event."""


NO_AUDIT: AuditTrail = _NoAudit()
