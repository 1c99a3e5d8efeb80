"""The termini of an attach: what a peer requests, what it gets, and what is refused.

Rule 1. A value that the broker can adjust is adjusted, and the answer reports it: durability, expiry, unknown filters.
Rule 2. A request whose meaning would change is refused: to take messages from the past.
Rule 3. A target without an address is the anonymous terminus: each message names its address in `to`. The answer holds
        only the capabilities that the broker honours.
Rule 4. A source at a topic is a subscription with the name of the link. It is durable if the source is durable and
        never expires. A link without a source requests the durable subscription of its name; the answer describes it.
Rule 5. An attach that desires `ambermq:existing` creates nothing that outlives its link. The answer offers the
        capability, and names the queue that any other attach has created.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ambermq.engine.address import topic_address
from ambermq.engine.config import EngineConfig
from ambermq.engine.dispatch.token_bucket import RATE_MAX, RATE_MIN
from ambermq.engine.effects import ConsumerReady, ProducerReady
from ambermq.engine.errors import SelectorError
from ambermq.engine.model.lifetime import Dynamic
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.subscription import DEFAULT_SUBSCRIPTION_REQUEST, Subscription, SubscriptionRequest
from ambermq.engine.selectors.selector import parse_selector
from ambermq.protocol.amqp10.errors import LinkFault
from ambermq.protocol.amqp10.link.link import CREATED, EXISTING
from ambermq.protocol.amqp10.performatives.classes import Attach, Coordinator, DeliveryState, Rejected, Source, Target
from ambermq.protocol.amqp10.spec import SenderSettleMode, StdDistMode, TerminusDurability, TerminusExpiryPolicy
from ambermq.protocol.amqp10.types.values import Described, Map, Symbol, ULong
from ambermq.protocol.gateway.links.dynamic_nodes import TOPIC_CAPABILITIES, policy_of, read_dynamic
from ambermq.protocol.gateway.links.outcome_mapping import DEFAULT_OUTCOME, OUTCOMES, known_outcomes, with_outcomes
from ambermq.protocol.gateway.links.source_filters import (
    AT,
    NO_LOCAL_CODE,
    SELECTOR_CODE,
    At,
    Selection,
    read_at,
    read_selection,
)
from ambermq.protocol.gateway.recovery.link_keeping import (
    NOTHING_KEPT,
    LinkKeeping,
    keep_as_asked,
    kept_for_ever,
)

__all__ = [
    "DELAYED_DELIVERY",
    "LOG_ADDRESS",
    "ConsumingTerms",
    "ProducingTerms",
    "Refusal",
    "consuming_terms",
    "offered_by",
    "producing_terms",
    "properties_of",
]

DELAYED_DELIVERY: Final = Symbol("DELAYED_DELIVERY")
"""The capability of connections and links whose messages may be scheduled for later. Qpid JMS asks links for it."""
_UNROUTABLE: Final = {"REJECT_UNROUTABLE": Unroutable.REJECT, "DISCARD_UNROUTABLE": Unroutable.DISCARD}
_IMMEDIATE: Final = "IMMEDIATE"
_NODE_CAPABILITIES: Final = frozenset(("queue", "topic", "temporary-queue", "temporary-topic"))
"""The capabilities by which clients declare the kind of a plain name."""
_SUBSCRIPTION_CAPABILITIES: Final = frozenset(("shared", "global"))
_JMS_SUFFIX: Final = re.compile(r"\|(?:[0-9]+|global[0-9]*|volatile[0-9]+|global-volatile[0-9]+)\Z")
"""The suffix that Qpid JMS appends to the name of a shared subscription, to distinguish its links."""

_URL: Final = re.compile(r"(?:amqps?|sb)://[^/]*/")
"""The URL before the address, as clients of Azure write it; its host is not checked."""
_TOPICS: Final = "/topics/"
_PRIORITIES: Final = ("ambermq:priority", "priority", "rabbitmq:priority")
"""The properties of an attach that give its priority; Artemis and RabbitMQ have the others."""
PRIORITY_MAX: Final = 1_000_000
_RATE: Final = "ambermq:rate"
"""The property of an attach that limits the messages a second of a receiver."""
_EXCLUSIVE: Final = "ambermq:exclusive"
"""The property of an attach by which a receiver wants to be the only consumer of its queue."""
_DEFAULTS: Final = EngineConfig()
_Filters = list[tuple[Any, Any]]

LOG_ADDRESS: Final = "/log"
"""The source of the events themselves; its receivers take no messages."""


class Refusal(Exception):
    """An attach that is refused with this condition."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


