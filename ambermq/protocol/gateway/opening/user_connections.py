"""The connections of each user to one server, which may be limited.

Rule 1. Only connections with a user name count: an anonymous client is not one user.
"""

from collections import Counter
from typing import final

from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol

__all__ = ["UserConnections"]


@final
class UserConnections:
    """The number of open connections of each user, in all virtual hosts."""

    __slots__ = ("_connections_max", "_counts")

    def __init__(self, connections_max: int) -> None:
        """Create it with no connections; 0 for no limit."""
        self._connections_max = connections_max
        self._counts: Counter[str] = Counter()

    def reconfigure(self, connections_max: int) -> None:
        """Use another limit for new connections; 0 for no limit."""
        self._connections_max = connections_max

    def enter(self, username: str | None) -> Error | None:
        """Count a connection of a user; return an Error instead if the user has too many."""
        if username is None:
            return None
        if 0 < self._connections_max <= self._counts[username]:
            why = f"user {username!r:.80} has {self._counts[username]} connections (user_connections_max)"
            return Error(condition=Symbol(AmqpCondition.RESOURCE_LIMIT_EXCEEDED), description=why)
        self._counts[username] += 1
        return None

    def leave(self, username: str | None) -> None:
        """Remove a connection that was counted."""
        if username is not None:
            self._counts[username] -= 1
            if not self._counts[username]:
                del self._counts[username]
