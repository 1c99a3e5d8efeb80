"""The users that made the temporary nodes of one virtual host, in this life of the broker.

Rule 1. Only the user that made a temporary node receives from it. A node from before a start has no user here: the
        rules alone decide about it.
Rule 2. Users of nodes that have ended are forgotten when their number has doubled.
"""

from typing import Final, final

from ambermq.engine.model.state import State
from ambermq.protocol.auth.address_words import Words, address_words

__all__ = ["TemporaryOwners"]

_KEPT_MIN: Final = 1024


@final
class TemporaryOwners:
    """The users by the words of their temporary nodes' addresses."""

    __slots__ = ("_full", "_users")

    def __init__(self) -> None:
        self._users: dict[Words, str | None] = {}
        self._full = _KEPT_MIN

    def __len__(self) -> int:
        """Return the number of known nodes."""
        return len(self._users)

    def add(self, address: str, user: str | None, state: State) -> None:
        """Add the user of a new node."""
        if len(self._users) >= self._full:
            self._users = {words: owner for words, owner in self._users.items() if _exists(words, state)}
            self._full = max(_KEPT_MIN, 2 * len(self._users))
        self._users[address_words(address)] = user

    def is_known(self, address: str) -> bool:
        """Return whether the user of an address is known: it is that of a temporary node."""
        return bool(self._users) and address_words(address) in self._users

    def is_of(self, address: str, user: str | None) -> bool:
        """Return whether a user made the temporary node of an address."""
        return self.is_known(address) and self._users[address_words(address)] == user


def _exists(words: Words, state: State) -> bool:
    name = ".".join(words[1:])
    return name in state.queue_names or name in state.muxer_names
