"""The codec of a state: its blocks in a snapshot file, and back to an equal state.

    STATE       {epoch, time_us, mode, and the counts of the muxers, attachments, queues, producers, consumers and
                subscriptions that follow}
    MUXERS      [{id, name, kind, named, options, draws}]
    ATTACHMENTS [[muxer, id, member, argument, conditions]]
    PRODUCERS   [{id, muxer, destination, container, link, sending, node, owns}]
    CONSUMERS   [{id, queue, container, link, selector, owns}]
    QUEUES      [{id, name, named, settings, lifetime, counts}]
    WORDS       runs: queue i64 | consumer i64 | list u32 | count u32 | count words
    DUES        runs: queue i64 | count u64 | count entries u64 | count times u64
    ENTRIES     [{queue, entry, offsets: [first, gap, gap...]}]
    SUBSCRIPTIONS [{queue, keyed, subscription}]
    SUSPENDED   [{link, keyed}]
    TAGS        [{producer, tags: [base64...]}]

A run of words with keys has three words for each message: its word, and its key of 16 bytes.

Rule 1. Queues are written as their packed runs, never as objects: 8 bytes for each message and little more. A value
        that many entries share is written once, with the gaps between their offsets.
Rule 2. Everything is sorted by id or offset, because maps iterate in the order of hashes.
Rule 3. A block is made in a fraction of a millisecond, because a broker may be running.
Rule 4. There can be any number of blocks of one kind. Entries come after their words. Counts are compared with those
        that were written; a difference is an ImageFault, so no caller gets a partial state.
Rule 5. Derived values are not written but computed again: links of a node, groups of a queue, containers of no-local
        subscriptions.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import islice
from operator import ge, itemgetter
from struct import Struct
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, total_size, unpack_words
from ambermq.engine.entries.expiry_runs import NO_RUNS, Runs
from ambermq.engine.entries.priority import PRIORITY_MAX
from ambermq.engine.errors import EngineError
from ambermq.engine.model.attachment import Attachment, Condition
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import Muxer, MuxerKind, Options
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.counters import Counters
from ambermq.engine.model.queue_parts.groups import NO_GROUPS, with_codes
from ambermq.engine.model.queue_parts.id_window import IdWindow, window_of
from ambermq.engine.model.queue_parts.last_values import LastValues, restored
from ambermq.engine.model.queue_parts.levels import NO_LEVELS, Levels, count_of, with_words
from ambermq.engine.model.state import EMPTY_STATE, Consumer, Links, Producer, State
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.model.suspended_link import SuspendedLink
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.settings.queue_settings import Settings
from ambermq.snapshot.block_file import Block, BlockKind
from ambermq.snapshot.persistent_column import EMPTY_COLUMN, PersistentColumn
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = ["ImageFault", "image_of", "state_of"]

_RUN: Final = Struct("<qqII")
_DUES: Final = Struct("<qQ")
_WORDS_BYTES: Final = 64 << 10
"""The approximate size of a block of words."""
_JSON_BYTES: Final = 16 << 10
_ENTRIES_A_ROW: Final = 1024
_TAGS_A_ROW: Final = 256
_SORTED_AT_ONCE: Final = 1024
_MAPPED_AT_ONCE: Final = 256
_KEYS_AT_ONCE: Final = 256
_READY, _RETURNED, _ACQUIRED, _ASIDE, _DELAYED, _SCHEDULED = 1, 2, 3, 4, 5, 6
_REPLACED, _KEYED = 12, 13
_KEY_ROW: Final = Struct("<Q16s")
"""A word and its key, in a run of the list _KEYED."""
_KEY_WORDS: Final = _KEY_ROW.size // WORD_BYTES
_IDS: Final = 8
"""The list of message-ids, whose words are no messages."""
_UPLOAD = 64
"""The chunk records of a message that is arriving; the queue's id is the offset of the first one."""
_LEVEL_READY, _LEVEL_RETURNED = 16, 32
"""The list of priority 0; the others follow."""
_PRIORITIES: Final = range(PRIORITY_MAX + 1)
_LISTS: Final = frozenset(
    {_READY, _RETURNED, _ACQUIRED, _ASIDE, _DELAYED, _SCHEDULED, _IDS, _REPLACED, _KEYED, _UPLOAD}
    | {kind + priority for kind in (_LEVEL_READY, _LEVEL_RETURNED) for priority in _PRIORITIES}
)

