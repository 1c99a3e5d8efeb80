"""Snapshots at the `$management` node: requests of type `org.ambermq.snapshot` become commands.

Rule 1. The answer to CREATE leaves when the snapshot is durable. With `wait` false it leaves when the broker has taken
        the state, before the file is written.
Rule 2. With `seal` true the log continues in its next segment. Then all events below the snapshot are in sealed
        segments.
Rule 3. The engine gives the values of the attributes (engine/snapshots/snapshotter.py).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from ambermq.engine.commands import Command, DeleteSnapshot, InspectSnapshots, TakeSnapshot
from ambermq.protocol.management.request_fields import flag_field, name_property, number_field, refuse_unknown

__all__ = ["SNAPSHOT_ATTRIBUTES", "SNAPSHOT_OPERATIONS", "SNAPSHOT_TYPE"]

SNAPSHOT_TYPE: Final = "org.ambermq.snapshot"
_NOUN: Final = "snapshot"
SNAPSHOT_ATTRIBUTES: Final = ("name", "end", "time_us", "created_us", "bytes", "is_automatic")

Rows = Sequence[Mapping[str, Any]]


class _Request(Protocol):
    """The request, which is the key of its command."""

    status: int


def _create(request: _Request, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN, "wait", "seal")
    wait, seal = flag_field(body, "wait", default=True), flag_field(body, "seal")
    request.status = 201
    # The broker chooses a name if the request has none. An empty name is refused.
    return TakeSnapshot(request, name_property(properties, _NOUN) if "name" in properties else "", wait, seal)


def _read(request: _Request, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return InspectSnapshots(request, partial(_named, name_property(properties, _NOUN)))


def _named(name: str, rows: Rows, _room: int) -> dict[str, Any] | None:
    return next((dict(row) for row in rows if row["name"] == name), None)


def _delete(request: _Request, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    return DeleteSnapshot(request, name_property(properties, _NOUN))


def _query(request: _Request, properties: Mapping[str, Any], _body: Mapping[str, Any], results_max: int) -> Command:
    offset, count = number_field(properties, "offset", 0), number_field(properties, "count", results_max)
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
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
