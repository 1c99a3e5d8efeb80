"""The events of a segment as Arrow record batches, for the Spark source, archives and exports.

Rule 1. Heads of batches are always checked; bodies are read and checked only if a column needs them.
Rule 2. Events outside the selection are removed before columns are built; only the requested columns are built.
Rule 3. A record batch has at most 32,768 rows: 1 to 4 MiB of common columns, which Spark reads fastest. With bodies it
has about 2 MiB of them, or one larger batch of the log. Large messages add at most 16 MiB, or one of them.
Rule 4. Damaged bytes raise a DamageError. With `damaged_rows` each damaged range is a row of the type `unreadable`, and
a message with a damaged body has nulls in its columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import (
    Chunked,
    ConsumerAttached,
    ConsumerDetached,
    LinkEnded,
    LinkResumed,
    LinkSuspended,
    ProducerAttached,
    Published,
    QueueDeclared,
    Settled,
)
from ambermq.engine.events.messages.published import DURABLE, LARGE
from ambermq.engine.events.registry import NUMBERS, TYPE_NAMES
from ambermq.log.errors import DamageError
from ambermq.log.format.batch import Mismatch
from ambermq.log.format.compression import plain_bodies
from ambermq.log.segments.batch_walk import BatchWalk, find_later
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.storage.interface import Storage
from ambermq.tools.dataset.log_segments import HistorySegment, Known, open_segment
from ambermq.tools.dataset.lookup import Lookup, Names
from ambermq.tools.dataset.message_columns import content_of, content_of_beginning, id_of
from ambermq.tools.dataset.rows import Longs, Records, RowBuilder, Rows, rows_of
from ambermq.tools.dataset.schema import CONTENT_COLUMNS, MESSAGE_COLUMNS, UNREADABLE, schema_of
from ambermq.tools.messages.message_preview import WHOLE_BYTES_MAX
from ambermq.tools.past.moment_option import AtOffset, AtTime, parse_when
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["EVERYTHING", "Selection", "event_columns", "selection_between"]

_ROWS_MAX: Final = 32_768
_BYTES_MAX: Final = 2 << 20
_FOREVER: Final = (1 << 63) - 1
_PUBLISHED: Final = NUMBERS[Published]
_CHUNKED: Final = NUMBERS[Chunked]
_SETTLED: Final = NUMBERS[Settled]
_QUEUE_DECLARED: Final = NUMBERS[QueueDeclared]
_CONSUMER_ATTACHED: Final = NUMBERS[ConsumerAttached]
_OF_CONSUMERS: Final = np.array([NUMBERS[one] for one in (ConsumerDetached, LinkSuspended, LinkResumed, LinkEnded)])
"""The events whose queue is that of their consumer."""
_NAMING: Final = (_QUEUE_DECLARED, NUMBERS[ProducerAttached], _CONSUMER_ATTACHED)
_OF_MESSAGES: Final = frozenset({"message_offset", "container", "count", "size"})
_TYPES: Final = np.array([TYPE_NAMES.get(code, f"type {code}") for code in range(256)], dtype=object)
_OUTCOMES: Final = np.array(["", *(kind.name.lower() for kind in sorted(OutcomeKind))], dtype=object)


@dataclass(frozen=True, slots=True)
class Selection:
    """The conditions for the events of a read."""

    first: int = 0
    """Only offsets from this one ..."""
    end: int = _FOREVER
    """... to below this one."""
    begin_us: int = -_FOREVER
    """Only times from this one ..."""
    end_us: int = _FOREVER
    """... to below this one."""
    types: frozenset[str] | None = None
    """Only these types; None for all."""
    queues: frozenset[str] | None = None
    """Only events of these queues; None for all."""


EVERYTHING: Final = Selection()


def selection_between(since: str, until: str, *, now_us: int) -> Selection:
    """Return the selection of events from the moment `since` to before `until`; an empty text is no bound.

    Raises ToolError, also if `until` lies before `since`. An offset and a time are not compared.
    """
    bounds: dict[str, Any] = {}
    for text, offset_name, time_name in ((since, "first", "begin_us"), (until, "end", "end_us")):
        match parse_when(text, now_us=now_us) if text else None:
            case AtOffset(offset):
                bounds[offset_name] = offset
            case AtTime(time_us):
                bounds[time_name] = time_us
    for begin, end in (("first", "end"), ("begin_us", "end_us")):
        if bounds.get(end, bounds.get(begin, 0)) < bounds.get(begin, 0):
            raise ToolError("`until` lies before `since`", where=f"{since} to {until}", code=ExitCode.USAGE)
    return Selection(**bounds)


def event_columns(
    segment: HistorySegment,
    columns: Sequence[str],
    *,
    segments: Sequence[HistorySegment] = (),
    known: Mapping[int, tuple[str, int]] | None = None,
    selection: Selection = EVERYTHING,
    damaged_rows: bool = False,
    storage: Storage | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield these columns of the events of a segment, with the schema `schema_of(columns)`.

    `segments` are all segments of the log, for names and pieces of messages in other segments; `known` is
    HistoryLog.known(). A segment on this disk is read from `storage` if there is one. Raises DamageError unless
    `damaged_rows`, and ToolError if the segment was deleted.
    """
    part = open_segment(segment, storage)
    lookup = Lookup(segments or (segment,), storage)
    try:
        table = _Table(part, segment, columns, selection, lookup, dict(known or {}))
        yield from table.batches(damaged_rows=damaged_rows)
    finally:
        lookup.close()
        part.file.close()


