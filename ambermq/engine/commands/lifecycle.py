"""Commands that end nodes: some of them, or all of the virtual host."""

from collections.abc import Callable
from typing import Any, final

from msgspec import Struct

from ambermq.engine.commands.signed_command import SignedCommand
from ambermq.engine.effects import Effect
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State

__all__ = ["EndNodes", "EndUnusedQueue", "ResetHost"]


@final
class EndNodes(SignedCommand):
    """End those of `nodes` whose end has come.

    It is the rest of a command with many changes (engine/decide/end_nodes.py), or the late end of a dynamic node.
    """

    nodes: tuple[int, ...]
    closed: tuple[int, ...]
    """Nodes whose creating link has ended."""
    deleted: tuple[int, ...]
    """Nodes to delete in any case."""
    then: tuple[Effect, ...]
    """The effects that leave when every node has ended."""


@final
class EndUnusedQueue(Struct):
    """Delete a queue if it was not used for as long as its settings say. Only the engine creates it."""

    queue: int
    is_unused: Callable[[State, Queue, int], bool]
    """Returns whether a queue is still unused at an elapsed time: a command before this one may have used it."""


@final
class ResetHost(SignedCommand):
    """Remove all queues, wiring and links of the virtual host."""

    key: Any
