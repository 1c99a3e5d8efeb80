"""Records as rows: one row for each message of an event, for the records of thousands of batches at once. Pure, numpy.

    batches   heads of the log, one after the other               RowBuilder.add
    records   their columns as arrays, absolute offsets and times RowBuilder.take -> Records
    rows      a record about n messages is n rows                 rows_of -> Rows

Rule: no Python code runs for each record or row; differences by type are masks over all rows. The goal is millions of
rows a second.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.events import Acquired, Chunked, Damaged, Published, QueueDeclared
from ambermq.engine.events.event_type import IndexKeys, LinkColumn
from ambermq.engine.events.messages.fan_out import FANOUT
from ambermq.engine.events.messages.published import LARGE
from ambermq.engine.events.registry import NUMBERS, REGISTRY
from ambermq.log.buffer import Buffer
from ambermq.log.format.batch import BatchHeader

__all__ = ["Records", "RowBuilder", "Rows", "rows_of", "words_at"]

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_ACQUIRED: Final = NUMBERS[Acquired]
_CHUNKED: Final = NUMBERS[Chunked]
_DAMAGED: Final = NUMBERS[Damaged]
_PUBLISHED: Final = NUMBERS[Published]
_QUEUE_DECLARED: Final = NUMBERS[QueueDeclared]
_WITH_WORDS: Final = tuple(one.number for one in REGISTRY if one.keys is IndexKeys.WORDS)
_WITH_LINK: Final = tuple(one.number for one in REGISTRY if one.link is LinkColumn.REF)
_LINKS: Final = tuple(one.number for one in REGISTRY if one.link is LinkColumn.OFFSET)

_RECORD: Final = np.dtype(
    [
        ("offset_delta", "<u4"),
        ("body_length", "<u4"),
        ("meta_length", "<u4"),
        ("id_hash", "<u4"),
        ("queue", "<i8"),
        ("ref", "<i8"),
        ("time_delta", "<i8"),
        ("count", "<u4"),
        ("aux", "<u2"),
        ("type", "u1"),
        ("flags", "u1"),
    ]
)
"""The layout of a record, as in log/format/record.py."""


@dataclass(slots=True)
class Records:
    """The records of some batches; each array has an entry for each record."""

    columns: Any
    """The columns as on the disk: a structured array of `_RECORD`."""
    offset: Longs
    """Absolute offsets."""
    time_us: Longs
    """Absolute times."""
    meta: bytes
    """All metas, one after the other."""
    meta_start: Longs
    """The position of each record's meta."""
    bodies: bytes
    """All bodies, one after the other; empty if they were not requested."""
    body_start: Longs
    """The position of each record's body."""
    is_readable: Flags
    """Whether the body has a right checksum."""

    def meta_of(self, index: int) -> bytes:
        """Return the meta of one record."""
        start = int(self.meta_start[index])
        return self.meta[start : start + int(self.columns["meta_length"][index])]

    def body_of(self, index: int) -> bytes:
        """Return the body of one record."""
        start = int(self.body_start[index])
        return self.bodies[start : start + int(self.columns["body_length"][index])]


class RowBuilder:
    """The batches for the next Records."""

    def __init__(self) -> None:
        self.count = 0
        """The number of records."""
        self.bytes = 0
        """The bytes of metas and bodies."""
        self._headers: list[BatchHeader] = []
        self._records: list[Buffer] = []
        self._metas: list[Buffer] = []
        self._bodies: list[bytes] = []
        self._readable: list[bool] = []

    def add(
        self, header: BatchHeader, records: Buffer, meta: Buffer, bodies: bytes | None, *, is_readable: bool
    ) -> None:
        """Add a batch; `bodies` is None if they were not requested."""
        self.count += header.count
        self.bytes += len(meta) + len(bodies or b"")
        self._headers.append(header)
        self._records.append(records)
        self._metas.append(meta)
        self._bodies.append(bodies or b"")
        self._readable.append(is_readable)

    def take(self) -> Records:
        """Return the records of all batches, and reset the builder."""
        columns = np.frombuffer(b"".join(self._records), dtype=_RECORD)
        counts = np.array([header.count for header in self._headers])
        bases = np.array([header.base_offset for header in self._headers], dtype=np.int64)
        times = np.array([header.base_timestamp_us for header in self._headers], dtype=np.int64)
        records = Records(
            columns,
            np.repeat(bases, counts) + columns["offset_delta"],
            np.repeat(times, counts) + columns["time_delta"],
            b"".join(self._metas),
            _starts(columns["meta_length"]),
            b"".join(self._bodies),
            _starts(columns["body_length"]),
            np.repeat(np.array(self._readable, dtype=np.bool_), counts),
        )
        RowBuilder.__init__(self)
        return records


@dataclass(slots=True)
class Rows:
    """Rows; each array has an entry for each row."""

    index: Longs
    """The index of the row's record."""
    type: npt.NDArray[np.uint8]
    """The type of the record."""
    queue: Longs
    """The id of the queue, 0 for none."""
    link: Longs
    """The id of the producer or consumer, 0 for none."""
    message: Longs
    """The offset of the message, -1 for none."""
    size: Longs
    """The size in bytes, -1 for none."""

    def where(self, kept: Flags | slice) -> "Rows":
        """Return the rows of a mask or a slice."""
        return Rows(*(getattr(self, name)[kept] for name in self.__slots__))