@dataclass(frozen=True, slots=True)
class ProducingTerms:
    """The terms of a sending peer."""

    address: str
    """Empty for the anonymous terminus."""
    source: Source
    target: Target
    unroutable: Unroutable = Unroutable.RELEASE
    is_immediate: bool = False
    dynamic: Dynamic | None = None
    """The node to create for it, instead of an address."""
    must_exist: bool = False
    """Whether it creates no queue at its address."""
    delays: bool = False
    """Whether the sender asked for delayed delivery."""
    kept: LinkKeeping = NOTHING_KEPT
    """How it keeps delivery-tags that the sender has not settled."""

    @property
    def is_anonymous(self) -> bool:
        """Whether the target is the anonymous terminus."""
        return not self.address and self.dynamic is None

    @property
    def may_reject(self) -> bool:
        """Whether the source has the outcome rejected."""
        return Rejected.NAME in self.source.outcomes

    def target_of(self, ready: ProducerReady) -> Target:
        """Return the actual target."""
        return self.target if self.dynamic is None else replace(self.target, address=ready.address)


@dataclass(frozen=True, slots=True)
class ConsumingTerms:
    """The terms of a receiving peer."""

    address: str
    source: Source
    target: Target
    default_outcome: DeliveryState | None
    """The outcome of a delivery that is settled without one."""
    is_settled: bool
    """Whether deliveries are sent settled."""
    is_copy: bool = False
    """Whether the link browses its source, and takes no messages."""
    at: At | None = None
    """The moment to browse; None for the present."""
    selector: str = ""
    subscription_request: SubscriptionRequest = DEFAULT_SUBSCRIPTION_REQUEST
    dynamic: Dynamic | None = None
    """The node to create for it, instead of an address."""
    is_recalled: bool = False
    """Whether it requests the durable subscription of its name, whatever its source is."""
    must_exist: bool = False
    """Whether it creates neither a queue nor a durable subscription."""
    priority: int = 0
    """Its priority among the consumers of its queue."""
    rate: float = 0.0
    """The most messages a second that it gets; 0: no limit."""
    is_exclusive: bool = False
    """Whether it wants to be the only consumer of its queue."""
    kept: LinkKeeping = NOTHING_KEPT
    """How it keeps unsettled deliveries."""

    def source_of(self, ready: ConsumerReady) -> Source:
        """Return the actual source."""
        if self.is_recalled and ready.subscription is not None:
            return _recalled_source(ready.subscription)
        source = self.source if self.dynamic is None else replace(self.source, address=ready.address)
        return replace(source, distribution_mode=StdDistMode.COPY) if ready.follows else source


def producing_terms(attach: Attach, config: EngineConfig = _DEFAULTS) -> ProducingTerms:
    """Return the terms for a peer that sends. Raises Refusal."""
    target = attach.target
    if not isinstance(target, Target):
        raise Refusal("amqp:invalid-field", "the attach has no target")
    dynamic = _dynamic(target)
    address = "" if dynamic is not None else _typed(_address(target.address, "target"), target.capabilities)
    applied = Target(address=None if dynamic is not None else target.address or None)
    applied.capabilities = _honoured(target.capabilities, _UNROUTABLE.keys() | _NODE_CAPABILITIES | {_IMMEDIATE})
    kept = NOTHING_KEPT if dynamic is not None else keep_as_asked(target, applied, config.suspended_s_max)
    if dynamic is not None:
        applied.dynamic, applied.dynamic_node_properties = True, policy_of(dynamic)
        applied.expiry_policy = _expiry_policy(target)
    is_immediate = _IMMEDIATE in target.capabilities
    source = with_outcomes(attach.source or Source())
    must_exist = _must_exist(attach, dynamic) and bool(address)
    unroutable = _unroutable(target.capabilities)
    delays = DELAYED_DELIVERY in attach.desired_capabilities
    return ProducingTerms(address, source, applied, unroutable, is_immediate, dynamic, must_exist, delays, kept)


