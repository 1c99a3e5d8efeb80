"""The snapshots in the broker's `$management` node: what requests of type `org.ambermq.snapshot` become.

Rule 1. CREATE is answered when the snapshot is there for good, with `wait` false when it is taken. With `seal` true the
log goes on in its next segment, so that what lies below the snapshot is whole segments.
Rule 2. Attributes are those that the engine tells (engine/snapshots/snapshotter.py); here they are only laid out.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from ambermq.engine.commands import Command, DeleteSnapshot, InspectSnapshots, TakeSnapshot
from ambermq.protocol.management.request_fields import asked_flag, asked_name, asked_number, refuse_unknown

__all__ = ["SNAPSHOT_ATTRIBUTES", "SNAPSHOT_OPERATIONS", "SNAPSHOT_TYPE"]

SNAPSHOT_TYPE: Final = "org.ambermq.snapshot"
_NOUN: Final = "snapshot"
SNAPSHOT_ATTRIBUTES: Final = ("name", "end", "time_us", "created_us", "bytes", "is_automatic")

Rows = Sequence[Mapping[str, Any]]


class _Request(Protocol):
    """What is the key of a command: the request under way."""

    status: int


def _create(request: _Request, asked: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN, "wait", "seal")
    waits, seals = asked_flag(body, "wait", default=True), asked_flag(body, "seal")
    request.status = 201
    # Without a name the broker finds one: that is said by leaving it out, not by an empty one.
    return TakeSnapshot(request, asked_name(asked, _NOUN) if "name" in asked else "", waits, seals)


def _read(request: _Request, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return InspectSnapshots(request, partial(_named, asked_name(asked, _NOUN)))


def _named(name: str, rows: Rows, _room: int) -> dict[str, Any] | None:
    return next((dict(row) for row in rows if row["name"] == name), None)


def _delete(request: _Request, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    return DeleteSnapshot(request, asked_name(asked, _NOUN))


def _query(request: _Request, asked: Mapping[str, Any], _body: Mapping[str, Any], results_max: int) -> Command:
    offset, count = asked_number(asked, "offset", 0), asked_number(asked, "count", results_max)
    return InspectSnapshots(request, partial(_page, offset, min(count, results_max)))


def _page(offset: int, count: int, rows: Rows, room: int) -> dict[str, Any]:
    return {
        "attributeNames": list(SNAPSHOT_ATTRIBUTES),
        "results": [[row[name] for name in SNAPSHOT_ATTRIBUTES] for row in rows[offset : offset + count]],
        "total": len(rows),
        "room": room,
    }


SNAPSHOT_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "CREATE": _create,
    "READ": _read,
    "DELETE": _delete,
    "QUERY": _query,
}
"""Operation to what makes its command of request, application properties, body, and the most results of a page."""
