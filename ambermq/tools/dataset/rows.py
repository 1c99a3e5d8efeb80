"""Records as rows: which messages each event is about, for thousands of batches' records at once. Pure, by numpy.

    batches   heads of the log, one after the other             Gathering.add
    records   their columns as arrays, offsets and times whole  Gathering.take -> Records
    rows      a record about n messages is n rows               rows_of -> Rows

Rule: nothing is done a record or a row; what differs by type is a mask over all rows. The bar is millions a second.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ambermq.engine.events import Acquired, Chunked, Damaged, Published, QueueDeclared
from ambermq.engine.events.event_type import IndexKeys, LinkColumn
from ambermq.engine.events.messages import FANOUT, LARGE
from ambermq.engine.events.registry import NUMBERS, REGISTRY
from ambermq.engine.model.entry_word import WORD_BYTES
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
"""As log/format/record.py draws it."""


@dataclass(slots=True)
class Records:
    """The records of some batches; arrays have an entry for each."""

    columns: Any
    """As they lie on the disk: a structured array of `_RECORD`."""
    offset: Longs
    """Absolute."""
    time_us: Longs
    """Absolute."""
    meta: bytes
    """All metas, one after the other."""
    meta_start: Longs
    """Where each one's begins."""
    bodies: bytes
    """All bodies; empty where they were not asked for."""
    body_start: Longs
    """Where each one's begins."""
    is_readable: Flags
    """Whether its body is what was written."""

    def meta_of(self, index: int) -> bytes:
        """Return one record's meta."""
        start = int(self.meta_start[index])
        return self.meta[start : start + int(self.columns["meta_length"][index])]

    def body_of(self, index: int) -> bytes:
        """Return one record's body."""
        start = int(self.body_start[index])
        return self.bodies[start : start + int(self.columns["body_length"][index])]


class RowBuilder:
    """Batches on their way to become arrays."""

    def __init__(self) -> None:
        self.count = 0
        """Records so far."""
        self.bytes = 0
        """Bytes of metas and bodies so far."""
        self._headers: list[BatchHeader] = []
        self._records: list[Buffer] = []
        self._metas: list[Buffer] = []
        self._bodies: list[bytes] = []
        self._readable: list[bool] = []

    def add(
        self, header: BatchHeader, records: Buffer, meta: Buffer, bodies: bytes | None, *, is_readable: bool
    ) -> None:
        """Take a batch; `bodies` is None where they are not wanted."""
        self.count += header.count
        self.bytes += len(meta) + len(bodies or b"")
        self._headers.append(header)
        self._records.append(records)
        self._metas.append(meta)
        self._bodies.append(bodies or b"")
        self._readable.append(is_readable)

    def take(self) -> Records:
        """Return the records of all batches taken, and be empty."""
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
    """Rows; arrays have an entry for each."""

    index: Longs
    """Of the row's record."""
    type: npt.NDArray[np.uint8]
    """Of the record."""
    queue: Longs
    """Its id, 0 for none."""
    link: Longs
    """The id of the producer or consumer, 0 for none."""
    message: Longs
    """The message's offset, -1 for none."""
    size: Longs
    """Bytes, -1 for none."""

    def where(self, kept: Flags | slice) -> "Rows":
        """Return some of them."""
        return Rows(*(getattr(self, name)[kept] for name in self.__slots__))


def rows_of(records: Records, kept: Longs | None, *, with_messages: bool = True) -> Rows:
    """Return the rows of the records at these indexes, in their order; None is all of them.

    Message and size of each are left out unless `with_messages`, and the links of what was dealt to several at once.
    """
    columns = records.columns if kept is None else records.columns[kept]
    index = np.arange(len(columns)) if kept is None else kept
    # Fields of records lie 48 bytes apart: what is looked at more than once is copied together.
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
    """Return which row of its record each row is."""
    return np.arange(int(times.sum())) - np.repeat(_starts(times), times)


def _row_counts(columns: Any, kind: Any, flags: Any) -> Longs:
    """Return how many rows each record is."""
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
    """Return the queues of each fanned out message: what its meta holds besides the pieces."""
    pieces = np.where(columns["flags"] & LARGE > 0, columns["aux"].astype(np.int64) * WORD_BYTES + 2, 0)
    counts: Longs = (columns["meta_length"] - pieces) // WORD_BYTES
    return counts


def _plain_links(columns: Any, kind: Any, offset: Longs) -> Longs:
    """Return the link of each record that has one."""
    by_reference, itself = np.isin(kind, _WITH_LINK), np.isin(kind, _LINKS)
    links: Longs = np.where(by_reference, columns["ref"], np.where(itself, offset, 0))
    return links


def _fill_published(records: Records, rows: Rows, body_length: Longs, within: Longs) -> None:
    """Set message, size and queue of messages published, and the size of pieces."""
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
    """Return sizes by their 16-bit codes; see engine/model/entry_word.py."""
    sizes: Longs = (codes & 0x7FF) << (codes >> 11 & 31)
    return sizes


def words_at(meta: bytes, positions: Longs) -> Longs:
    """Return the 64-bit words at these positions, which need not be aligned."""
    words = np.empty(len(positions), np.int64)
    for shift in range(WORD_BYTES):
        chosen = positions % WORD_BYTES == shift
        if chosen.any():
            view = np.frombuffer(meta, "<i8", count=(len(meta) - shift) // WORD_BYTES, offset=shift)
            words[chosen] = view[positions[chosen] // WORD_BYTES]
    return words


def _starts(lengths: Any) -> Longs:
    """Return where each of the parts begins that lie one after the other."""
    starts: Longs = np.cumsum(lengths, dtype=np.int64) - lengths
    return starts