def consuming_terms(attach: Attach, *, is_nameless: bool = False, config: EngineConfig = _DEFAULTS) -> ConsumingTerms:
    """Return the terms for a peer that receives. `is_nameless`: its container id is empty.

    `config` limits the bytes of all selectors together, and the tokens of each. Raises Refusal.
    """
    source = attach.source
    if isinstance(attach.target, Coordinator):
        raise Refusal("amqp:invalid-field", "the target of a receiver is a coordinator")
    if source is None:
        request = _subscribing(attach.name, attach.desired_capabilities, is_durable=True)
        kept = kept_for_ever(config.suspended_s_max)
        return _terms(attach, "", Source(), subscription_request=request, is_recalled=True, kept=kept)
    dynamic = _dynamic(source)
    address = "" if dynamic is not None else _typed(_address(source.address, "source"), source.capabilities)
    if not address and dynamic is None:
        raise Refusal("amqp:invalid-field", "the attach names no address to receive from")
    is_topic = address.startswith(_TOPICS) if dynamic is None else dynamic.is_topic
    try:
        selection = read_selection(source.filter)
        if address == LOG_ADDRESS:
            selection = Selection()
        _check_each(selection, config)
        if is_topic:
            if is_nameless:
                # Nothing is its own container's, so no-local is not applied.
                selection = replace(selection, no_locals=())
            return _subscription_terms(attach, source, address, dynamic, selection, config)
        return _queue_terms(attach, source, address, dynamic, selection, config)
    except LinkFault as fault:
        raise Refusal(fault.condition, fault.description) from fault


def _check_each(selection: Selection, config: EngineConfig) -> None:
    """Raise Refusal if one of several selectors is invalid, though their conjunction may be valid: `a) OR (b`.

    The engine compiles the conjunction, and checks its length and a single selector.
    """
    bytes_max, tokens_max = config.argument_bytes_max, config.selector_tokens_max
    if len(selection.texts) < 2 or len(selection.selector.encode()) > bytes_max:
        return
    for text in selection.texts:
        try:
            parse_selector(text, bytes_max=bytes_max, tokens_max=tokens_max)
        except SelectorError as error:
            raise Refusal("amqp:invalid-field", f"the selector {text!r:.80}: {error}") from error


def _queue_terms(
    attach: Attach,
    source: Source,
    address: str,
    dynamic: Dynamic | None,
    selection: Selection,
    config: EngineConfig,
) -> ConsumingTerms:
    """Return the terms of a link that receives from a queue, browses one, or follows the log."""
    at, applied = read_at(source.filter)
    is_copy = source.distribution_mode == StdDistMode.COPY or address == LOG_ADDRESS
    if at is not None and not is_copy:
        raise Refusal("amqp:invalid-field", f"the filter {AT} browses the past: it needs distribution-mode copy")
    filters = [*(applied or {}).items(), *selection.selectors]
    answer = _answered_source(source, dynamic, _honoured(source.capabilities, _NODE_CAPABILITIES), filters)
    # A node with several modes says which one applies (messaging, 3.5.3).
    answer.distribution_mode = StdDistMode.COPY if is_copy else StdDistMode.MOVE
    kept = NOTHING_KEPT
    if dynamic is None and not is_copy:
        kept = keep_as_asked(source, answer, config.suspended_s_max)
    fields = {"is_copy": is_copy, "at": at, "selector": selection.selector, "dynamic": dynamic, "kept": kept}
    return _terms(attach, address, answer, **fields)


