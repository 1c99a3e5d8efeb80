"""The codec of an event that is one record, and whose fields are columns: it is derived from the event's `Layout`.

Events with a codec of their own are those of the hot path, which is measured, and those that a column does not hold.
"""

from collections.abc import Callable
from typing import Any

from ambermq.engine.events.event_type import EventType, Layout, Read, Write
from ambermq.engine.events.record_draft import RecordDraft

__all__ = ["reader_of", "writer_of"]

_COLUMNS = {"queue": 4, "ref": 5, "count": 7, "aux": 8}
"""Where the columns that hold fields stand in what `RECORD` unpacks."""


def writer_of(one: EventType) -> Write:
    """Return what adds an event of this type to a draft."""
    return one.write or _column_writer(one.number, one.layout, one.meta or _no_meta)


def reader_of(one: EventType) -> Read:
    """Return what makes an event of this type of a record."""
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
    where = {_field(layout, column): at for column, at in _COLUMNS.items()}
    columns = [where[name] for name in event.__struct_fields__[2:]]

    def read(offset: int, time_us: int, row: tuple[int, ...], _meta: bytes) -> Any:
        return event(offset, time_us, *[row[at] for at in columns])

    return read


def _field(layout: Layout, column: str) -> str:
    """Return the field that a column holds, empty for none."""
    return str(getattr(layout, column)).partition(":")[0]


def _no_meta(_event: Any) -> bytes:
    return b""
