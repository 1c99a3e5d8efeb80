"""The termini of an attach: what a peer asks for, what it gets, and what is refused.

Rule 1. What can be given otherwise is adjusted and reported as it is: durability, expiry, filters that are not applied.
Rule 2. What would do something else than asked for is refused: dynamic nodes, transactions, taking messages from the
        past.
Rule 3. A target without an address is the anonymous terminus: each message names its own in `to`. The capabilities that
        are answered are those that are honoured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.address import topic_address
from engine.sending import Unroutable
from protocol.errors import LinkFault
from protocol.filters import AT, At, read_at
from protocol.performatives import Attach, Coordinator, DeliveryState, Source, Target
from protocol.spec import SenderSettleMode, StdDistMode
from protocol.values import Symbol

__all__ = ["LOG_ADDRESS", "ConsumingTerms", "ProducingTerms", "Refusal", "consuming_terms", "producing_terms"]

_UNROUTABLE: Final = {"REJECT_UNROUTABLE": Unroutable.REJECT, "DISCARD_UNROUTABLE": Unroutable.DISCARD}
_TOPIC_CAPABILITIES: Final = frozenset(("topic", "temporary-topic"))
_NODE_CAPABILITIES: Final = frozenset(("queue", "topic", "temporary-queue", "temporary-topic"))
"""By which clients say what a plain name means."""

LOG_ADDRESS: Final = "/log"
"""The source of the events themselves; whatever asks for it takes nothing."""


class Refusal(Exception):
    """An attach that cannot be; the link is refused with this condition."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


@dataclass(frozen=True, slots=True)
class ProducingTerms:
    """What a sending peer gets."""

    address: str
    """Empty for the anonymous terminus."""
    source: Source
    target: Target
    unroutable: Unroutable = Unroutable.RELEASE


@dataclass(frozen=True, slots=True)
class ConsumingTerms:
    """What a receiving peer gets."""

    address: str
    source: Source
    target: Target
    default_outcome: DeliveryState | None
    """Stands in for the outcome of a delivery that is settled without one."""
    is_settled: bool
    """Deliveries are sent settled."""
    is_copy: bool = False
    """Nothing is taken: the source is browsed."""
    at: At | None = None
    """The moment to browse, None for the present."""


def producing_terms(attach: Attach) -> ProducingTerms:
    """Return the terms for a peer that wants to send. Raises Refusal."""
    target = attach.target
    if isinstance(target, Coordinator):
        raise Refusal("amqp:not-implemented", "transactions are not supported")
    if target is None:
        raise Refusal("amqp:invalid-field", "the attach has no target")
    if target.dynamic:
        raise Refusal("amqp:not-implemented", "dynamic targets are not supported: name an address")
    address = _typed(_address(target.address, "target"), target.capabilities)
    unroutable = _unroutable(target.capabilities)
    source = attach.source or Source()
    given = Target(address=target.address or None, capabilities=_honoured(target.capabilities))
    return ProducingTerms(address, source, given, unroutable)


def consuming_terms(attach: Attach) -> ConsumingTerms:
    """Return the terms for a peer that wants to receive. Raises Refusal."""
    source = attach.source
    if source is None:
        raise Refusal("amqp:invalid-field", "the attach has no source")
    if source.dynamic:
        raise Refusal("amqp:not-implemented", "dynamic sources are not supported: name an address")
    address = _address(source.address, "source")
    if not address:
        raise Refusal("amqp:invalid-field", "the attach names no address to receive from")
    address = _typed(address, source.capabilities)
    try:
        at, applied = read_at(source.filter)
    except LinkFault as fault:
        raise Refusal(fault.condition, fault.description) from fault
    is_copy = source.distribution_mode == StdDistMode.COPY or address == LOG_ADDRESS
    if at is not None and not is_copy:
        raise Refusal("amqp:invalid-field", f"the filter {AT} browses the past: it needs distribution-mode copy")
    given = Source(
        address=address,
        distribution_mode=StdDistMode.COPY if is_copy else source.distribution_mode,
        filter=applied,
        default_outcome=source.default_outcome,
        outcomes=source.outcomes,
        capabilities=source.capabilities,
    )
    target = attach.target if isinstance(attach.target, Target) else Target()
    is_settled = attach.snd_settle_mode == SenderSettleMode.SETTLED
    return ConsumingTerms(address, given, target, source.default_outcome, is_settled, is_copy, at)


def _address(address: object, field: str) -> str:
    if address is None:
        return ""
    if not isinstance(address, str):
        raise Refusal("amqp:invalid-field", f"the {field}'s address is {type(address).__name__}, expected a string")
    return address


def _typed(address: str, capabilities: Sequence[str]) -> str:
    """Return the address as capabilities mean it: by `topic` clients say that a plain name is not a queue's."""
    is_plain = address and not address.startswith(("/", "$"))
    return topic_address(address) if is_plain and set(capabilities) & _TOPIC_CAPABILITIES else address


def _unroutable(capabilities: Sequence[str]) -> Unroutable:
    for capability, unroutable in _UNROUTABLE.items():
        if capability in capabilities:
            return unroutable
    return Unroutable.RELEASE


def _honoured(capabilities: Sequence[str]) -> tuple[Symbol, ...]:
    return tuple(Symbol(one) for one in capabilities if one in _UNROUTABLE or one in _NODE_CAPABILITIES)
