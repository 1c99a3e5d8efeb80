"""A suspended link: its peer detached it without closing it, and what it left unsettled waits for its resumption.

Rule 1. Its id is that of the producer or consumer that it was, so its deliveries stay acquired by that id.
Rule 2. A link is found by its key. Only the same user finds it, and containers without an id have no such links.
Rule 3. It ends at `until_us`. Until its session or connection ends that is 0: no end is known yet.
"""

from dataclasses import dataclass
from typing import Final, final

__all__ = ["KEEPS_NOTHING", "UNSETTLED_STATE", "Keeping", "LinkKey", "SuspendedLink"]

LinkKey = tuple[str, str, str, bool]
"""User, container, name of the link, and whether its peer receives."""
UNSETTLED_STATE: Final = 2
"""The durability of a terminus that keeps its unsettled deliveries over a restart of the broker."""


@final
@dataclass(frozen=True, slots=True)
class Keeping:
    """How a link keeps what is unsettled when it is detached."""

    durability: int = 0
    """The durability of the terminus: UNSETTLED_STATE keeps it over a restart of the broker."""
    timeout_ms: int = 0
    """How long it is kept after the end of the session or connection that the expiry policy names."""


KEEPS_NOTHING: Final = Keeping()


@final
@dataclass(frozen=True, slots=True)
class SuspendedLink:
    """A link that its peer may resume."""

    id: int
    """The offset of the event that attached it."""
    queue: int
    """The queue of its deliveries; 0 for a link whose peer sends."""
    container: str
    link: str
    user: str
    keeping: Keeping
    until_us: int = 0
    """The elapsed time of its end; 0 while its session or connection lasts."""
    held: int = 0
    """The deliveries that it holds, or the kept delivery-tags."""

    @property
    def is_receiver(self) -> bool:
        """Whether its peer receives."""
        return bool(self.queue)

    @property
    def key(self) -> LinkKey:
        """The key by which it is found."""
        return self.user, self.container, self.link, self.is_receiver
