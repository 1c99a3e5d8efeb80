"""How long a link keeps what is unsettled, by the durability, expiry policy and timeout of its terminus.

    link-detach        nothing
    session-end        until its session ends, then for the timeout; the default
    connection-close   until its connection ends, then for the timeout
    never              `suspended_s_max` after its connection, though the terminus itself may last for ever

Rule. A timeout is at most `suspended_s_max`; the answer to the attach has the one that applies.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from ambermq.engine.commands import Suspension
from ambermq.engine.model.suspended_link import KEEPS_NOTHING, Keeping
from ambermq.protocol.amqp10.performatives.classes import Source, Target
from ambermq.protocol.amqp10.spec import TerminusDurability, TerminusExpiryPolicy

__all__ = ["NOTHING_KEPT", "LinkEnd", "LinkKeeping", "keep_as_asked", "kept_for_ever"]

_Terminus = TypeVar("_Terminus", Source, Target)
_POLICIES: Final = frozenset(
    {
        TerminusExpiryPolicy.LINK_DETACH,
        TerminusExpiryPolicy.SESSION_END,
        TerminusExpiryPolicy.CONNECTION_CLOSE,
        TerminusExpiryPolicy.NEVER,
    }
)


class LinkEnd(Enum):
    """What ended a link that its peer may attach again, while its connection lasts."""

    DETACH = 0
    SESSION = 1


@dataclass(frozen=True, slots=True)
class LinkKeeping:
    """How a link keeps what is unsettled."""

    policy: str
    keeping: Keeping = KEEPS_NOTHING
    at_loss: Suspension = Suspension.NONE
    """What becomes of what is unsettled when its connection ends."""

    @property
    def ends_with_session(self) -> bool:
        """Whether the timeout begins with the end of its session, not of its connection."""
        return self.policy == TerminusExpiryPolicy.SESSION_END

    def suspension(self, end: LinkEnd | None) -> Suspension:
        """Return what becomes of what is unsettled at an end of the link; None: it is closed."""
        if end is None or self.policy == TerminusExpiryPolicy.LINK_DETACH:
            return Suspension.NONE
        return Suspension.OVER if end is LinkEnd.SESSION and self.ends_with_session else Suspension.OPEN


NOTHING_KEPT: Final = LinkKeeping(TerminusExpiryPolicy.LINK_DETACH)


def keep_as_asked(asked: Source | Target, answer: _Terminus, suspended_s_max: int) -> LinkKeeping:
    """Return how a link keeps what is unsettled, as its peer asked; set the fields of the answered terminus."""
    policy = asked.expiry_policy if asked.expiry_policy in _POLICIES else TerminusExpiryPolicy.SESSION_END
    durability = min(asked.durable, TerminusDurability.UNSETTLED_STATE)
    timeout_s = min(asked.timeout, suspended_s_max)
    answer.durable, answer.expiry_policy, answer.timeout = durability, policy, timeout_s
    keeping = _keeping(policy, durability, timeout_s, suspended_s_max)
    return LinkKeeping(policy, keeping, Suspension.NONE if keeping == KEEPS_NOTHING else Suspension.OVER)


def kept_for_ever(suspended_s_max: int) -> LinkKeeping:
    """Return how the link of a durable subscription keeps what is unsettled."""
    policy = TerminusExpiryPolicy.NEVER
    keeping = _keeping(policy, TerminusDurability.UNSETTLED_STATE, 0, suspended_s_max)
    return LinkKeeping(policy, keeping, Suspension.NONE if keeping == KEEPS_NOTHING else Suspension.OVER)


def _keeping(policy: str, durability: int, timeout_s: int, suspended_s_max: int) -> Keeping:
    if policy == TerminusExpiryPolicy.NEVER:
        timeout_s = suspended_s_max
    # Without a timeout nothing outlives the connection, so the log says nothing of it.
    if policy == TerminusExpiryPolicy.LINK_DETACH or not timeout_s:
        return KEEPS_NOTHING
    return Keeping(durability, 1000 * timeout_s)
