"""The identity of a connection: a user name, and for a child process of the broker a scope.

Rule 1. A connection without a scope may do everything that the settings permit its user.
Rule 2. A connection with a scope attaches to `$management` of one virtual host only, and uses the operations of a few
        types. Its answers leave on its own links only: a `reply-to` cannot send them to a queue.
"""

from dataclasses import dataclass

__all__ = ["Identity", "ManagementScope"]


@dataclass(frozen=True, slots=True)
class ManagementScope:
    """The part of the management that a connection may use."""

    vhost: str
    """The name of the virtual host."""
    types: frozenset[str]
    """The management types whose operations are allowed."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a connection proved when it authenticated."""

    username: str | None = None
    """The user; None for an anonymous client, and for a child process of the broker."""
    scope: ManagementScope | None = None
    """The scope; None for a connection that only the settings restrict."""
    is_remote: bool = False
    """Whether it is a client of another machine that needs no user name."""
    is_local: bool = False
    """Whether it is the user `local`: a process of the broker's own user id or of root, over the unix socket."""
    awaits_token: bool = False
    """Whether it has proved nothing yet: it may use `$cbs` alone, until it puts a token there."""
