"""The identity of a connection: a user name, and for a process of the broker itself the scope that it is bound to.

Rule 1. A connection without a scope may do everything that the settings permit its user.
Rule 2. A connection with a scope asks `$management` of one virtual host about a few types, and attaches to nothing
        else. Its answers leave on its own links alone: no `reply-to` makes a message of them.
"""

from dataclasses import dataclass

__all__ = ["Identity", "ManagementScope"]


@dataclass(frozen=True, slots=True)
class ManagementScope:
    """The part of the management that a connection is bound to."""

    vhost: str
    """The one virtual host, by name."""
    types: frozenset[str]
    """The management types that a request may be about."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a connection has proved when it was let in."""

    username: str | None = None
    """None for the anonymous, and for a process of the broker itself."""
    scope: ManagementScope | None = None
    """None: no bound but the settings."""
