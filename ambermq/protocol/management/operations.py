"""The operations of `$management`: those of each type, and those of the node itself.

Rule 1. GET-TYPES, GET-ATTRIBUTES and GET-OPERATIONS answer with a map of all types, or of the type `entityType`. They
        need no engine.
Rule 2. A type whose objects never change refuses UPDATE. The refusal says what a client does instead.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ambermq.engine.commands import Command
from ambermq.engine.errors import Refused
from ambermq.protocol.management.access.rules import RULE_ATTRIBUTES, RULE_OPERATIONS, RULE_TYPE, RuleCommand
from ambermq.protocol.management.access.users import USER_ATTRIBUTES, USER_OPERATIONS, USER_TYPE, UserCommand
from ambermq.protocol.management.administration.configuration import (
    CONFIG_ATTRIBUTES,
    CONFIG_OPERATIONS,
    CONFIG_TYPE,
    ConfigCommand,
)
from ambermq.protocol.management.attachments import ATTACHMENT_ATTRIBUTES, ATTACHMENT_OPERATIONS, ATTACHMENT_TYPE
from ambermq.protocol.management.broker import BROKER_ATTRIBUTES, BROKER_OPERATIONS, BROKER_TYPE, GET_LIMITS, limits
from ambermq.protocol.management.compactions import COMPACTION_OPERATIONS, COMPACTION_TYPE
from ambermq.protocol.management.messages.locks import LOCK_OPERATIONS
from ambermq.protocol.management.messages.operations import MESSAGE_OPERATIONS
from ambermq.protocol.management.muxers import MUXER_ATTRIBUTES, MUXER_OPERATIONS, MUXER_TYPE
from ambermq.protocol.management.peers.operations import (
    CONNECTION_OPERATIONS,
    CONNECTION_TYPE,
    LINK_OPERATIONS,
    LINK_TYPE,
    SESSION_OPERATIONS,
    SESSION_TYPE,
)
from ambermq.protocol.management.peers.rows import CONNECTION_ATTRIBUTES, LINK_ATTRIBUTES, SESSION_ATTRIBUTES
from ambermq.protocol.management.queues import QUEUE_ATTRIBUTES, QUEUE_OPERATIONS, QUEUE_TYPE
from ambermq.protocol.management.routes import ROUTE, route
from ambermq.protocol.management.snapshots import SNAPSHOT_ATTRIBUTES, SNAPSHOT_OPERATIONS, SNAPSHOT_TYPE
from ambermq.protocol.management.subscriptions import (
    SUBSCRIPTION_ATTRIBUTES,
    SUBSCRIPTION_OPERATIONS,
    SUBSCRIPTION_TYPE,
)
from ambermq.protocol.management.templates import TEMPLATE_ATTRIBUTES, TEMPLATE_OPERATIONS, TEMPLATE_TYPE
from ambermq.protocol.management.vhosts import VHOST_ATTRIBUTES, VHOST_OPERATIONS, VHOST_TYPE, VhostCommand

__all__ = ["KINDS", "NODE_TYPE", "Operation", "describe", "noun_of", "operation_of"]

Operation = Callable[
    [Any, Mapping[str, Any], Mapping[str, Any], int], Command | ConfigCommand | UserCommand | RuleCommand | VhostCommand
]
"""Request, application properties, body, and the most rows of a page -> the command of the request."""

NODE_TYPE: Final = "org.amqp.management"
"""The type of the node itself."""
_UPDATE: Final = "UPDATE"
_NODE_OPERATIONS: Final[Mapping[str, Operation]] = {ROUTE: route, GET_LIMITS: limits}
"""The operations that belong to no type."""


class _Kind(NamedTuple):
    attributes: tuple[str, ...]
    operations: Mapping[str, Operation]
    replacement: str = ""
    """What a client does instead of an UPDATE, if the objects never change; a sentence without a full stop."""


KINDS: Final[Mapping[str, _Kind]] = {
    QUEUE_TYPE: _Kind(QUEUE_ATTRIBUTES, {**QUEUE_OPERATIONS, **MESSAGE_OPERATIONS, **LOCK_OPERATIONS}),
    MUXER_TYPE: _Kind(MUXER_ATTRIBUTES, MUXER_OPERATIONS),
    ATTACHMENT_TYPE: _Kind(
        ATTACHMENT_ATTRIBUTES,
        ATTACHMENT_OPERATIONS,
        "an attachment never changes: create another one, then delete this one",
    ),
    SUBSCRIPTION_TYPE: _Kind(
        SUBSCRIPTION_ATTRIBUTES,
        SUBSCRIPTION_OPERATIONS,
        "the attach of its receiver defines it: attach again with other terms; "
        "its queue is updated by the address /queues/NAME",
    ),
    TEMPLATE_TYPE: _Kind(
        TEMPLATE_ATTRIBUTES,
        TEMPLATE_OPERATIONS,
        "templates belong to the broker's configuration: change them there and run `ambermq config reload`",
    ),
    SNAPSHOT_TYPE: _Kind(SNAPSHOT_ATTRIBUTES, SNAPSHOT_OPERATIONS, "a snapshot is of one moment: create another one"),
    COMPACTION_TYPE: _Kind(
        (), COMPACTION_OPERATIONS, "the job of a compaction never changes: commit it, or begin another one"
    ),
    VHOST_TYPE: _Kind(
        VHOST_ATTRIBUTES,
        VHOST_OPERATIONS,
        "a virtual host keeps its mode: create another one with the same wiring",
    ),
    USER_TYPE: _Kind(USER_ATTRIBUTES, USER_OPERATIONS),
    RULE_TYPE: _Kind(
        RULE_ATTRIBUTES, RULE_OPERATIONS, "a rule never changes: create another one, then delete this one"
    ),
    BROKER_TYPE: _Kind(
        BROKER_ATTRIBUTES,
        BROKER_OPERATIONS,
        "its attributes are figures: change the configuration and start the broker again",
    ),
    CONFIG_TYPE: _Kind(
        CONFIG_ATTRIBUTES,
        CONFIG_OPERATIONS,
        "the configuration comes from its file: change it there and use RELOAD",
    ),
    CONNECTION_TYPE: _Kind(
        CONNECTION_ATTRIBUTES,
        CONNECTION_OPERATIONS,
        "its client opens it: close it, and the client opens another one",
    ),
    SESSION_TYPE: _Kind(SESSION_ATTRIBUTES, SESSION_OPERATIONS, "its client begins it"),
    LINK_TYPE: _Kind(LINK_ATTRIBUTES, LINK_OPERATIONS, "the attach of its client defines it"),
}
"""Type to its attributes and operations."""


def _types(_kind: _Kind) -> list[str]:
    return []


def _attributes(kind: _Kind) -> list[str]:
    return list(kind.attributes)


def _operations(kind: _Kind) -> list[str]:
    return sorted(kind.operations)


_DESCRIPTIONS: Final[Mapping[str, Callable[[_Kind], list[str]]]] = {
    "GET-TYPES": _types,
    "GET-ATTRIBUTES": _attributes,
    "GET-OPERATIONS": _operations,
}


def describe(operation: str, properties: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the node's description of its types; None if the operation is not one of the three. Raises Refused."""
    description = _DESCRIPTIONS.get(operation)
    if description is None:
        return None
    entity_type = properties.get("entityType")
    kinds = KINDS if entity_type is None else {str(entity_type): _kind_of(entity_type)}
    answer = {name: description(kind) for name, kind in kinds.items()}
    if entity_type is None and operation == "GET-OPERATIONS":
        answer[NODE_TYPE] = _operations_of_node()
    return answer


