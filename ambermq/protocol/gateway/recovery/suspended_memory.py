"""The memory of suspended links in the budget of the server: they belong to no connection, and are one holder.

Rule: when they hold more than the largest connection, those with most deliveries end first, as many as it takes.
"""

from collections.abc import Mapping
from typing import Any, Protocol, final

from ambermq.engine.commands import EndSuspended
from ambermq.protocol.amqp10.memory_budget import suspended_bytes

__all__ = ["SuspendedMemory"]


class _Host(Protocol):
    """A virtual host."""

    @property
    def engine(self) -> Any:
        """Its engine."""

    def tick_soon(self) -> None:
        """Step the engine soon."""


@final
class SuspendedMemory:
    """The suspended links of all virtual hosts, as the guard of the memory budget uses them."""

    def __init__(self, hosts: Mapping[str, _Host]) -> None:
        self._hosts = hosts

    def held_bytes(self) -> int:
        """Return an estimate of their memory."""
        states = [host.engine.state for host in self._hosts.values()]
        return sum([suspended_bytes(len(state.suspended), state.suspended_held) for state in states])

    def end_largest(self, size: int) -> int:
        """End links that hold this many bytes, or all; return what they held."""
        found = [
            (link.held, -link.id, host)
            for host in self._hosts.values()
            for link in host.engine.state.suspended.values()
        ]
        ended = 0
        for held, number, host in sorted(found, key=lambda one: one[:2], reverse=True):
            if ended >= size:
                break
            host.engine.submit(EndSuspended(-number, is_forced=True))
            host.tick_soon()
            ended += suspended_bytes(1, held)
        return ended