@dataclass(frozen=True, slots=True)
class _Gap:
    """A range of bytes that are no valid batch."""

    offset: int
    size: int


class _Table:
    """The conversion of one segment into columns."""

    def __init__(
        self,
        part: SegmentReader,
        segment: HistorySegment,
        columns: Sequence[str],
        selection: Selection,
        lookup: Lookup,
        known: Known,
    ) -> None:
        self._part = part
        self._segment = segment
        self._schema = schema_of(columns)
        self._selection = selection
        self._first, self._end = max(selection.first, segment.first), min(selection.end, segment.end)
        self._lookup = lookup
        self._names = Names(lookup, known)
        types = selection.types
        with_bodies = not MESSAGE_COLUMNS.isdisjoint(columns)
        self._with_bodies = with_bodies and (types is None or TYPE_NAMES[_PUBLISHED] in types)
        self._codes = None if types is None else [code for code, name in TYPE_NAMES.items() if name in types]
        self._contents = tuple(name for name in columns if name in CONTENT_COLUMNS)
        self._with_messages = bool(self._contents) or not _OF_MESSAGES.isdisjoint(columns)

    def batches(self, *, damaged_rows: bool) -> Iterator[pa.RecordBatch]:
        builder = RowBuilder()
        for walk in self._walks(damaged_rows=damaged_rows):
            if isinstance(walk, _Gap):
                yield from self._flushed(builder)
                yield self._gap(walk)
                continue
            assert walk.header is not None
            if walk.header.base_offset < self._first and walk.next_offset() <= self._first:
                continue
            # A later batch may have an earlier time, so only offsets end the walk.
            if walk.header.base_offset >= self._end:
                break
            self._add(builder, walk, damaged_rows=damaged_rows)
            if builder.count >= _ROWS_MAX or builder.bytes >= _BYTES_MAX:
                yield from self._flushed(builder)
        yield from self._flushed(builder)

    def _walks(self, *, damaged_rows: bool) -> Iterator[BatchWalk | _Gap]:
        """Yield each valid batch, and the gaps between them if `damaged_rows`; else a gap raises DamageError."""
        segment, expected = self._segment, self._segment.base_offset
        walk = self._part.walk(segment.start)
        for header in walk:
            following = walk.next_offset()
            if header.base_offset < expected or following > segment.next_offset:
                found = f"[{header.base_offset}, {following})"
                wanted = f"offsets within [{expected}, {segment.next_offset})"
                raise DamageError(self._part.path, walk.position, wanted, found)
            expected = following
            yield walk
        if walk.position < self._part.size:
            if not damaged_rows:
                wanted, found = walk.mismatch or ("a batch", "zeros: the segment was never written there")
                raise DamageError(self._part.path, walk.position, wanted, found)
            yield from self._later(walk, expected)

    def _later(self, walk: BatchWalk, expected: int) -> Iterator[BatchWalk | _Gap]:
        end = walk.position
        for later in find_later(walk):
            assert later.header is not None
            if later.position > end:
                yield _Gap(expected, later.position - end)
            yield later
            end, expected = later.position + later.header.length, later.next_offset()
        if end < self._part.size:
            yield _Gap(expected, self._part.size - end)

    def _add(self, builder: RowBuilder, walk: BatchWalk, *, damaged_rows: bool) -> None:
        header = walk.header
        assert header is not None
        bodies, is_readable = None, True
        if self._with_bodies:
            read = plain_bodies(header, walk.bodies())
            is_readable = not isinstance(read, Mismatch)
            if isinstance(read, Mismatch):
                if not damaged_rows:
                    position = walk.position + header.head_bytes
                    raise DamageError(self._part.path, position, read.expected, read.found)
                read = bytes(header.bodies_bytes)
            bodies = bytes(read)
        records, meta = walk.parts()
        builder.add(header, records, meta, bodies, is_readable=is_readable)

    def _flushed(self, builder: RowBuilder) -> Iterator[pa.RecordBatch]:
        if not builder.count:
            return
        records = builder.take()
        self._add_names(records)
        wanted = self._is_wanted(records)
        kept = None if wanted.all() else np.flatnonzero(wanted)
        rows = rows_of(records, kept, with_messages=self._with_messages)
        for link in np.flatnonzero(np.isin(rows.type, _OF_CONSUMERS)):
            rows.queue[link] = self._names.queue_of_link(int(rows.link[link]))
        # The column names no queue in the record of a chunk, but the message that is arriving.
        rows.queue[rows.type == _CHUNKED] = 0
        if self._selection.queues is not None:
            rows = rows.where(self._is_about_queues(rows.queue))
        for start, end in self._parts(rows):
            part = rows.where(slice(start, end))
            yield pa.RecordBatch.from_arrays(_Columns(self, records, part).all(), schema=self._schema)

    def _parts(self, rows: Rows) -> Iterator[tuple[int, int]]:
        """Yield the first row and the end of each record batch: of a limited number of rows, and of bytes of bodies."""
        start, count = 0, len(rows.index)
        large = np.where((rows.type == _PUBLISHED) & (rows.size > _BYTES_MAX), rows.size, 0) if self._contents else None
        sums = None if large is None or not large.any() else np.cumsum(np.minimum(large, WHOLE_BYTES_MAX))
        while start < count:
            end = min(start + _ROWS_MAX, count)
            if sums is not None:
                before = int(sums[start - 1]) if start else 0
                end = min(end, max(int(np.searchsorted(sums, before + WHOLE_BYTES_MAX, side="right")), start + 1))
            yield start, end
            start = end

    def _add_names(self, records: Records) -> None:
        """Add the names of queues and links that these records declare."""
        for index in map(int, np.flatnonzero(np.isin(records.columns["type"], _NAMING))):
            keys = msgspec.json.decode(records.meta_of(index))
            offset, kind = int(records.offset[index]), int(records.columns["type"][index])
            if kind == _QUEUE_DECLARED:
                self._names.add(offset, keys.get("name", ""), offset)
            else:
                queue = int(records.columns["queue"][index]) if kind == _CONSUMER_ATTACHED else 0
                self._names.add(offset, keys.get("container", ""), queue)

    def _is_wanted(self, records: Records) -> Any:
        selection = self._selection
        wanted = (records.offset >= self._first) & (records.offset < self._end)
        wanted &= (records.time_us >= selection.begin_us) & (records.time_us < selection.end_us)
        return wanted if self._codes is None else wanted & np.isin(records.columns["type"], self._codes)

    def _is_about_queues(self, queues: Longs) -> Any:
        assert self._selection.queues is not None
        unique = np.unique(queues)
        return np.isin(queues, [one for one in unique if self._names.queue(int(one)) in self._selection.queues])

    def _gap(self, gap: _Gap) -> pa.RecordBatch:
        row = {"offset": gap.offset, "vhost": self._segment.vhost, "type": UNREADABLE, "count": 0, "size": gap.size}
        return pa.RecordBatch.from_pylist([row], schema=self._schema)


