"""Decode log records into events. The module of each event in engine/events defines its record and decodes it.

Rule: a record of an unknown type is an error, unless it is flagged SKIPPABLE. Numbers never change their meaning.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ambermq.engine.errors import EngineError
from ambermq.engine.events import Event, Published
from ambermq.engine.events.column_codec import reader_of
from ambermq.engine.events.event_type import Read
from ambermq.engine.events.messages import FANOUT, LARGE, published_run
from ambermq.engine.events.registry import NUMBERS, REGISTRY, SKIPPABLE
from ambermq.log.format.batch import Batch

__all__ = ["events_of"]

_READ: Final[Mapping[int, Read]] = {one.number: reader_of(one) for one in REGISTRY}
_PUBLISHED: Final = NUMBERS[Published]


def events_of(batch: Batch) -> Iterator[Event]:
    """Yield the events of a batch in order; runs of alike messages are joined.

    Raises EngineError for a record of an unknown type that is not flagged skippable.
    """
    header = batch.header
    base, base_time = header.base_offset, header.base_timestamp_us
    meta, position = batch.meta, 0
    sizes: list[int] = []
    first, like, delta = 0, None, 0
    for row in batch.rows():
        record_type = row[9]
        if record_type == _PUBLISHED and not row[10] & (LARGE | FANOUT):
            # The hot loop of recovery: alike messages at consecutive offsets become one run, without an object each.
            alike = (row[4], row[5], row[6], row[10])
            if alike == like and row[0] == delta + 1:
                sizes.append(row[1])
            else:
                if like is not None:
                    yield published_run(base + first, base_time, like, sizes)
                first, like, sizes = row[0], alike, [row[1]]
            delta = row[0]
            continue
        if like is not None:
            yield published_run(base + first, base_time, like, sizes)
            like = None
        end = position + row[2]
        read = _READ.get(record_type)
        if read is not None:
            yield read(base + row[0], base_time + row[6], row, bytes(meta[position:end]))
        elif not row[10] & SKIPPABLE:
            raise EngineError(
                f"record {base + row[0]} has the unknown type {record_type}: open this log with a newer version"
            )
        position = end
    if like is not None:
        yield published_run(base + first, base_time, like, sizes)