_Value = TypeVar("_Value")
_encode = msgspec.json.Encoder().encode


class ImageFault(EngineError):
    """Blocks with valid checksums that are not a valid state."""


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    epoch: int
    time_us: int
    muxers: int
    attachments: int
    queues: int
    producers: int
    consumers: int
    subscriptions: int = 0
    mode: VhostMode | msgspec.UnsetType = msgspec.UNSET
    """Not written in automatic mode."""
    stepped_us: int | msgspec.UnsetType = msgspec.UNSET
    """Not written if the clock never stepped."""
    suspended: int | msgspec.UnsetType = msgspec.UNSET
    """Not written without suspended links."""
    tags: int | msgspec.UnsetType = msgspec.UNSET
    """The rows of tags. Not written without any."""
    chunks: int | msgspec.UnsetType = msgspec.UNSET
    """The chunk records of messages that are arriving. Not written without them."""


class _MuxerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: int
    name: str
    kind: MuxerKind
    named: bool
    """Whether the name still belongs to this muxer."""
    options: Options
    draws: int


_AttachmentRow = tuple[int, int, int, str | None, tuple[Condition, ...] | None]
"""Muxer, id, member, and the argument as a text or as conditions."""


class _QueueRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: int
    name: str
    named: bool
    settings: Settings
    exclusions: int
    size: int
    acquired_count: int
    published: int
    delivered: int
    accepted: int
    counters: Counters
    ready: int
    """The count of words in the list, as a check."""
    returned: int
    entries: int
    lifetime: Lifetime = Lifetime.PERMANENT
    aside: int | msgspec.UnsetType = msgspec.UNSET
    """Not written for a queue without set-aside messages."""
    runs: Runs | msgspec.UnsetType = msgspec.UNSET
    """Not written for a queue without a time to live."""
    delayed: int | msgspec.UnsetType = msgspec.UNSET
    """Not written for a queue without delayed messages."""
    scheduled: int | msgspec.UnsetType = msgspec.UNSET
    """Not written for a queue without scheduled messages."""
    leveled: int | msgspec.UnsetType = msgspec.UNSET
    """The messages of other priorities than the default one. Not written for a queue without them."""
    keyed: tuple[int, int] | msgspec.UnsetType = msgspec.UNSET
    """The messages with keys, and those that newer ones have replaced. Not written for a queue without them."""
    ids: int | msgspec.UnsetType = msgspec.UNSET
    """The message-ids that it remembers. Not written for a queue without them."""


class _EntriesRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    queue: int
    entry: Entry
    offsets: list[int]
    """The first offset, then the gap from each offset to the next."""


class _SubscriptionRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    queue: int
    keyed: bool
    """Whether its key finds it."""
    subscription: Subscription


class _SuspendedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    link: SuspendedLink
    keyed: bool
    """Whether its key finds it."""


class _TagsRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    producer: int
    tags: list[bytes]


def image_of(state: State) -> Iterator[Block]:
    """Yield the blocks of a state, each below 100 KiB."""
    yield Block(BlockKind.STATE, [_encode(_head(state))])
    yield from _json_blocks(BlockKind.MUXERS, _muxer_rows(state))
    yield from _json_blocks(BlockKind.ATTACHMENTS, _attachment_rows(state))
    yield from _json_blocks(BlockKind.PRODUCERS, _in_order(state.producers))
    yield from _json_blocks(BlockKind.CONSUMERS, _in_order(state.consumers))
    yield from _json_blocks(BlockKind.QUEUES, _queue_rows(state))
    yield from _word_blocks(state)
    yield from _due_blocks(state)
    yield from _json_blocks(BlockKind.ENTRIES, _entries_rows(state))
    yield from _json_blocks(BlockKind.SUBSCRIPTIONS, _subscription_rows(state))
    yield from _json_blocks(BlockKind.SUSPENDED, _suspended_rows(state))
    yield from _json_blocks(BlockKind.TAGS, _tags_rows(state))