class _Columns:
    """The columns of some rows; only the requested ones are built."""

    def __init__(self, table: _Table, records: Records, rows: Rows) -> None:
        self._table = table
        self._records = records
        self._rows = rows

    def all(self) -> list[pa.Array]:
        """Return the columns of the table's schema."""
        contents = self._contents_by_name() if self._table._contents else {}  # noqa: SLF001 - two halves of one class
        schema = self._table._schema  # noqa: SLF001
        return [contents[name] if name in contents else getattr(self, f"_{name}")() for name in schema.names]

    def _offset(self) -> pa.Array:
        return pa.array(self._records.offset[self._rows.index])

    def _timestamp(self) -> pa.Array:
        return pa.array(self._records.time_us[self._rows.index]).cast(pa.timestamp("us", "UTC"))

    def _vhost(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._table._segment.vhost, pa.string()), len(self._rows.index))  # noqa: SLF001

    def _queue(self) -> pa.Array:
        return _by_run(self._rows.queue, self._table._names.queue)  # noqa: SLF001

    def _container(self) -> pa.Array:
        return _by_run(self._rows.link, self._table._names.container)  # noqa: SLF001

    def _type(self) -> pa.Array:
        return _by_run(self._rows.type, lambda code: str(_TYPES[code]))

    def _outcome(self) -> pa.Array:
        kinds = np.where(self._rows.type == _SETTLED, self._records.columns["aux"][self._rows.index], 0)
        return _by_run(kinds, lambda kind: str(_OUTCOMES[kind]) if kind else None)

    def _message_offset(self) -> pa.Array:
        return pa.array(self._rows.message, mask=self._rows.message < 0)

    def _count(self) -> pa.Array:
        return pa.array((self._rows.message >= 0).astype(np.int32))

    def _size(self) -> pa.Array:
        return pa.array(self._rows.size, mask=self._rows.size < 0)

    def _durable(self) -> pa.Array:
        flags = self._records.columns["flags"][self._rows.index]
        return pa.array(flags & DURABLE > 0, mask=self._rows.type != _PUBLISHED)

    def _message_id(self) -> pa.Array:
        has_one = self._is_message() & (self._records.columns["id_hash"][self._rows.index] > 0)
        ids: dict[int, str | None] = {}
        for index in map(int, np.unique(self._rows.index[has_one])):
            payload = self._payload(index, is_whole=False)
            ids[index] = None if payload is None else id_of(payload)
        return pa.array(map(ids.get, self._rows.index.tolist()), pa.string())

    def _contents_by_name(self) -> dict[str, pa.Array]:
        """Return the columns with contents of messages; each message is decoded once."""
        names = self._table._contents  # noqa: SLF001
        nothing = (None,) * len(names)
        found: dict[int, tuple[Any, ...]] = {}
        sizes = dict(zip(self._rows.index.tolist(), self._rows.size.tolist(), strict=True))
        for index in map(int, np.unique(self._rows.index[self._is_message()])):
            is_whole = sizes[index] <= WHOLE_BYTES_MAX
            payload = self._payload(index, is_whole=is_whole)
            contents = content_of if is_whole else content_of_beginning
            found[index] = nothing if payload is None else contents(payload, names)
        values = [found.get(index, nothing) for index in self._rows.index.tolist()]
        columns = zip(*values, strict=True) if values else ((),) * len(names)
        return {name: pa.array(column, CONTENT_COLUMNS[name]) for name, column in zip(names, columns, strict=True)}

    def _is_message(self) -> Any:
        return (self._rows.type == _PUBLISHED) & self._records.is_readable[self._rows.index]

    def _payload(self, index: int, *, is_whole: bool) -> bytes | None:
        """Return a message, or its first piece; None if the log no longer has one of the pieces."""
        columns = self._records.columns[index]
        if not columns["flags"] & LARGE:
            return self._records.body_of(index)
        meta = self._records.meta_of(index)[:-2]
        offsets = unpack_words(meta[len(meta) - int(columns["aux"]) * WORD_BYTES :])
        pieces = [self._table._lookup.body(offset) for offset in (offsets if is_whole else offsets[:1])]  # noqa: SLF001
        if any(piece is None for piece in pieces):
            return None
        return b"".join([*filter(None, pieces), self._records.body_of(index) if is_whole else b""])


def _by_run(ids: Any, name: Any) -> pa.Array:
    """Return the name of each id; equal ids are mostly neighbours, so each run of them is looked up once."""
    if not len(ids):
        return pa.array([], pa.string())
    heads = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    unique, inverse = np.unique(ids[heads], return_inverse=True)
    names = pa.array([name(int(one)) for one in unique], pa.string())
    return names.take(pa.array(np.repeat(inverse, np.diff(np.append(heads, len(ids))))))