def operation_of(operation: str, kind: Any) -> Operation:
    """Return the function that makes the command of an operation on a type.

    Raises Refused: amqp:not-implemented for an unknown operation, amqp:invalid-field for an unknown type.
    """
    if operation in _NODE_OPERATIONS:
        return _NODE_OPERATIONS[operation]
    if kind == NODE_TYPE:
        known = ", ".join(_operations_of_node())
        expected = f"expected {known}"
        raise Refused("amqp:not-implemented", f"unknown operation {operation!r:.80} of the node itself: {expected}")
    is_known = isinstance(kind, str) and kind in KINDS
    operations = KINDS[kind].operations if is_known else KINDS[QUEUE_TYPE].operations
    function = operations.get(operation)
    if function is None:
        known = ", ".join(sorted(operations))
        if operation == _UPDATE and is_known:
            raise Refused("amqp:not-implemented", f"a {noun_of(kind)} cannot be updated: {KINDS[kind].replacement}")
        raise Refused("amqp:not-implemented", f"unknown operation {operation!r:.80}: expected {known}")
    _kind_of(kind)
    return function


def _operations_of_node() -> list[str]:
    return sorted((*_DESCRIPTIONS, *_NODE_OPERATIONS))


def noun_of(kind: Any) -> str:
    """Return the last word of a type, as a sentence names it."""
    return str(kind).rpartition(".")[2]


def _short(kind: Any) -> str:
    """Return a type as a refusal repeats it. A value that is not text may be large or deep: only its class is named."""
    return f"{kind!r:.80}" if isinstance(kind, str) else f"of {type(kind).__name__}"


def _kind_of(kind: Any) -> _Kind:
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused("amqp:invalid-field", f"unknown type {_short(kind)}: expected {', '.join(KINDS)}")
    return KINDS[kind]
