"""The roles that every broker has: what each allows, and which addresses a QUERY and a READ show it.

administrator   everything
operator        create, delete and manage, without the bodies of messages, users and configuration
monitor         QUERY and READ of all, and the metrics
application     temporary nodes of its own, and sends to those of others; rules of its users say the rest
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ambermq.protocol.auth.access import Action
from ambermq.protocol.auth.address_words import EVERY_ADDRESS

__all__ = ["ADMINISTRATOR", "ROLES", "Role"]


class Role(NamedTuple):
    """A role that every broker has."""

    actions: frozenset[Action]
    patterns: tuple[str, ...]
    """The patterns on which the actions are allowed."""
    shows: tuple[str, ...] = ()
    """Patterns that it sees without an action."""


ADMINISTRATOR: Final = "administrator"
_TEMPORARY: Final = ("/queues/$temporary.#", "/topics/$temporary.#")
_OPERATED: Final = ("#", "/topics/#", "/muxers/#", "/queues/$subscription.#", *_TEMPORARY)
_AFFAIRS: Final = ("$snapshots", "$compaction", "$vhosts", "$connections", "$broker")

ROLES: Final[Mapping[str, Role]] = {
    ADMINISTRATOR: Role(frozenset(Action), (EVERY_ADDRESS,)),
    "operator": Role(
        frozenset((Action.CREATE, Action.DELETE, Action.MANAGE)), (*_OPERATED, *_AFFAIRS), (EVERY_ADDRESS,)
    ),
    "monitor": Role(frozenset(), (), (EVERY_ADDRESS,)),
    "application": Role(frozenset((Action.CREATE, Action.SEND)), _TEMPORARY),
}
"""Name to role."""
