"""What `$management` can be asked: each type with its operations, and what the node tells of itself.

Rule 1. GET-TYPES, GET-ATTRIBUTES and GET-OPERATIONS answer with a map of types, all of them or the `entityType` asked
        for; they need no engine.
Rule 2. UPDATE is known for every type: where what there is never changes, the refusal says what is done instead.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ambermq.engine.commands import Command
from ambermq.engine.errors import Refused
from ambermq.protocol.management.attachments import ATTACHMENT_ATTRIBUTES, ATTACHMENT_OPERATIONS, ATTACHMENT_TYPE
from ambermq.protocol.management.compactions import COMPACTION_OPERATIONS, COMPACTION_TYPE
from ambermq.protocol.management.limits import GET_LIMITS, limits
from ambermq.protocol.management.muxers import MUXER_ATTRIBUTES, MUXER_OPERATIONS, MUXER_TYPE
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

Operation = Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command | VhostCommand]
"""Request, application properties, body, and the most results of a page -> what the request becomes."""

NODE_TYPE: Final = "org.amqp.management"
"""The node itself."""
_UPDATE: Final = "UPDATE"
_OF_NODE: Final[Mapping[str, Operation]] = {ROUTE: route, GET_LIMITS: limits}
"""Operations that are about no type."""


class _Kind(NamedTuple):
    attributes: tuple[str, ...]
    operations: Mapping[str, Operation]
    replacement: str = ""
    """What one does instead of an UPDATE, where what there is never changes; a sentence without its end."""


KINDS: Final[Mapping[str, _Kind]] = {
    QUEUE_TYPE: _Kind(QUEUE_ATTRIBUTES, QUEUE_OPERATIONS),
    MUXER_TYPE: _Kind(MUXER_ATTRIBUTES, MUXER_OPERATIONS),
    ATTACHMENT_TYPE: _Kind(
        ATTACHMENT_ATTRIBUTES,
        ATTACHMENT_OPERATIONS,
        "an attachment is what it says: make the other one, then delete this one",
    ),
    SUBSCRIPTION_TYPE: _Kind(
        SUBSCRIPTION_ATTRIBUTES,
        SUBSCRIPTION_OPERATIONS,
        "a subscription is what its receiver asks for: attach it again asking for something else; "
        "its queue is updated by the address /queues/NAME",
    ),
    TEMPLATE_TYPE: _Kind(
        TEMPLATE_ATTRIBUTES,
        TEMPLATE_OPERATIONS,
        "templates are those of the broker's configuration: change them there and start it again",
    ),
    SNAPSHOT_TYPE: _Kind(SNAPSHOT_ATTRIBUTES, SNAPSHOT_OPERATIONS, "a snapshot is of one moment: make another one"),
    COMPACTION_TYPE: _Kind(
        (), COMPACTION_OPERATIONS, "a compaction's job does not change: commit it, or begin another one"
    ),
    VHOST_TYPE: _Kind(
        VHOST_ATTRIBUTES,
        VHOST_OPERATIONS,
        "a virtual host has the mode that it was made with: make another one and wire it alike",
    ),
}
"""Type to what it is asked by."""


def _types(_kind: _Kind) -> list[str]:
    return []


def _attributes(kind: _Kind) -> list[str]:
    return list(kind.attributes)


def _operations(kind: _Kind) -> list[str]:
    return sorted(kind.operations)


_TELLS: Final[Mapping[str, Callable[[_Kind], list[str]]]] = {
    "GET-TYPES": _types,
    "GET-ATTRIBUTES": _attributes,
    "GET-OPERATIONS": _operations,
}


def describe(operation: str, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the node tells of itself, by type; None where that was not asked. Raises Refused."""
    tell = _TELLS.get(operation)
    if tell is None:
        return None
    wanted = asked.get("entityType")
    kinds = KINDS if wanted is None else {str(wanted): _kind_of(wanted)}
    told = {name: tell(kind) for name, kind in kinds.items()}
    if wanted is None and operation == "GET-OPERATIONS":
        told[NODE_TYPE] = _operations_of_node()
    return told


def operation_of(operation: str, kind: Any) -> Operation:
    """Return what makes the command of an operation on a type.

    Raises Refused: amqp:not-implemented for an operation that there is not, amqp:invalid-field for a type.
    """
    if operation in _OF_NODE:
        return _OF_NODE[operation]
    if kind == NODE_TYPE:
        known = ", ".join(_operations_of_node())
        raise Refused("amqp:not-implemented", f"unknown operation {operation!r:.80} of the node itself: {known}")
    is_known = isinstance(kind, str) and kind in KINDS
    operations = KINDS[kind].operations if is_known else KINDS[QUEUE_TYPE].operations
    made = operations.get(operation)
    if made is None:
        known = ", ".join(sorted(operations))
        if operation == _UPDATE and is_known:
            raise Refused("amqp:not-implemented", f"no {noun_of(kind)} is updated: {KINDS[kind].replacement}")
        raise Refused("amqp:not-implemented", f"unknown operation {operation!r:.80}: {known}")
    _kind_of(kind)
    return made


def _operations_of_node() -> list[str]:
    return sorted((*_TELLS, *_OF_NODE))


def noun_of(kind: Any) -> str:
    """Return what a person calls a type."""
    return str(kind).rpartition(".")[2]


def _short(kind: Any) -> str:
    """Return what was asked for as a refusal repeats it; only a text is, for others may be large or deep."""
    return f"{kind!r:.80}" if isinstance(kind, str) else f"of {type(kind).__name__}"


def _kind_of(kind: Any) -> _Kind:
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused("amqp:invalid-field", f"unknown type {_short(kind)}: {', '.join(KINDS)}")
    return KINDS[kind]
