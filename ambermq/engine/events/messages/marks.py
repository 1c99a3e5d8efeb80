"""Marks of messages: the time to live, priority, group or key of those of the Published event before.

Rule 1. A mark names its messages by the offset of the first one and their count.
Rule 2. A queue that does not know such marks ignores them.
"""

from typing import Any, Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.events.event_type import EventType, Facts, Layout
from ambermq.engine.events.line_template import Choice
from ambermq.engine.events.messages.fan_out import add_fanned, queues_of
from ambermq.engine.events.record_draft import RecordDraft

__all__ = ["Grouped", "Keyed", "Prioritized", "Timed"]

_TIMED: Final = 30
_PRIORITIZED: Final = 34
_GROUPED: Final = 35
_KEYED: Final = 37
_KEY_BYTES: Final = 16
_PUBLISHED: Final = 12


@final
class Timed(Struct):
    """The messages of the Published event before it have a time to live of their own."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    first: int
    """The offset of the first message."""
    count: int
    ttl_ms: int
    """The time to live of the one that expires first, in milliseconds from `time_us` on."""
    ttls: bytes = b""
    """The time to live of each of them, packed; empty if all have one."""

    def elapsed_expiries(self, stepped_us: int) -> bytes:
        """Return when each of them expires, in elapsed time, packed; `stepped_us` are the steps of the clock."""
        now_us = self.time_us - stepped_us
        if not self.ttls:
            return pack_words((now_us + 1000 * self.ttl_ms,)) * self.count
        return pack_words([now_us + 1000 * ttl_ms for ttl_ms in unpack_words(self.ttls)])


def _write_timed(draft: RecordDraft, event: Timed) -> int:
    return add_fanned(
        draft,
        _TIMED,
        event,
        ref=event.first,
        count=event.count,
        aux=1 if event.ttls else 0,
        meta=event.ttl_ms.to_bytes(WORD_BYTES, "little") + event.ttls,
    )


def _read_timed(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Timed:
    ttl_ms, end = int.from_bytes(meta[:WORD_BYTES], "little"), WORD_BYTES + row[7] * row[8] * WORD_BYTES
    return Timed(offset, time_us, queues_of(row, meta[end:]), row[5], row[7], ttl_ms, meta[WORD_BYTES:end])


def _timed_facts(event: Timed) -> Facts:
    facts: Facts = {"count": event.count, "ttl_ms": event.ttl_ms}
    facts |= {"last_ttl_ms": max(unpack_words(event.ttls))} if event.ttls else {}
    return facts | {"offsets": _offsets(event.first, event.count)}


@final
class Prioritized(Struct):
    """The messages of the Published event before it have a priority; each queue without priorities ignores it."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    first: int
    """The offset of the first message."""
    count: int
    priority: int
    """0 to 9."""


def _write_prioritized(draft: RecordDraft, event: Prioritized) -> int:
    return add_fanned(draft, _PRIORITIZED, event, ref=event.first, count=event.count, aux=event.priority)


def _read_prioritized(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Prioritized:
    return Prioritized(offset, time_us, queues_of(row, meta), row[5], row[7], row[8])


@final
class Keyed(Struct):
    """The messages of the Published or Moved event before it have keys, by which their queues keep the last value."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    first: int
    """The offset of the first message."""
    keys: bytes
    """The key of each message, 16 bytes; zeros for a message without one."""


def _write_keyed(draft: RecordDraft, event: Keyed) -> int:
    return add_fanned(draft, _KEYED, event, ref=event.first, count=len(event.keys) // _KEY_BYTES, meta=event.keys)


def _read_keyed(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Keyed:
    split = row[7] * _KEY_BYTES
    return Keyed(offset, time_us, queues_of(row, meta[split:]), row[5], meta[:split])


def _keyed_facts(event: Keyed) -> Facts:
    count = len(event.keys) // _KEY_BYTES
    return {"count": count, "offsets": _offsets(event.first, count)}


@final
class Grouped(Struct):
    """The messages of the Published event before it have groups; each queue without groups ignores it."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    first: int
    """The offset of the first message."""
    count: int
    codes: bytes
    """The code of each message's group (entries/group.py), packed; one code if all are equal."""


def _write_grouped(draft: RecordDraft, event: Grouped) -> int:
    return add_fanned(
        draft, _GROUPED, event, ref=event.first, count=event.count, aux=len(event.codes) // WORD_BYTES, meta=event.codes
    )


def _read_grouped(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Grouped:
    end = row[8] * WORD_BYTES
    return Grouped(offset, time_us, queues_of(row, meta[end:]), row[5], row[7], bytes(meta[:end]))


def _offsets(first: int, count: int) -> list[list[int]]:
    """Return the offsets of messages, as facts have them."""
    return [[first, first + count - 1]]


MarkEvent = Timed | Prioritized | Grouped | Keyed


def _mark_type(event: type, number: int, name: str, meta: str, aux: str | None = None, **columns: Any) -> EventType:
    """Return the row of a mark. `meta` is what its metadata has before the queue ids, if it has anything."""
    layout = Layout(
        queue="queue; 0 with FANOUT",
        ref="first: the offset of the first message",
        count="messages",
        meta=f"{meta}; then queue ids (FANOUT)" if meta else "queue ids (FANOUT)",
        **({} if aux is None else {"aux": aux}),
    )
    since, after = "0.2.0", _PUBLISHED
    return EventType(
        event=event, number=number, name=name, since=since, listed_after=after, layout=layout, queue="queues", **columns
    )


TYPES: Final = (
    _mark_type(
        Timed,
        _TIMED,
        "timed",
        "u64 the shortest time to live in milliseconds; then u64 that of each (aux)",
        aux="1 if they differ",
        write=_write_timed,
        read=_read_timed,
        facts=_timed_facts,
        facts_text="`queues` `queue_ids` `count` `ttl_ms` `offsets`; `last_ttl_ms`, if they differ",
        line=(
            "{count:messages} of {queue_ids:queues} with a time to live of {ttl_ms:,} ",
            Choice("last_ttl_ms", "to {last_ttl_ms:,} "),
            "ms: {offsets:ranges}",
        ),
    ),
    _mark_type(
        Prioritized,
        _PRIORITIZED,
        "prioritized",
        "",
        aux="priority",
        write=_write_prioritized,
        read=_read_prioritized,
        facts=lambda event: {
            "count": event.count,
            "priority": event.priority,
            "offsets": _offsets(event.first, event.count),
        },
        facts_text="`queues` `queue_ids` `count` `priority` `offsets`",
        line=("{count:messages} of {queue_ids:queues} with priority {priority}: {offsets:ranges}",),
    ),
    _mark_type(
        Keyed,
        _KEYED,
        "keyed",
        "a key of 16 bytes for each message, zeros for none",
        write=_write_keyed,
        read=_read_keyed,
        facts=_keyed_facts,
        facts_text="`queues` `queue_ids` `count` `offsets`",
        line=("{count:messages} of {queue_ids:queues} with keys: {offsets:ranges}",),
    ),
    _mark_type(
        Grouped,
        _GROUPED,
        "grouped",
        "the codes of their groups, one for all or one for each",
        aux="codes",
        write=_write_grouped,
        read=_read_grouped,
        facts=lambda event: {
            "count": event.count,
            "groups": len({code >> 1 for code in unpack_words(event.codes)} - {0}),
            "offsets": _offsets(event.first, event.count),
        },
        facts_text="`queues` `queue_ids` `count` `groups` `offsets`",
        line=("{count:messages} of {queue_ids:queues} with groups, {groups:,} in all: {offsets:ranges}",),
    ),
)