def _head(state: State) -> _Head:
    return _Head(
        state.epoch,
        state.time_us,
        len(state.muxers),
        sum(len(muxer.attachments) for muxer in state.muxers.values()),
        len(state.queues),
        len(state.producers),
        len(state.consumers),
        len(state.subscriptions),
        state.mode or msgspec.UNSET,
        state.stepped_us or msgspec.UNSET,
        len(state.suspended) or msgspec.UNSET,
        sum([-(-len(tags) // _TAGS_A_ROW) for tags in state.tags.values()]) or msgspec.UNSET,
        sum(map(len, state.uploads.values())) or msgspec.UNSET,
    )


def _subscription_rows(state: State) -> Iterator[_SubscriptionRow]:
    for queue, one in _sorted_items(state.subscriptions):
        yield _SubscriptionRow(queue, one.key is not None and state.subscription_queues.get(one.key) == queue, one)


def _suspended_rows(state: State) -> Iterator[_SuspendedRow]:
    for one in _in_order(state.suspended):
        yield _SuspendedRow(one, state.suspended_ids.get(one.key) == one.id)


def _tags_rows(state: State) -> Iterator[_TagsRow]:
    for producer, tags in _sorted_items(state.tags):
        items = map(itemgetter(0), _sorted_items(tags))
        while some := list(islice(items, _TAGS_A_ROW)):
            yield _TagsRow(producer, some)


def _muxer_rows(state: State) -> Iterator[_MuxerRow]:
    for muxer in _in_order(state.muxers):
        is_named = state.muxer_names.get(muxer.name) == muxer.id
        draws = state.draws.get(muxer.id, 0)
        yield _MuxerRow(muxer.id, muxer.name, muxer.kind, is_named, muxer.options, draws)


def _attachment_rows(state: State) -> Iterator[_AttachmentRow]:
    for muxer in _in_order(state.muxers):
        for one in _in_order(muxer.attachments):
            text, conditions = (None, one.argument) if isinstance(one.argument, tuple) else (one.argument, None)
            yield muxer.id, one.id, one.member, text, conditions


def _queue_rows(state: State) -> Iterator[_QueueRow]:
    for queue in _in_order(state.queues):
        yield _QueueRow(
            queue.id,
            queue.name,
            state.queue_names.get(queue.name) == queue.id,
            queue.settings,
            queue.exclusions,
            queue.size,
            queue.acquired_count,
            queue.published,
            queue.delivered,
            queue.accepted,
            queue.counters,
            len(queue.ready),
            len(queue.returned),
            len(queue.entries),
            queue.lifetime,
            len(queue.aside) or msgspec.UNSET,
            queue.runs or msgspec.UNSET,
            len(queue.delayed) or msgspec.UNSET,
            len(queue.scheduled) or msgspec.UNSET,
            count_of(queue.levels) or msgspec.UNSET,
            msgspec.UNSET if queue.keyed is None else (queue.keyed.keys.count, queue.keyed.replaced.count),
            len(queue.ids) or msgspec.UNSET,
        )


def _word_blocks(state: State) -> Iterator[Block]:
    parts: list[bytes] = []
    size = 0
    for queue_id, consumer, kind, words in _lists(state):
        for run in words:
            parts += (_RUN.pack(queue_id, consumer, kind, len(run) // WORD_BYTES), run)
            size += _RUN.size + len(run)
            if size >= _WORDS_BYTES:
                yield Block(BlockKind.WORDS, parts)
                parts, size = [], 0
    if parts:
        yield Block(BlockKind.WORDS, parts)


def _lists(state: State) -> Iterator[tuple[int, int, int, Iterator[bytes]]]:
    """Yield each list of each queue as queue, consumer, kind and packed runs."""
    for queue_id, consumer, kind, words in _word_lists(state):
        yield queue_id, consumer, kind, words.chunks()
    for queue in _in_order(state.queues):
        if queue.keyed is not None:
            yield queue.id, 0, _REPLACED, queue.keyed.replaced.chunks()
            yield queue.id, 0, _KEYED, _key_runs(queue, queue.keyed)


def _key_runs(queue: Queue, values: LastValues) -> Iterator[bytes]:
    """Yield the words with keys, each before its key, in the order of the lists of the queue."""
    for words in (*queue.waiting_lists, *map(itemgetter(1), _sorted_items(queue.acquired))):
        for run in words.chunks():
            for start in range(0, len(run), _KEYS_AT_ONCE * WORD_BYTES):
                some = memoryview(run[start : start + _KEYS_AT_ONCE * WORD_BYTES]).cast("Q")
                rows = [_KEY_ROW.pack(word, key) for word in some if (key := values.key_of(word)) is not None]
                if rows:
                    yield b"".join(rows)


def _due_blocks(state: State) -> Iterator[Block]:
    for queue in _in_order(state.queues):
        parts: list[bytes] = []
        for keys, values in queue.dues.blocks():
            parts += (_DUES.pack(queue.id, len(keys) // WORD_BYTES), keys, values)
            if sum(map(len, parts)) >= _WORDS_BYTES:
                yield Block(BlockKind.DUES, parts)
                parts = []
        if parts:
            yield Block(BlockKind.DUES, parts)


def _word_lists(state: State) -> Iterator[tuple[int, int, int, PersistentQueue]]:
    for queue in _in_order(state.queues):
        yield queue.id, 0, _READY, queue.ready
        yield queue.id, 0, _RETURNED, queue.returned
        yield queue.id, 0, _ASIDE, queue.aside
        yield queue.id, 0, _DELAYED, queue.delayed
        yield queue.id, 0, _SCHEDULED, queue.scheduled
        for level in queue.levels:
            yield queue.id, 0, _LEVEL_READY + level.priority, level.ready
            yield queue.id, 0, _LEVEL_RETURNED + level.priority, level.returned
        yield queue.id, 0, _IDS, queue.ids.order
        for consumer, words in _sorted_items(queue.acquired):
            yield queue.id, consumer, _ACQUIRED, words
    for upload, words in _sorted_items(state.uploads):
        yield upload, 0, _UPLOAD, words


def _entries_rows(state: State) -> Iterator[_EntriesRow]:
    for queue in _in_order(state.queues):
        items = _sorted_items(queue.entries)
        while some := list(islice(items, _ENTRIES_A_ROW)):
            yield from _alike(queue.id, some)


def _alike(queue_id: int, items: list[tuple[int, Entry]]) -> Iterator[_EntriesRow]:
    """Yield a row for each value among these entries, in the order in which the values first appear."""
    rows: dict[Entry, tuple[list[int], int]] = {}
    for offset, entry in items:
        gaps, last = rows.get(entry, ([], 0))
        gaps.append(offset - last)
        rows[entry] = gaps, offset
    for entry, (gaps, _) in rows.items():
        yield _EntriesRow(queue_id, entry, gaps)


def _json_blocks(kind: BlockKind, rows: Iterable[Any]) -> Iterator[Block]:
    """Yield blocks of rows. Each row is encoded by itself, so that no single call takes long."""
    parts: list[bytes] = []
    size = 0
    for row in rows:
        encoded = _encode(row)
        parts.append(encoded)
        size += len(encoded)
        if size >= _JSON_BYTES:
            yield Block(kind, [b"[" + b",".join(parts) + b"]"])
            parts, size = [], 0
    if parts:
        yield Block(kind, [b"[" + b",".join(parts) + b"]"])


def _in_order(table: "PersistentMap[int, _Value]") -> Iterator[_Value]:
    return map(itemgetter(1), _sorted_items(table))


def _sorted_items(table: "PersistentMap[Any, _Value]") -> Iterator[tuple[Any, _Value]]:
    """Return the items of a map, sorted by key. It sorts in small pieces, because one long call stops a broker."""
    items = iter(table.items())
    runs = []
    while some := list(islice(items, _SORTED_AT_ONCE)):
        some.sort(key=itemgetter(0))
        runs.append(some)
    return merge(*runs, key=itemgetter(0)) if len(runs) > 1 else iter(runs[0] if runs else ())


def state_of(blocks: Iterable[Block]) -> State:
    """Return the state of the blocks, with its queues in full chunks. Raises ImageFault."""
    parts = _Parts()
    for block in blocks:
        take = _TAKE.get(block.kind)
        if take is None:
            raise ImageFault(f"a snapshot block has the unknown kind {block.kind}")
        try:
            take(parts, block.payload)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ImageFault(f"a snapshot block of kind {block.kind} cannot be decoded: {error}") from error
    return parts.state()


class _Parts:
    """The contents of the blocks read so far."""

    def __init__(self) -> None:
        self.head: _Head | None = None
        self.muxers: list[_MuxerRow] = []
        self.attachments: dict[int, dict[int, Attachment]] = {}
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.queues: list[_QueueRow] = []
        self.lists: dict[tuple[int, int], PersistentQueue] = {}
        self.words: Counter[int] = Counter()
        """The count of words so far, by queue."""
        self.acquired: dict[int, dict[int, PersistentQueue]] = {}
        self.entries: dict[int, dict[int, Entry]] = {}
        self.keys: dict[int, list[tuple[int, bytes]]] = {}
        """Words and their keys, by queue."""
        self.dues: dict[int, PersistentColumn] = {}
        self.subscriptions: list[_SubscriptionRow] = []
        self.suspended: list[_SuspendedRow] = []
        self.tags: list[_TagsRow] = []

    def take_head(self, payload: bytes) -> None:
        self.head = msgspec.json.decode(payload, type=_Head)

    def take_muxers(self, payload: bytes) -> None:
        self.muxers += msgspec.json.decode(payload, type=list[_MuxerRow])

    def take_attachments(self, payload: bytes) -> None:
        for muxer, one, member, text, conditions in msgspec.json.decode(payload, type=list[_AttachmentRow]):
            argument = text if conditions is None else conditions
            self.attachments.setdefault(muxer, {})[one] = Attachment(one, member, argument)

    def take_producers(self, payload: bytes) -> None:
        self.producers.update((one.id, one) for one in msgspec.json.decode(payload, type=list[Producer]))

    def take_consumers(self, payload: bytes) -> None:
        self.consumers.update((one.id, one) for one in msgspec.json.decode(payload, type=list[Consumer]))

    def take_subscriptions(self, payload: bytes) -> None:
        self.subscriptions += msgspec.json.decode(payload, type=list[_SubscriptionRow])

    def take_suspended(self, payload: bytes) -> None:
        self.suspended += msgspec.json.decode(payload, type=list[_SuspendedRow])

    def take_tags(self, payload: bytes) -> None:
        self.tags += msgspec.json.decode(payload, type=list[_TagsRow])

    def take_queues(self, payload: bytes) -> None:
        self.queues += msgspec.json.decode(payload, type=list[_QueueRow])

    def take_words(self, payload: bytes) -> None:
        position = 0
        while position < len(payload):
            if len(payload) - position < _RUN.size:
                raise ImageFault(f"{len(payload) - position} extra bytes after the last run of words")
            queue, consumer, kind, count = _RUN.unpack_from(payload, position)
            position += _RUN.size
            end = position + count * WORD_BYTES
            if end > len(payload) or kind not in _LISTS:
                raise ImageFault(
                    f"a run of {count} words of list {kind}: found {len(payload) - position} bytes of words"
                )
            if kind == _KEYED:
                if count % _KEY_WORDS:
                    raise ImageFault(f"a run of {count} words of list {kind}: expected a multiple of {_KEY_WORDS}")
                self.keys.setdefault(queue, []).extend(_KEY_ROW.iter_unpack(payload[position:end]))
                position = end
                continue
            held = self.acquired.setdefault(queue, {}) if kind == _ACQUIRED else self.lists
            key: Any = consumer if kind == _ACQUIRED else (queue, kind)
            held[key] = held.get(key, EMPTY_QUEUE).push(payload[position:end])
            # The words of ids are not those of messages, which may have entries.
            self.words[queue] += count if kind != _IDS else 0
            position = end

    def take_dues(self, payload: bytes) -> None:
        position = 0
        while position < len(payload):
            queue, count = _DUES.unpack_from(payload, position) if len(payload) - position >= _DUES.size else (0, 0)
            position += _DUES.size
            middle, end = position + count * WORD_BYTES, position + 2 * count * WORD_BYTES
            keys = unpack_words(payload[position:middle])
            if not count or end > len(payload) or any(map(ge, keys, keys[1:])):
                raise ImageFault(f"a run of {count} scheduled entries of queue {queue} is not whole and in order")
            dues = self.dues.get(queue, EMPTY_COLUMN)
            self.dues[queue] = dues.with_packed(payload[position:middle], payload[middle:end])
            position = end

    def take_entries(self, payload: bytes) -> None:
        for row in msgspec.json.decode(payload, type=list[_EntriesRow]):
            entries = self.entries.setdefault(row.queue, {})
            if len(entries) + len(row.offsets) > self.words[row.queue]:
                # An entry takes two bytes in the file and hundreds in memory, and no other check bounds their number.
                raise ImageFault(f"more entries of queue {row.queue} than the {self.words[row.queue]} words on it")
            offset = 0
            for gap in row.offsets:
                offset += gap
                entries[offset] = row.entry

    def state(self) -> State:
        """Return the state. Raises ImageFault if a part is missing."""
        head = self.head
        if head is None:
            raise ImageFault("the first block of the snapshot is missing")
        attachments = sum(map(len, self.attachments.values()))
        links = (len(self.producers), len(self.consumers), len(self.subscriptions))
        counts = (len(self.muxers), attachments, len(self.queues), *links)
        expected = (head.muxers, head.attachments, head.queues, head.producers, head.consumers, head.subscriptions)
        if counts != expected:
            what = "muxers, attachments, queues, producers, consumers, subscriptions"
            raise ImageFault(f"{what}: expected {expected}, found {counts}")
        if (len(self.suspended), len(self.tags)) != (head.suspended or 0, head.tags or 0):
            found = len(self.suspended), len(self.tags)
            raise ImageFault(f"suspended, tags: expected {(head.suspended or 0, head.tags or 0)}, found {found}")
        uploads = {one: words for (one, kind), words in self.lists.items() if kind == _UPLOAD}
        if (chunks := sum(map(len, uploads.values()))) != (head.chunks or 0):
            raise ImageFault(f"chunks of arriving messages: expected {head.chunks or 0}, found {chunks}")
        consumers, known = Counter(one.queue for one in self.consumers.values()), {row.id for row in self.queues}
        muxers = [
            Muxer(one.id, one.name, one.kind, one.options, _map_of(self.attachments.get(one.id, {})))
            for one in self.muxers
        ]
        return EMPTY_STATE.with_fields(
            epoch=head.epoch,
            time_us=head.time_us,
            mode=VhostMode.AUTOMATIC if head.mode is msgspec.UNSET else head.mode,
            stepped_us=head.stepped_us or 0,
            deduplicating=PersistentMap({row.id: None for row in self.queues if row.settings.dedup_window_ms}),
            queues=PersistentMap({row.id: self._queue(row, consumers[row.id]) for row in self.queues}),
            queue_names=PersistentMap({row.name: row.id for row in self.queues if row.named}),
            muxers=PersistentMap({muxer.id: muxer for muxer in muxers}),
            muxer_names=PersistentMap({row.name: row.id for row in self.muxers if row.named}),
            consumers=PersistentMap(self.consumers),
            producers=PersistentMap(self.producers),
            draws=PersistentMap({row.id: row.draws for row in self.muxers if row.draws}),
            links=_links_of((node, one.id) for one in self.producers.values() for node in one.nodes),
            receivers=_links_of((one.queue, one.id) for one in self.consumers.values() if one.queue in known),
            uploads=_map_of(uploads),
            **_subscribed(self.subscriptions),
            **_suspended(self.suspended, self.tags),
        )

    def _queue(self, row: _QueueRow, consumers: int) -> Queue:
        ready = self.lists.get((row.id, _READY), EMPTY_QUEUE)
        returned = self.lists.get((row.id, _RETURNED), EMPTY_QUEUE)
        aside = self.lists.get((row.id, _ASIDE), EMPTY_QUEUE)
        delayed = self.lists.get((row.id, _DELAYED), EMPTY_QUEUE)
        scheduled = self.lists.get((row.id, _SCHEDULED), EMPTY_QUEUE)
        acquired, entries = self.acquired.get(row.id, {}), self.entries.get(row.id, {})
        held = sum(map(len, acquired.values()))
        levels = self._levels(row.id)
        ids = self._ids(row)
        waits = (len(ready), len(returned), len(aside), len(delayed), len(scheduled), count_of(levels))
        counts = (*waits, held, len(entries))
        waiting = (row.ready, row.returned, row.aside or 0, row.delayed or 0, row.scheduled or 0, row.leveled or 0)
        expected = (*waiting, row.acquired_count, row.entries)
        if counts != expected:
            what = "ready, returned, aside, delayed, scheduled, leveled, acquired, known"
            raise ImageFault(f"queue {row.name!r}: expected {expected} {what}; found {counts}")
        keys, replaced = self.keys.get(row.id, []), self.lists.get((row.id, _REPLACED), EMPTY_QUEUE)
        if (len(keys), len(replaced)) != (row.keyed or (0, 0)):
            found = f"{len(keys)}, {len(replaced)}"
            raise ImageFault(f"queue {row.name!r}: expected {row.keyed or (0, 0)} keys, replaced; found {found}")
        dues = self.dues.get(row.id, EMPTY_COLUMN)
        if dues.count < len(scheduled):
            dues = _dues_of(scheduled, entries)
        if dues.count != len(scheduled):
            raise ImageFault(f"queue {row.name!r}: {len(scheduled)} scheduled messages, {dues.count} times for them")
        return Queue(
            row.id,
            row.name,
            row.settings,
            ready,
            returned,
            PersistentMap(acquired),
            _map_of(entries),
            row.exclusions,
            row.size,
            row.acquired_count,
            sum(total_size(run) for words in acquired.values() for run in words.chunks()),
            row.published,
            row.delivered,
            row.accepted,
            row.counters,
            row.lifetime,
            consumers,
            aside,
            sum(bool(entry.expires_us) for entry in entries.values()),
            row.runs or NO_RUNS,
            delayed,
            scheduled,
            levels,
            restored(keys, set(scheduled), replaced) if keys or replaced else None,
            ids,
            with_codes(NO_GROUPS, [entry.group for entry in entries.values()]),
            dues,
        )

    def _ids(self, row: _QueueRow) -> IdWindow:
        try:
            ids = window_of(self.lists.get((row.id, _IDS), EMPTY_QUEUE))
        except ValueError as error:
            raise ImageFault(f"queue {row.name!r}: {error}") from error
        if len(ids) != (row.ids or 0):
            raise ImageFault(f"queue {row.name!r}: expected {row.ids or 0} message-ids, found {len(ids)}")
        return ids

    def _levels(self, queue: int) -> Levels:
        levels = NO_LEVELS
        for kind, are_returned in ((_LEVEL_READY, False), (_LEVEL_RETURNED, True)):
            lists = {priority: self.lists.get((queue, kind + priority), EMPTY_QUEUE) for priority in _PRIORITIES}
            words = {priority: some.to_bytes() for priority, some in lists.items() if some}
            levels = with_words(levels, words, are_returned=are_returned)
        return levels


def _dues_of(scheduled: PersistentQueue, entries: dict[int, Entry]) -> PersistentColumn:
    """Return the times of scheduled messages of a snapshot that has them in `entries`, and remove them there."""
    dues = EMPTY_COLUMN
    for run in scheduled.chunks():
        known = {word >> 16: entries.get(word >> 16, PLAIN) for word in unpack_words(run)}
        timed = [offset for offset, entry in known.items() if entry.due_us]
        dues = dues.with_values(timed, [known[offset].due_us for offset in timed])
        for offset in timed:
            entries[offset] = replace(known[offset], due_us=0)
            if entries[offset] == PLAIN:
                del entries[offset]
    return dues


def _subscribed(rows: list[_SubscriptionRow]) -> dict[str, Any]:
    """Return the parts of a state that are about subscriptions."""
    no_locals = {
        row.queue: row.subscription.container
        for row in rows
        if row.subscription.is_no_local and row.subscription.container is not None
    }
    return {
        "subscriptions": PersistentMap({row.queue: row.subscription for row in rows}),
        "subscription_queues": PersistentMap({row.subscription.key: row.queue for row in rows if row.keyed}),
        "no_locals": PersistentMap(no_locals),
    }


def _suspended(rows: list[_SuspendedRow], tags: list[_TagsRow]) -> dict[str, Any]:
    """Return the parts of a state that are about suspended links and kept tags."""
    by_producer: dict[int, dict[bytes, None]] = {}
    for row in tags:
        by_producer.setdefault(row.producer, {}).update(dict.fromkeys(row.tags))
    return {
        "suspended": PersistentMap({row.link.id: row.link for row in rows}),
        "suspended_ids": PersistentMap({row.link.key: row.link.id for row in rows if row.keyed}),
        "suspended_held": sum(row.link.held for row in rows),
        "tags": PersistentMap({producer: PersistentMap(some) for producer, some in by_producer.items()}),
    }


def _links_of(pairs: Iterable[tuple[int, int]]) -> "PersistentMap[int, Links]":
    """Return the links of each node, from pairs of a node and a link."""
    links: dict[int, dict[int, None]] = {}
    for node, link in pairs:
        links.setdefault(node, {})[link] = None
    return _map_of({node: _map_of(some) for node, some in links.items()})


def _map_of(items: "dict[int, _Value]") -> "PersistentMap[int, _Value]":
    """Return a map, built in small steps: a call with millions of items would stop a running broker."""
    empty: PersistentMap[int, _Value] = PersistentMap()
    draft, left = empty.mutate(), iter(items.items())
    while some := dict(islice(left, _MAPPED_AT_ONCE)):
        draft.update(some)
    return draft.finish()


_TAKE: Final[dict[int, Callable[[_Parts, bytes], None]]] = {
    BlockKind.STATE: _Parts.take_head,
    BlockKind.MUXERS: _Parts.take_muxers,
    BlockKind.ATTACHMENTS: _Parts.take_attachments,
    BlockKind.PRODUCERS: _Parts.take_producers,
    BlockKind.CONSUMERS: _Parts.take_consumers,
    BlockKind.QUEUES: _Parts.take_queues,
    BlockKind.WORDS: _Parts.take_words,
    BlockKind.DUES: _Parts.take_dues,
    BlockKind.ENTRIES: _Parts.take_entries,
    BlockKind.SUBSCRIPTIONS: _Parts.take_subscriptions,
    BlockKind.SUSPENDED: _Parts.take_suspended,
    BlockKind.TAGS: _Parts.take_tags,
}
