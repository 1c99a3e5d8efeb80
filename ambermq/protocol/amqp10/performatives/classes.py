"""The composite types of AMQP 1.0 as classes: performatives, termini, states and others.

`python -m ambermq.tools.spec --write` generates this file from the OASIS XML; `make spec` fails if it was edited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias
from uuid import UUID

from ambermq.protocol.amqp10.performatives.base import Composite

__all__ = [
    "COMPOSITES",
    "Accepted",
    "Attach",
    "Begin",
    "Close",
    "Coordinator",
    "Declare",
    "Declared",
    "DeleteOnClose",
    "DeleteOnNoLinks",
    "DeleteOnNoLinksOrMessages",
    "DeleteOnNoMessages",
    "DeliveryState",
    "Detach",
    "Discharge",
    "Disposition",
    "End",
    "Error",
    "Flow",
    "Header",
    "Modified",
    "Open",
    "Outcome",
    "Properties",
    "Received",
    "Rejected",
    "Released",
    "SaslChallenge",
    "SaslInit",
    "SaslMechanisms",
    "SaslOutcome",
    "SaslResponse",
    "Source",
    "Target",
    "TransactionalState",
    "Transfer",
]


@dataclass(slots=True, kw_only=True)
class Open(Composite):
    """The type open of the part transport; provides frame."""

    CODE: ClassVar[int] = 0x10
    NAME: ClassVar[str] = "amqp:open:list"

    container_id: str = field(metadata={"type": "string"})
    hostname: str | None = field(default=None, metadata={"type": "string"})
    max_frame_size: int = field(default=4294967295, metadata={"type": "uint"})
    channel_max: int = field(default=65535, metadata={"type": "ushort"})
    idle_time_out: int | None = field(default=None, metadata={"type": "milliseconds"})
    outgoing_locales: tuple[str, ...] = field(default=(), metadata={"type": "ietf-language-tag", "multiple": True})
    incoming_locales: tuple[str, ...] = field(default=(), metadata={"type": "ietf-language-tag", "multiple": True})
    offered_capabilities: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})
    desired_capabilities: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})
    properties: dict[Any, Any] | None = field(default=None, metadata={"type": "fields"})


@dataclass(slots=True, kw_only=True)
class Begin(Composite):
    """The type begin of the part transport; provides frame."""

    CODE: ClassVar[int] = 0x11
    NAME: ClassVar[str] = "amqp:begin:list"

    remote_channel: int | None = field(default=None, metadata={"type": "ushort"})
    next_outgoing_id: int = field(metadata={"type": "transfer-number"})
    incoming_window: int = field(metadata={"type": "uint"})
    outgoing_window: int = field(metadata={"type": "uint"})
    handle_max: int = field(default=4294967295, metadata={"type": "handle"})
    offered_capabilities: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})
    desired_capabilities: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})
    properties: dict[Any, Any] | None = field(default=None, metadata={"type": "fields"})


@dataclass(slots=True, kw_only=True)
class Attach(Composite):
    """The type attach of the part transport; provides frame."""

    CODE: ClassVar[int] = 0x12
    NAME: ClassVar[str] = "amqp:attach:list"

    name: str = field(metadata={"type": "string"})
    handle: int = field(metadata={"type": "handle"})
    role: bool = field(metadata={"type": "role"})
    snd_settle_mode: int = field(default=2, metadata={"type": "sender-settle-mode"})
    rcv_settle_mode: int = field(default=0, metadata={"type": "receiver-settle-mode"})
    source: Source | None = field(default=None, metadata={"type": "*", "requires": "source"})
    target: Target | Coordinator | None = field(default=None, metadata={"type": "*", "requires": "target"})
    unsettled: dict[Any, Any] | None = field(default=None, metadata={"type": "map"})
    incomplete_unsettled: bool = field(default=False, metadata={"type": "boolean"})
    initial_delivery_count: int | None = field(default=None, metadata={"type": "sequence-no"})
    max_message_size: int | None = field(default=None, metadata={"type": "ulong"})
    offered_capabilities: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})
    desired_capabilities: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})
    properties: dict[Any, Any] | None = field(default=None, metadata={"type": "fields"})


@dataclass(slots=True, kw_only=True)
class Flow(Composite):
    """The type flow of the part transport; provides frame."""

    CODE: ClassVar[int] = 0x13
    NAME: ClassVar[str] = "amqp:flow:list"

    next_incoming_id: int | None = field(default=None, metadata={"type": "transfer-number"})
    incoming_window: int = field(metadata={"type": "uint"})
    next_outgoing_id: int = field(metadata={"type": "transfer-number"})
    outgoing_window: int = field(metadata={"type": "uint"})
    handle: int | None = field(default=None, metadata={"type": "handle"})
    delivery_count: int | None = field(default=None, metadata={"type": "sequence-no"})
    link_credit: int | None = field(default=None, metadata={"type": "uint"})
    available: int | None = field(default=None, metadata={"type": "uint"})
    drain: bool = field(default=False, metadata={"type": "boolean"})
    echo: bool = field(default=False, metadata={"type": "boolean"})
    properties: dict[Any, Any] | None = field(default=None, metadata={"type": "fields"})


@dataclass(slots=True, kw_only=True)
class Transfer(Composite):
    """The type transfer of the part transport; provides frame."""

    CODE: ClassVar[int] = 0x14
    NAME: ClassVar[str] = "amqp:transfer:list"

    handle: int = field(metadata={"type": "handle"})
    delivery_id: int | None = field(default=None, metadata={"type": "delivery-number"})
    delivery_tag: bytes | None = field(default=None, metadata={"type": "delivery-tag"})
    message_format: int | None = field(default=None, metadata={"type": "message-format"})
    settled: bool | None = field(default=None, metadata={"type": "boolean"})
    more: bool = field(default=False, metadata={"type": "boolean"})
    rcv_settle_mode: int | None = field(default=None, metadata={"type": "receiver-settle-mode"})
    state: DeliveryState | None = field(default=None, metadata={"type": "*", "requires": "delivery-state"})
    resume: bool = field(default=False, metadata={"type": "boolean"})
    aborted: bool = field(default=False, metadata={"type": "boolean"})
    batchable: bool = field(default=False, metadata={"type": "boolean"})


@dataclass(slots=True, kw_only=True)
class Disposition(Composite):
    """The type disposition of the part transport; provides frame."""

    CODE: ClassVar[int] = 0x15
    NAME: ClassVar[str] = "amqp:disposition:list"

    role: bool = field(metadata={"type": "role"})
    first: int = field(metadata={"type": "delivery-number"})
    last: int | None = field(default=None, metadata={"type": "delivery-number"})
    settled: bool = field(default=False, metadata={"type": "boolean"})
    state: DeliveryState | None = field(default=None, metadata={"type": "*", "requires": "delivery-state"})
    batchable: bool = field(default=False, metadata={"type": "boolean"})


@dataclass(slots=True, kw_only=True)
class Detach(Composite):
    """The type detach of the part transport; provides frame."""

    CODE: ClassVar[int] = 0x16
    NAME: ClassVar[str] = "amqp:detach:list"

    handle: int = field(metadata={"type": "handle"})
    closed: bool = field(default=False, metadata={"type": "boolean"})
    error: Error | None = field(default=None, metadata={"type": "error"})


@dataclass(slots=True, kw_only=True)
class End(Composite):
    """The type end of the part transport; provides frame."""

    CODE: ClassVar[int] = 0x17
    NAME: ClassVar[str] = "amqp:end:list"

    error: Error | None = field(default=None, metadata={"type": "error"})


@dataclass(slots=True, kw_only=True)
class Close(Composite):
    """The type close of the part transport; provides frame."""

    CODE: ClassVar[int] = 0x18
    NAME: ClassVar[str] = "amqp:close:list"

    error: Error | None = field(default=None, metadata={"type": "error"})


@dataclass(slots=True, kw_only=True)
class Error(Composite):
    """The type error of the part transport."""

    CODE: ClassVar[int] = 0x1D
    NAME: ClassVar[str] = "amqp:error:list"

    condition: str = field(metadata={"type": "symbol"})
    description: str | None = field(default=None, metadata={"type": "string"})
    info: dict[Any, Any] | None = field(default=None, metadata={"type": "fields"})


@dataclass(slots=True, kw_only=True)
class Header(Composite):
    """The type header of the part messaging; provides section."""

    CODE: ClassVar[int] = 0x70
    NAME: ClassVar[str] = "amqp:header:list"

    durable: bool | None = field(default=None, metadata={"type": "boolean"})
    priority: int | None = field(default=None, metadata={"type": "ubyte"})
    ttl: int | None = field(default=None, metadata={"type": "milliseconds"})
    first_acquirer: bool | None = field(default=None, metadata={"type": "boolean"})
    delivery_count: int | None = field(default=None, metadata={"type": "uint"})


@dataclass(slots=True, kw_only=True)
class Properties(Composite):
    """The type properties of the part messaging; provides section."""

    CODE: ClassVar[int] = 0x73
    NAME: ClassVar[str] = "amqp:properties:list"

    message_id: int | UUID | bytes | str | None = field(default=None, metadata={"type": "*", "requires": "message-id"})
    user_id: bytes | None = field(default=None, metadata={"type": "binary"})
    to: str | None = field(default=None, metadata={"type": "*", "requires": "address"})
    subject: str | None = field(default=None, metadata={"type": "string"})
    reply_to: str | None = field(default=None, metadata={"type": "*", "requires": "address"})
    correlation_id: int | UUID | bytes | str | None = field(
        default=None, metadata={"type": "*", "requires": "message-id"}
    )
    content_type: str | None = field(default=None, metadata={"type": "symbol"})
    content_encoding: str | None = field(default=None, metadata={"type": "symbol"})
    absolute_expiry_time: int | None = field(default=None, metadata={"type": "timestamp"})
    creation_time: int | None = field(default=None, metadata={"type": "timestamp"})
    group_id: str | None = field(default=None, metadata={"type": "string"})
    group_sequence: int | None = field(default=None, metadata={"type": "sequence-no"})
    reply_to_group_id: str | None = field(default=None, metadata={"type": "string"})


@dataclass(slots=True, kw_only=True)
class Received(Composite):
    """The type received of the part messaging; provides delivery-state."""

    CODE: ClassVar[int] = 0x23
    NAME: ClassVar[str] = "amqp:received:list"

    section_number: int = field(metadata={"type": "uint"})
    section_offset: int = field(metadata={"type": "ulong"})


@dataclass(slots=True, kw_only=True)
class Accepted(Composite):
    """The type accepted of the part messaging; provides delivery-state, outcome."""

    CODE: ClassVar[int] = 0x24
    NAME: ClassVar[str] = "amqp:accepted:list"


@dataclass(slots=True, kw_only=True)
class Rejected(Composite):
    """The type rejected of the part messaging; provides delivery-state, outcome."""

    CODE: ClassVar[int] = 0x25
    NAME: ClassVar[str] = "amqp:rejected:list"

    error: Error | None = field(default=None, metadata={"type": "error"})


@dataclass(slots=True, kw_only=True)
class Released(Composite):
    """The type released of the part messaging; provides delivery-state, outcome."""

    CODE: ClassVar[int] = 0x26
    NAME: ClassVar[str] = "amqp:released:list"


@dataclass(slots=True, kw_only=True)
class Modified(Composite):
    """The type modified of the part messaging; provides delivery-state, outcome."""

    CODE: ClassVar[int] = 0x27
    NAME: ClassVar[str] = "amqp:modified:list"

    delivery_failed: bool | None = field(default=None, metadata={"type": "boolean"})
    undeliverable_here: bool | None = field(default=None, metadata={"type": "boolean"})
    message_annotations: dict[Any, Any] | None = field(default=None, metadata={"type": "fields"})


@dataclass(slots=True, kw_only=True)
class Source(Composite):
    """The type source of the part messaging; provides source."""

    CODE: ClassVar[int] = 0x28
    NAME: ClassVar[str] = "amqp:source:list"

    address: str | None = field(default=None, metadata={"type": "*", "requires": "address"})
    durable: int = field(default=0, metadata={"type": "terminus-durability"})
    expiry_policy: str = field(default="session-end", metadata={"type": "terminus-expiry-policy"})
    timeout: int = field(default=0, metadata={"type": "seconds"})
    dynamic: bool = field(default=False, metadata={"type": "boolean"})
    dynamic_node_properties: dict[Any, Any] | None = field(default=None, metadata={"type": "node-properties"})
    distribution_mode: str | None = field(default=None, metadata={"type": "symbol"})
    filter: dict[Any, Any] | None = field(default=None, metadata={"type": "filter-set"})
    default_outcome: Outcome | None = field(default=None, metadata={"type": "*", "requires": "outcome"})
    outcomes: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})
    capabilities: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})


@dataclass(slots=True, kw_only=True)
class Target(Composite):
    """The type target of the part messaging; provides target."""

    CODE: ClassVar[int] = 0x29
    NAME: ClassVar[str] = "amqp:target:list"

    address: str | None = field(default=None, metadata={"type": "*", "requires": "address"})
    durable: int = field(default=0, metadata={"type": "terminus-durability"})
    expiry_policy: str = field(default="session-end", metadata={"type": "terminus-expiry-policy"})
    timeout: int = field(default=0, metadata={"type": "seconds"})
    dynamic: bool = field(default=False, metadata={"type": "boolean"})
    dynamic_node_properties: dict[Any, Any] | None = field(default=None, metadata={"type": "node-properties"})
    capabilities: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})


@dataclass(slots=True, kw_only=True)
class DeleteOnClose(Composite):
    """The type delete-on-close of the part messaging; provides lifetime-policy."""

    CODE: ClassVar[int] = 0x2B
    NAME: ClassVar[str] = "amqp:delete-on-close:list"


@dataclass(slots=True, kw_only=True)
class DeleteOnNoLinks(Composite):
    """The type delete-on-no-links of the part messaging; provides lifetime-policy."""

    CODE: ClassVar[int] = 0x2C
    NAME: ClassVar[str] = "amqp:delete-on-no-links:list"


@dataclass(slots=True, kw_only=True)
class DeleteOnNoMessages(Composite):
    """The type delete-on-no-messages of the part messaging; provides lifetime-policy."""

    CODE: ClassVar[int] = 0x2D
    NAME: ClassVar[str] = "amqp:delete-on-no-messages:list"


@dataclass(slots=True, kw_only=True)
class DeleteOnNoLinksOrMessages(Composite):
    """The type delete-on-no-links-or-messages of the part messaging; provides lifetime-policy."""

    CODE: ClassVar[int] = 0x2E
    NAME: ClassVar[str] = "amqp:delete-on-no-links-or-messages:list"


@dataclass(slots=True, kw_only=True)
class SaslMechanisms(Composite):
    """The type sasl-mechanisms of the part security; provides sasl-frame."""

    CODE: ClassVar[int] = 0x40
    NAME: ClassVar[str] = "amqp:sasl-mechanisms:list"

    sasl_server_mechanisms: tuple[str, ...] = field(metadata={"type": "symbol", "multiple": True})


@dataclass(slots=True, kw_only=True)
class SaslInit(Composite):
    """The type sasl-init of the part security; provides sasl-frame."""

    CODE: ClassVar[int] = 0x41
    NAME: ClassVar[str] = "amqp:sasl-init:list"

    mechanism: str = field(metadata={"type": "symbol"})
    initial_response: bytes | None = field(default=None, metadata={"type": "binary"})
    hostname: str | None = field(default=None, metadata={"type": "string"})


@dataclass(slots=True, kw_only=True)
class SaslChallenge(Composite):
    """The type sasl-challenge of the part security; provides sasl-frame."""

    CODE: ClassVar[int] = 0x42
    NAME: ClassVar[str] = "amqp:sasl-challenge:list"

    challenge: bytes = field(metadata={"type": "binary"})


@dataclass(slots=True, kw_only=True)
class SaslResponse(Composite):
    """The type sasl-response of the part security; provides sasl-frame."""

    CODE: ClassVar[int] = 0x43
    NAME: ClassVar[str] = "amqp:sasl-response:list"

    response: bytes = field(metadata={"type": "binary"})


@dataclass(slots=True, kw_only=True)
class SaslOutcome(Composite):
    """The type sasl-outcome of the part security; provides sasl-frame."""

    CODE: ClassVar[int] = 0x44
    NAME: ClassVar[str] = "amqp:sasl-outcome:list"

    code: int = field(metadata={"type": "sasl-code"})
    additional_data: bytes | None = field(default=None, metadata={"type": "binary"})


@dataclass(slots=True, kw_only=True)
class Coordinator(Composite):
    """The type coordinator of the part transactions; provides target."""

    CODE: ClassVar[int] = 0x30
    NAME: ClassVar[str] = "amqp:coordinator:list"

    capabilities: tuple[str, ...] = field(default=(), metadata={"type": "symbol", "multiple": True})


@dataclass(slots=True, kw_only=True)
class Declare(Composite):
    """The type declare of the part transactions."""

    CODE: ClassVar[int] = 0x31
    NAME: ClassVar[str] = "amqp:declare:list"

    global_id: Any = field(default=None, metadata={"type": "*", "requires": "global-tx-id"})


@dataclass(slots=True, kw_only=True)
class Discharge(Composite):
    """The type discharge of the part transactions."""

    CODE: ClassVar[int] = 0x32
    NAME: ClassVar[str] = "amqp:discharge:list"

    txn_id: bytes = field(metadata={"type": "*", "requires": "txn-id"})
    fail: bool | None = field(default=None, metadata={"type": "boolean"})


@dataclass(slots=True, kw_only=True)
class Declared(Composite):
    """The type declared of the part transactions; provides delivery-state, outcome."""

    CODE: ClassVar[int] = 0x33
    NAME: ClassVar[str] = "amqp:declared:list"

    txn_id: bytes = field(metadata={"type": "*", "requires": "txn-id"})


@dataclass(slots=True, kw_only=True)
class TransactionalState(Composite):
    """The type transactional-state of the part transactions; provides delivery-state."""

    CODE: ClassVar[int] = 0x34
    NAME: ClassVar[str] = "amqp:transactional-state:list"

    txn_id: bytes = field(metadata={"type": "*", "requires": "txn-id"})
    outcome: Outcome | None = field(default=None, metadata={"type": "*", "requires": "outcome"})


DeliveryState: TypeAlias = Received | Accepted | Rejected | Released | Modified | Declared | TransactionalState
"""The types that provide the archetype delivery-state."""

Outcome: TypeAlias = Accepted | Rejected | Released | Modified | Declared
"""The types that provide the archetype outcome."""

COMPOSITES: Final[dict[int, type[Composite]]] = {
    0x10: Open,
    0x11: Begin,
    0x12: Attach,
    0x13: Flow,
    0x14: Transfer,
    0x15: Disposition,
    0x16: Detach,
    0x17: End,
    0x18: Close,
    0x1D: Error,
    0x70: Header,
    0x73: Properties,
    0x23: Received,
    0x24: Accepted,
    0x25: Rejected,
    0x26: Released,
    0x27: Modified,
    0x28: Source,
    0x29: Target,
    0x2B: DeleteOnClose,
    0x2C: DeleteOnNoLinks,
    0x2D: DeleteOnNoMessages,
    0x2E: DeleteOnNoLinksOrMessages,
    0x40: SaslMechanisms,
    0x41: SaslInit,
    0x42: SaslChallenge,
    0x43: SaslResponse,
    0x44: SaslOutcome,
    0x30: Coordinator,
    0x31: Declare,
    0x32: Discharge,
    0x33: Declared,
    0x34: TransactionalState,
}
"""Code of a descriptor -> class."""
