"""The codec of an event that is one record whose columns hold all fields. It is derived from the event's `Layout`.

The user `by` is in the meta. Other events have a codec of their own: those on the measured hot path, and those with
fields that no column can hold.
"""

from collections.abc import Callable
from typing import Any

from ambermq.engine.events.event_type import EventType, Layout, Read, Write
from ambermq.engine.events.record_draft import RecordDraft
from ambermq.engine.events.user_meta import read_by

__all__ = ["reader_of", "writer_of"]

_COLUMNS = {"queue": 4, "ref": 5, "count": 7, "aux": 8}
"""The positions of the columns that hold fields, in the tuple that `RECORD` unpacks."""


def writer_of(one: EventType) -> Write:
    """Return the function that adds an event of this type to a draft."""
    return one.write or _column_writer(one.number, one.layout, one.meta or _no_meta)


def reader_of(one: EventType) -> Read:
    """Return the function that decodes a record into an event of this type."""
    return one.read or _column_reader(one.event, one.layout)


def _column_writer(number: int, layout: Layout, meta: Callable[[Any], bytes]) -> Write:
    queue, ref, count, aux = (_field(layout, column) for column in _COLUMNS)
    body = _field(layout, "body")

    def write(draft: RecordDraft, event: Any, /) -> int:
        return draft.add(
            number,
            timestamp_us=event.time_us,
            queue=getattr(event, queue) if queue else 0,
            ref=getattr(event, ref) if ref else 0,
            count=getattr(event, count) if count else 0,
            aux=getattr(event, aux) if aux else 0,
            meta=meta(event),
            body=getattr(event, body) if body else b"",
        )

    return write


def _column_reader(event: type[Any], layout: Layout) -> Read:
    positions = {_field(layout, column): position for column, position in _COLUMNS.items()}
    names = event.__struct_fields__[2:]
    columns = [positions[name] for name in names if name != "by"]
    has_user = "by" in names

    def read(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Any:
        values = [row[position] for position in columns]
        return event(offset, time_us, *values, read_by(meta)) if has_user else event(offset, time_us, *values)

    return read


def _field(layout: Layout, column: str) -> str:
    """Return the name of the field that a column holds; it is empty if the column is."""
    return str(getattr(layout, column)).partition(":")[0]


def _no_meta(_event: Any) -> bytes:
    return b""
