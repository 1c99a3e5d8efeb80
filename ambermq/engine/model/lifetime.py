"""The lifetime of a node: permanent, or the lifetime policy of the peer that created it (messaging, 3.5.10 to 3.5.13).

engine/decide/end_nodes.py checks a node with a lifetime policy after each event that may end it.
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
    """With the link that created it."""
    NO_LINKS = 2
    """With its last link."""
    NO_MESSAGES = 3
    """With its last message; with the link that created it, if it never had a message."""
    NO_LINKS_OR_MESSAGES = 4
    """When it has neither a link nor a message."""


@final
class Dynamic(Struct, frozen=True):
    """A request for a dynamic node: the broker creates it and chooses its name."""

    lifetime: Lifetime = Lifetime.ON_CLOSE
    is_topic: bool = False
    """True: a temporary topic, a muxer that subscriptions attach to. False: a temporary queue."""
