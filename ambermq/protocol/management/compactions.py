"""Compactions at the `$management` node: requests of type `org.ambermq.compaction` become commands.

Rule 1. A request names a job. The directory of the job is below the directory of the log.
Rule 2. The engine checks what the directory contains (engine/compaction: commit.py, historical_snapshot.py).
Rule 3. The answer to COMMIT leaves when the new horizon of the log is durable.
Rule 4. The answer to NAME leaves when the job's snapshot of the past is a snapshot of the log.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ambermq.engine.commands import Command, CommitCompaction, NameSnapshot
from ambermq.engine.errors import Refused
from ambermq.protocol.management.request_fields import name_property, refuse_unknown

__all__ = ["COMPACTION_OPERATIONS", "COMPACTION_TYPE"]

COMPACTION_TYPE: Final = "org.ambermq.compaction"
_NOUN: Final = "compaction"
_NAME_MAX: Final = 255


class _Request(Protocol):
    """The request, which is the key of its command."""

    status: int


def _commit(request: _Request, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN)
    return CommitCompaction(request, name_property(properties, _NOUN))


def _name(request: _Request, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN, "snapshot")
    name = body.get("snapshot")
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_MAX:
        raise Refused("amqp:invalid-field", f"'snapshot' must be the name of a snapshot, found {name!r:.80}")
    request.status = 201
    return NameSnapshot(request, name_property(properties, _NOUN), name)


COMPACTION_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "COMMIT": _commit,
    "NAME": _name,
}
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
