"""Dynamic nodes: what a peer requests, and what the answer reports (messaging, 3.5.3 and 3.5.9 to 3.5.13).

    dynamic-node-properties   lifetime-policy -> one of the four policies, by default delete-on-close
    capabilities              temporary-topic (or topic): a topic; anything else: a queue

    supported-dist-modes      one symbol, or an array of symbols; a dynamic node supports both modes

Rule 1. Unknown properties are not echoed; an unknown policy is refused, and so is a value of a wrong type.
"""

from collections.abc import Iterable
from typing import Any, Final

from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.protocol.amqp10.errors import LinkFault
from ambermq.protocol.amqp10.performatives.classes import (
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    Source,
    Target,
)
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Array, Described, Map, Symbol

__all__ = ["TOPIC_CAPABILITIES", "policy_of", "read_dynamic"]

TOPIC_CAPABILITIES: Final = frozenset(("topic", "temporary-topic"))
_POLICY: Final = Symbol("lifetime-policy")
_MODES: Final = Symbol("supported-dist-modes")
_POLICIES: Final = {
    Lifetime.ON_CLOSE: DeleteOnClose,
    Lifetime.NO_LINKS: DeleteOnNoLinks,
    Lifetime.NO_MESSAGES: DeleteOnNoMessages,
    Lifetime.NO_LINKS_OR_MESSAGES: DeleteOnNoLinksOrMessages,
}


def read_dynamic(terminus: Source | Target) -> Dynamic | None:
    """Return the dynamic node that a terminus requests, None if it names a node. Raises LinkFault."""
    if not terminus.dynamic:
        return None
    _check_modes(terminus.dynamic_node_properties)
    is_topic = not TOPIC_CAPABILITIES.isdisjoint(terminus.capabilities)
    return Dynamic(_lifetime(terminus.dynamic_node_properties), is_topic)


def policy_of(dynamic: Dynamic) -> dict[Any, Any]:
    """Return the properties of a dynamic node for the answer."""
    return {_POLICY: _POLICIES[dynamic.lifetime]()}


def _lifetime(properties: Any) -> Lifetime:
    policy = next((value for key, value in _pairs(properties) if key == _POLICY), None)
    if policy is None:
        return Lifetime.ON_CLOSE
    descriptor = policy.descriptor if isinstance(policy, Described) else getattr(policy, "CODE", None)
    for lifetime, known in _POLICIES.items():
        if descriptor in (known.CODE, known.NAME):
            return lifetime
    raise LinkFault(AmqpCondition.INVALID_FIELD, f"unknown lifetime-policy {policy!r:.80}")


def _check_modes(properties: Any) -> None:
    """Raise LinkFault if the distribution modes are neither a symbol nor an array of symbols (messaging, 3.5.9)."""
    modes = next((value for key, value in _pairs(properties) if key == _MODES), None)
    if modes is None or isinstance(modes, Symbol) or (isinstance(modes, Array) and modes.kind == "symbol"):
        return
    raise LinkFault(AmqpCondition.INVALID_FIELD, f"supported-dist-modes is {modes!r:.80}, expected symbols")


def _pairs(properties: Any) -> Iterable[tuple[Any, Any]]:
    return properties.pairs if isinstance(properties, Map) else (properties or {}).items()
