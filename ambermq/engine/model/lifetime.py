"""How long a node lives: for ever, or as the peer said that had it made (messaging, 3.5.10 to 3.5.13).

What has an end is looked at where something happens that may be it; `engine.ending` decides.
"""

from enum import IntEnum
from typing import final

from msgspec import Struct

__all__ = ["Dynamic", "Lifetime"]


class Lifetime(IntEnum):
    """When a queue or muxer ends by itself. The numbers are on disk and never change meaning."""

    PERMANENT = 0
    """Never."""
    ON_CLOSE = 1
    """With the link that had it made."""
    NO_LINKS = 2
    """With its last link."""
    NO_MESSAGES = 3
    """With its last message; with the link that had it made, where it never had one."""
    NO_LINKS_OR_MESSAGES = 4
    """With the last of both."""


@final
class Dynamic(Struct, frozen=True):
    """A node that a peer wants and the broker names."""

    lifetime: Lifetime = Lifetime.ON_CLOSE
    is_topic: bool = False
    """A muxer of its own that subscriptions attach to; else a queue."""
