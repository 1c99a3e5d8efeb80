"""Muxers: producers send to a muxer, queues and muxers attach to it, and its class says what passes on to whom.

A muxer is what the log says of it; which attachments a message passes on by is matched in engine/routing.
"""

from enum import IntEnum
from typing import Final, final

from msgspec import Struct

from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.lifetime import Lifetime
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["PLAIN_KINDS", "QUEUE_MUXER", "TOPIC_MUXER", "Muxer", "MuxerKind", "Options"]

QUEUE_MUXER: Final = "QUEUE"
"""The predeclared muxer of class DESTINATION that routes by queue name: the way from a plain address to its queue."""
TOPIC_MUXER: Final = "TOPIC"
"""The predeclared muxer of class WILD DESTINATION that subscriptions attach to."""


class MuxerKind(IntEnum):
    """The classes of muxer. The numbers are on disk and never change meaning."""

    SIMPLE = 1
    DESTINATION = 2
    WILD_DESTINATION = 3
    PROPERTY = 4
    WILD_PROPERTY = 5
    SELECTOR = 6
    LOSSY = 7

    @property
    def text(self) -> str:
        """The class as people write it, such as `wild-destination`."""
        return self.name.lower().replace("_", "-")


PLAIN_KINDS: Final = frozenset((MuxerKind.SIMPLE, MuxerKind.DESTINATION, MuxerKind.WILD_DESTINATION))
"""These look at the destination alone: all messages of a run for one destination go the same way."""


@final
class Options(Struct, frozen=True, omit_defaults=True):
    """What is particular to a class. A later field is added with a default, so old records stay readable."""

    separator: str = "."
    """Of words, for the WILD classes."""
    probability: float = 1.0
    """Of passing a message on, for LOSSY."""
    seed: int = 0
    """Of the draws, for LOSSY: the same seed and messages give the same choices."""
    lifetime: Lifetime = Lifetime.PERMANENT
    """A temporary topic ends by itself."""


@final
class Muxer(Struct, frozen=True):
    """One muxer of a virtual host; immutable."""

    id: int
    """The offset of the record that declared it."""
    name: str
    kind: MuxerKind
    options: Options
    attachments: "PersistentMap[int, Attachment]"
    """By id, which is the order of attaching."""

    def attach(self, attachment: Attachment) -> "Muxer":
        """Return the muxer with one more attachment."""
        return Muxer(self.id, self.name, self.kind, self.options, self.attachments.set(attachment.id, attachment))

    def detach(self, attachment: int) -> "Muxer":
        """Return the muxer without an attachment."""
        if attachment not in self.attachments:
            return self
        return Muxer(self.id, self.name, self.kind, self.options, self.attachments.delete(attachment))
