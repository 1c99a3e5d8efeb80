"""Muxers: producers send to a muxer, queues and muxers attach to it, and its class decides which messages they get.

A `Muxer` holds what the log records. engine/routing finds the attachments that match a message.
"""

from enum import IntEnum
from typing import Final, final

from msgspec import Struct

from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.lifetime import Lifetime
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["PLAIN_KINDS", "QUEUE_MUXER", "TOPIC_MUXER", "Muxer", "MuxerKind", "Options"]

QUEUE_MUXER: Final = "QUEUE"
"""The predeclared muxer of class DESTINATION. It routes a message with a plain address to the queue of that name."""
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
        """The class in text form, such as `wild-destination`."""
        return self.name.lower().replace("_", "-")


PLAIN_KINDS: Final = frozenset((MuxerKind.SIMPLE, MuxerKind.DESTINATION, MuxerKind.WILD_DESTINATION))
"""These classes compare only the destination, so all messages of a run for one destination have the same route."""


@final
class Options(Struct, frozen=True, omit_defaults=True):
    """The options of single classes. A later field is added with a default, so old records stay readable."""

    separator: str = "."
    """The separator of words, for the WILD classes."""
    probability: float = 1.0
    """The probability that a LOSSY muxer keeps a message."""
    seed: int = 0
    """The seed of the lossy draws: the same seed and messages give the same choices."""
    lifetime: Lifetime = Lifetime.PERMANENT
    """Not PERMANENT for a temporary topic."""


@final
class Muxer(Struct, frozen=True):
    """One muxer of a virtual host; immutable."""

    id: int
    """The offset of the record that declared it."""
    name: str
    kind: MuxerKind
    options: Options
    attachments: "PersistentMap[int, Attachment]"
    """By id. The order of the ids is the order of attaching."""

    def attach(self, attachment: Attachment) -> "Muxer":
        """Return the muxer with one more attachment."""
        return Muxer(self.id, self.name, self.kind, self.options, self.attachments.set(attachment.id, attachment))

    def detach(self, attachment: int) -> "Muxer":
        """Return the muxer without an attachment."""
        if attachment not in self.attachments:
            return self
        return Muxer(self.id, self.name, self.kind, self.options, self.attachments.delete(attachment))