def _subscription_terms(
    attach: Attach,
    source: Source,
    address: str,
    dynamic: Dynamic | None,
    selection: Selection,
    config: EngineConfig,
) -> ConsumingTerms:
    """Return the terms of a link that subscribes to a topic.

    The distribution-mode has no meaning here: Qpid JMS requests copies, since other subscribers get the message, too.
    """
    is_durable = dynamic is None and bool(source.durable) and source.expiry_policy == TerminusExpiryPolicy.NEVER
    request = _subscribing(attach.name, source.capabilities, is_durable=is_durable)
    is_no_local = bool(selection.no_locals) and not request.is_global
    request = SubscriptionRequest(request.name, request.is_durable, request.is_shared, request.is_global, is_no_local)
    known = _NODE_CAPABILITIES | _SUBSCRIPTION_CAPABILITIES
    filters = [*selection.selectors, *(selection.no_locals if is_no_local else ())]
    answer = _answered_source(source, dynamic, _honoured(source.capabilities, known), filters)
    is_known = source.distribution_mode in {StdDistMode.MOVE, StdDistMode.COPY}
    answer.distribution_mode = source.distribution_mode if is_known else None
    answer.durable = TerminusDurability.UNSETTLED_STATE if is_durable else TerminusDurability.NONE
    if dynamic is None:
        answer.expiry_policy = TerminusExpiryPolicy.NEVER if is_durable else TerminusExpiryPolicy.LINK_DETACH
    kept = kept_for_ever(config.suspended_s_max) if is_durable and not request.is_shared else NOTHING_KEPT
    fields = {"selector": selection.selector, "subscription_request": request, "dynamic": dynamic, "kept": kept}
    return _terms(attach, address, answer, **fields)


def _terms(attach: Attach, address: str, source: Source, **fields: Any) -> ConsumingTerms:
    target = attach.target if isinstance(attach.target, Target) else Target()
    is_settled = attach.snd_settle_mode == SenderSettleMode.SETTLED
    must_exist = _must_exist(attach, fields.get("dynamic"))
    return ConsumingTerms(
        address,
        source,
        target,
        source.default_outcome,
        is_settled,
        must_exist=must_exist,
        priority=_priority(attach),
        is_exclusive=_is_exclusive(attach),
        rate=_rate(attach),
        **fields,
    )


def _priority(attach: Attach) -> int:
    """Return the priority in the properties of an attach. Raises Refusal if it is no number in the bounds."""
    properties = _properties(attach)
    found = next((properties[name] for name in _PRIORITIES if name in properties), None)
    if found is None:
        return 0
    if not isinstance(found, int) or isinstance(found, bool) or abs(found) > PRIORITY_MAX:
        expected = f"a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}"
        raise Refusal("amqp:invalid-field", f"the priority of a receiver is {expected}, found {found!r:.80}")
    return int(found)


def _rate(attach: Attach) -> float:
    """Return the messages a second that a receiver gets at most; 0 for no limit. Raises Refusal for a bad value."""
    found = _properties(attach).get(_RATE)
    if found is None:
        return 0.0
    if not isinstance(found, int | float) or isinstance(found, bool) or not RATE_MIN <= found <= RATE_MAX:
        expected = f"a number of messages a second from {RATE_MIN} to {RATE_MAX}"
        raise Refusal("amqp:invalid-field", f"{_RATE} of a receiver is {expected}, found {found!r:.80}")
    return float(found)


def _is_exclusive(attach: Attach) -> bool:
    """Return whether a receiver wants to be the only consumer. Raises Refusal if the property is no boolean."""
    found = _properties(attach).get(_EXCLUSIVE)
    if found is not None and not isinstance(found, bool):
        raise Refusal("amqp:invalid-field", f"{_EXCLUSIVE} of a receiver is true or false, found {found!r:.80}")
    return bool(found)


def _properties(attach: Attach) -> dict[Any, Any]:
    """Return the properties of an attach; none if their keys are of types that no property here has."""
    return attach.properties if isinstance(attach.properties, dict) else {}


def _must_exist(attach: Attach, dynamic: Dynamic | None) -> bool:
    """Return whether an attach wants only what exists. Raises Refusal if it asks for a new node as well."""
    must_exist = EXISTING in attach.desired_capabilities
    if must_exist and dynamic is not None:
        raise Refusal("amqp:invalid-field", f"a dynamic node is new: it excludes the capability {EXISTING}")
    return must_exist


def offered_by(terms: ProducingTerms | ConsumingTerms) -> tuple[Symbol, ...]:
    """Return the capabilities that the answer to an attach offers."""
    offered = (EXISTING,) if terms.must_exist else ()
    return (*offered, DELAYED_DELIVERY) if isinstance(terms, ProducingTerms) and terms.delays else offered


