"""Muxers: producers send to a muxer, queues attach to muxers, and the muxer's class says which messages reach which."""

from dataclasses import dataclass
from enum import IntEnum
from typing import final

from snapshot.map import PersistentMap

__all__ = ["QUEUE_MUXER", "Muxer", "MuxerKind"]

QUEUE_MUXER = "QUEUE"
"""The predeclared muxer of class DESTINATION that routes by queue name: the way from a plain address to its queue."""


class MuxerKind(IntEnum):
    """The classes of muxer. The numbers are on disk and never change meaning."""

    SIMPLE = 1
    DESTINATION = 2
    WILD_DESTINATION = 3
    PROPERTY = 4
    WILD_PROPERTY = 5
    SELECTOR = 6
    LOSSY = 7


@final
@dataclass(frozen=True, slots=True)
class Muxer:
    """One muxer of a virtual host; immutable."""

    id: int
    """The offset of the record that declared it."""
    name: str
    kind: MuxerKind
    routes: "PersistentMap[str, tuple[int, ...]]"
    """Destination to the queues attached for it, in the order of attaching, each once."""

    def route(self, destination: str) -> tuple[int, ...]:
        """Return the queues that a message for this destination reaches."""
        return self.routes.get(destination, ())

    def attach(self, queue: int, destination: str) -> "Muxer":
        """Return the muxer with a queue attached for a destination."""
        queues = self.routes.get(destination, ())
        if queue in queues:
            return self
        return Muxer(self.id, self.name, self.kind, self.routes.set(destination, (*queues, queue)))

    def detach(self, queue: int, destination: str) -> "Muxer":
        """Return the muxer without that attachment."""
        queues = tuple(other for other in self.routes.get(destination, ()) if other != queue)
        routes = self.routes.set(destination, queues) if queues else self.routes.delete(destination)
        return Muxer(self.id, self.name, self.kind, routes)
