"""Commands that end nodes: some of them, or all of the virtual host."""

from typing import Any, final

from ambermq.engine.commands.signed_command import SignedCommand
from ambermq.engine.effects import Effect

__all__ = ["EndNodes", "ResetHost"]


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
class ResetHost(SignedCommand):
    """Remove all queues, wiring and links of the virtual host."""

    key: Any