def properties_of(ready: ProducerReady | ConsumerReady) -> dict[Any, Any] | None:
    """Return the properties of the answer to an attach."""
    return {CREATED: ready.created} if ready.created else None


def _answered_source(source: Source, dynamic: Dynamic | None, capabilities: Sequence[str], filters: _Filters) -> Source:
    """Return the fields of the answered source that queues and topics have in common."""
    # A Map holds keys that a dict cannot hold.
    applied: Any = Map(tuple(filters)) if isinstance(source.filter, Map) else dict(filters)
    return Source(
        address=source.address if dynamic is None else None,
        expiry_policy=Source().expiry_policy if dynamic is None else _expiry_policy(source),
        dynamic=dynamic is not None,
        dynamic_node_properties=None if dynamic is None else policy_of(dynamic),
        filter=applied if filters else None,
        default_outcome=source.default_outcome or DEFAULT_OUTCOME,
        outcomes=known_outcomes(source.outcomes),
        capabilities=tuple(capabilities),
    )


def _recalled_source(subscription: Subscription) -> Source:
    """Return the source of a durable subscription."""
    kinds = ["topic"]
    kinds += ["shared"] if subscription.is_shared else []
    kinds += ["global"] if subscription.container is None else []
    filters: dict[Any, Any] = {}
    if subscription.selector:
        filters[Symbol("jms-selector")] = Described(ULong(SELECTOR_CODE), subscription.selector)
    if subscription.is_no_local:
        filters[Symbol("no-local")] = Described(ULong(NO_LOCAL_CODE), "NoLocalFilter{}")
    return Source(
        address=topic_address(subscription.topic),
        durable=TerminusDurability.UNSETTLED_STATE,
        expiry_policy=TerminusExpiryPolicy.NEVER,
        filter=filters or None,
        default_outcome=DEFAULT_OUTCOME,
        outcomes=OUTCOMES,
        capabilities=tuple(map(Symbol, kinds)),
    )


def _subscribing(link: str, capabilities: Collection[str], *, is_durable: bool) -> SubscriptionRequest:
    """Return the subscription that a link's name and capabilities describe."""
    is_shared, is_global = "shared" in capabilities, "global" in capabilities
    name = _JMS_SUFFIX.sub("", link) if is_shared else link
    return SubscriptionRequest(name, is_durable, is_shared, is_global)


def _expiry_policy(terminus: Source | Target) -> str:
    """Return the expiry policy of a dynamic node's terminus: it expires with the connection at the latest."""
    policy = terminus.expiry_policy
    return TerminusExpiryPolicy.CONNECTION_CLOSE if policy == TerminusExpiryPolicy.NEVER else policy


def _dynamic(terminus: Source | Target) -> Dynamic | None:
    try:
        return read_dynamic(terminus)
    except LinkFault as fault:
        raise Refusal(fault.condition, fault.description) from fault


def _address(address: object, field: str) -> str:
    if address is None:
        return ""
    if not isinstance(address, str):
        raise Refusal("amqp:invalid-field", f"the {field}'s address is {type(address).__name__}, expected a string")
    url = _URL.match(address)
    return address if url is None else address[url.end() :]


def _typed(address: str, capabilities: Sequence[str]) -> str:
    """Return the address; a plain name is a topic if the capabilities name one."""
    is_plain = address and not address.startswith(("/", "$"))
    return topic_address(address) if is_plain and not TOPIC_CAPABILITIES.isdisjoint(capabilities) else address


def _unroutable(capabilities: Sequence[str]) -> Unroutable:
    """Return the treatment of unroutable messages; for a sender to a topic they are discarded by default."""
    for capability, unroutable in _UNROUTABLE.items():
        if capability in capabilities:
            return unroutable
    return Unroutable.RELEASE if TOPIC_CAPABILITIES.isdisjoint(capabilities) else Unroutable.DISCARD


def _honoured(capabilities: Sequence[str], known: Collection[str]) -> tuple[Symbol, ...]:
    return tuple(Symbol(one) for one in capabilities if one in known)
