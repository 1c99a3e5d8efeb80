"""Compactions in the broker's `$management` node: what requests of type `org.ambermq.compaction` become.

Rule: a request names a job, whose directory lies in the log's own; what is in there is checked by the engine
(engine/compaction: commit.py, historical_snapshot.py). COMMIT is answered when the log says that history begins later
now, and that is durable; NAME when the job's snapshot of the past is one of the log's.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ambermq.engine.commands import Command, CommitCompaction, NameSnapshot
from ambermq.engine.errors import Refused
from ambermq.protocol.management.request_fields import asked_name, refuse_unknown

__all__ = ["COMPACTION_OPERATIONS", "COMPACTION_TYPE"]

COMPACTION_TYPE: Final = "org.ambermq.compaction"
_NOUN: Final = "compaction"
_NAME_MAX: Final = 255


class _Request(Protocol):
    """What is the key of a command: the request under way."""

    status: int


def _commit(request: _Request, asked: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN)
    return CommitCompaction(request, asked_name(asked, _NOUN))


def _name(request: _Request, asked: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN, "snapshot")
    name = body.get("snapshot")
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_MAX:
        raise Refused("amqp:invalid-field", f"'snapshot' must be a name, found {name!r:.80}")
    request.status = 201
    return NameSnapshot(request, asked_name(asked, _NOUN), name)


COMPACTION_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "COMMIT": _commit,
    "NAME": _name,
}
"""Operation to what makes its command of request, application properties, body, and the most results of a page."""
