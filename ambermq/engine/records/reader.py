"""Decode log records into events. The module of each event in engine/events defines its record and decodes it.

Rule: a record of an unknown type is an error, unless it is flagged SKIPPABLE. Numbers never change their meaning.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ambermq.engine.errors import EngineError
from ambermq.engine.events import Event, Published
from ambermq.engine.events.column_codec import reader_of
from ambermq.engine.events.event_type import Read
from ambermq.engine.events.messages.fan_out import FANOUT
from ambermq.engine.events.messages.published import LARGE, published_run
from ambermq.engine.events.registry import NUMBERS, REGISTRY, SKIPPABLE
from ambermq.engine.records.alike_rows import alike_sizes
from ambermq.log.format.batch import Batch
from ambermq.log.format.record import RECORD

__all__ = ["events_of"]

_READ: Final[Mapping[int, Read]] = {one.number: reader_of(one) for one in REGISTRY}
_PUBLISHED: Final = NUMBERS[Published]
_LONG: Final = 32
"""A run that has this length is read on by columns."""

Row = tuple[int, ...]
"""The columns of a record, in the order of RECORD."""


def events_of(batch: Batch) -> Iterator[Event]:
    """Yield the events of a batch in order; runs of alike messages are joined.

    Raises EngineError for a record of an unknown type that is not flagged skippable.
    """
    header = batch.header
    base, base_time = header.base_offset, header.base_timestamp_us
    meta, position = batch.meta, 0
    for row, sizes in _joined(batch.records):
        if sizes:
            yield published_run(base + row[0], base_time, (row[4], row[5], row[6], row[10]), sizes)
            continue
        end = position + row[2]
        read = _READ.get(row[9])
        if read is not None:
            yield read(base + row[0], base_time + row[6], row, bytes(meta[position:end]))
        elif not row[10] & SKIPPABLE:
            raise EngineError(
                f"record {base + row[0]} has the unknown type {row[9]}: open this log with a newer version"
            )
        position = end


def _joined(records: bytes) -> Iterator[tuple[Row, list[int]]]:
    """Yield each row, without sizes; of a run of alike messages at consecutive offsets the first row, with all sizes.

    This is the hot loop of recovery: no object is made for a message, and a long run is not read row by row.
    """
    head: Row = ()
    like, sizes = None, list[int]()
    index, count, probe = 0, len(records) // RECORD.size, _LONG
    while index < count:
        for row in RECORD.iter_unpack(memoryview(records)[index * RECORD.size :]):
            index += 1
            if row[9] == _PUBLISHED and not row[10] & (LARGE | FANOUT):
                alike = (row[4], row[5], row[6], row[10])
                if alike == like and row[0] == head[0] + len(sizes):
                    sizes.append(row[1])
                    if len(sizes) >= probe:
                        break
                    continue
                if sizes:
                    yield head, sizes
                head, like, sizes, probe = row, alike, [row[1]], _LONG
                continue
            if sizes:
                yield head, sizes
                like, sizes = None, []
            yield row, sizes
        else:
            break
        rest = alike_sizes(records, index - 1)
        sizes += rest
        index += len(rest)
        probe = 2 * len(sizes)
    if sizes:
        yield head, sizes
