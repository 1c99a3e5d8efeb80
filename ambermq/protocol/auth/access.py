"""The seam between the gateway and the rules: whether an identity may do something to an address."""

from enum import StrEnum
from typing import NamedTuple, Protocol

from ambermq.protocol.auth.identity import Identity

__all__ = ["EVERYTHING", "Access", "Action", "Decision"]


class Action(StrEnum):
    """What a rule allows or denies; /docs/security.md says what each covers."""

    CREATE = "create"
    DELETE = "delete"
    SEND = "send"
    RECEIVE = "receive"
    BROWSE = "browse"
    REPLAY = "replay"
    MANAGE = "manage"


class Decision(NamedTuple):
    """Whether an action is allowed, and the rule that says so."""

    is_allowed: bool
    reason: str = ""
    """The rule in words: `rule 3: allow alice send orders.#`, `no rule allows it`."""


class Access(Protocol):
    """The rules of a broker."""

    def decide(self, identity: Identity, vhost: str, action: Action, address: str) -> Decision:
        """Return the decision for one address, normalised or not."""

    def can_use(self, identity: Identity, vhost: str) -> Decision:
        """Return whether an identity may open a connection to a virtual host."""


class _Everything:
    """The rules of a broker without users: everything is allowed."""

    def decide(self, identity: Identity, vhost: str, action: Action, address: str) -> Decision:
        del identity, vhost, action, address
        return Decision(is_allowed=True, reason="this broker has no users")

    def can_use(self, identity: Identity, vhost: str) -> Decision:
        del identity, vhost
        return Decision(is_allowed=True, reason="this broker has no users")


EVERYTHING: Access = _Everything()