def rows_of(records: Records, kept: Longs | None, *, with_messages: bool = True) -> Rows:
    """Return the rows of the records at the indexes `kept`, in their order; None is all of them.

    Without `with_messages` the rows lack messages, sizes, and the links of an acquisition by several consumers.
    """
    columns = records.columns if kept is None else records.columns[kept]
    index = np.arange(len(columns)) if kept is None else kept
    # Fields of records lie 48 bytes apart: those that are read more than once are copied into an array.
    kind, flags = np.ascontiguousarray(columns["type"]), np.ascontiguousarray(columns["flags"])
    times = _row_counts(columns, kind, flags)
    count = int(times.sum())
    rows = Rows(
        np.repeat(index, times),
        np.repeat(kind, times),
        np.repeat(columns["queue"], times),
        np.repeat(_plain_links(columns, kind, records.offset[index]), times),
        np.full(count, -1, np.int64),
        np.full(count, -1, np.int64),
    )
    fans_out = bool((flags & FANOUT).any())
    if with_messages or fans_out:
        within = np.zeros(count, np.int64) if count == len(times) else _within(times)
        _fill_published(records, rows, np.repeat(columns["body_length"].astype(np.int64), times), within)
        if with_messages:
            _fill_named(records, rows, within)
    own = np.flatnonzero(rows.type == _QUEUE_DECLARED)
    rows.queue[own] = records.offset[rows.index[own]]
    return rows


def _within(times: Longs) -> Longs:
    """Return the number of each row within its record."""
    return np.arange(int(times.sum())) - np.repeat(_starts(times), times)


def _row_counts(columns: Any, kind: Any, flags: Any) -> Longs:
    """Return the number of rows of each record."""
    times = np.ones(len(columns), np.int64)
    names_messages = np.isin(kind, _WITH_WORDS)
    times[names_messages] = columns["count"][names_messages]
    damaged = kind == _DAMAGED
    times[damaged] = np.maximum(columns["count"][damaged], 1)
    fans_out = (kind == _PUBLISHED) & (flags & FANOUT > 0)
    if fans_out.any():
        times[fans_out] = np.maximum(_fan_count(columns[fans_out]), 1)
    return times


def _fan_count(columns: Any) -> Longs:
    """Return the number of queues of each fanned out message: the words of its meta without the pieces."""
    pieces = np.where(columns["flags"] & LARGE > 0, columns["aux"].astype(np.int64) * WORD_BYTES + 2, 0)
    counts: Longs = (columns["meta_length"] - pieces) // WORD_BYTES
    return counts


def _plain_links(columns: Any, kind: Any, offset: Longs) -> Longs:
    """Return the link of each record, 0 for none."""
    by_reference, itself = np.isin(kind, _WITH_LINK), np.isin(kind, _LINKS)
    links: Longs = np.where(by_reference, columns["ref"], np.where(itself, offset, 0))
    return links


def _fill_published(records: Records, rows: Rows, body_length: Longs, within: Longs) -> None:
    """Set message, size and queue of published messages, and the size of pieces."""
    published = rows.type == _PUBLISHED
    rows.message[published] = records.offset[rows.index[published]]
    sized = published | (rows.type == _CHUNKED)
    rows.size[sized] = body_length[sized]
    special = published & (records.columns["flags"][rows.index] & (LARGE | FANOUT) > 0)
    if not special.any():
        return
    at = np.flatnonzero(special)
    index = rows.index[at]
    columns = records.columns[index]
    large = columns["flags"] & LARGE > 0
    ends = records.meta_start[index] + columns["meta_length"]
    meta = np.frombuffer(records.meta, np.uint8)
    codes = meta[ends[large] - 2].astype(np.int64) | meta[ends[large] - 1].astype(np.int64) << 8
    rows.size[at[large]] = _sizes(codes)
    fans_out = columns["flags"] & FANOUT > 0
    some = fans_out & (_fan_count(columns) > 0)
    rows.queue[at[some]] = words_at(records.meta, records.meta_start[index[some]] + within[at[some]] * WORD_BYTES)


def _fill_named(records: Records, rows: Rows, within: Longs) -> None:
    """Set message, size and link of the messages that acquisitions, settlements and damage name."""
    at = np.flatnonzero(np.isin(rows.type, _WITH_WORDS))
    if not len(at):
        return
    index, turn = rows.index[at], within[at]
    consumers = records.columns["aux"][index].astype(np.int64)
    shared = (rows.type[at] == _ACQUIRED) & (consumers > 1)
    start = records.meta_start[index]
    words = words_at(records.meta, start + np.where(shared, consumers, 0) * WORD_BYTES + turn * WORD_BYTES)
    rows.message[at] = words.view(np.uint64) >> np.uint64(16)
    rows.size[at] = _sizes(words & 0xFFFF)
    if shared.any():
        dealt = start[shared] + turn[shared] % consumers[shared] * WORD_BYTES
        rows.link[at[shared]] = words_at(records.meta, dealt)


def _sizes(codes: Longs) -> Longs:
    """Return sizes by their 16-bit codes; see engine/entries/entry_word.py."""
    sizes: Longs = (codes & 0x7FF) << (codes >> 11 & 31)
    return sizes


def words_at(meta: bytes, positions: Longs) -> Longs:
    """Return the 64-bit words at these positions, aligned or not."""
    words = np.empty(len(positions), np.int64)
    for shift in range(WORD_BYTES):
        chosen = positions % WORD_BYTES == shift
        if chosen.any():
            view = np.frombuffer(meta, "<i8", count=(len(meta) - shift) // WORD_BYTES, offset=shift)
            words[chosen] = view[positions[chosen] // WORD_BYTES]
    return words


def _starts(lengths: Any) -> Longs:
    """Return the position of each of the parts that lie one after the other."""
    starts: Longs = np.cumsum(lengths, dtype=np.int64) - lengths
    return starts
