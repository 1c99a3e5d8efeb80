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

    def decide_all(self, identity: Identity, vhost: str, action: Action, pattern: str) -> Decision:
        """Return the decision for every address of a pattern, such as the topic of a subscription."""

    def sees(self, identity: Identity, vhost: str, address: str) -> bool:
        """Return whether QUERY and READ show an address, which may be a pattern: any action on it is allowed."""

    def sees_all(self, identity: Identity, vhost: str) -> bool:
        """Return whether QUERY and READ show every address."""

    def can_use(self, identity: Identity, vhost: str) -> Decision:
        """Return whether an identity may open a connection to a virtual host."""


class _Everything:
    """The rules of a broker without users: everything is allowed."""

    def decide(self, identity: Identity, vhost: str, action: Action, address: str) -> Decision:
        del identity, vhost, action, address
        return Decision(is_allowed=True, reason="this broker has no users")

    def decide_all(self, identity: Identity, vhost: str, action: Action, pattern: str) -> Decision:
        return self.decide(identity, vhost, action, pattern)

    def sees(self, identity: Identity, vhost: str, address: str) -> bool:
        return self.decide(identity, vhost, Action.MANAGE, address).is_allowed

    def sees_all(self, identity: Identity, vhost: str) -> bool:
        return self.sees(identity, vhost, "")

    def can_use(self, identity: Identity, vhost: str) -> Decision:
        del identity, vhost
        return Decision(is_allowed=True, reason="this broker has no users")


EVERYTHING: Access = _Everything()
