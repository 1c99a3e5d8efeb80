"""Events of messages that leave a queue for another one, or wait beside it until they can.

A moved message has a new place in the order of the log: the offset of its record is its entry on the queues that it
comes to. The message itself stays in its publish record. A run of n messages is n records, one for each, so every
record says by itself what happened to its message.
"""

from typing import Final, final

from msgspec import Struct, json

from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, ranges_of, total_size, unpack_words
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, SizeBound
from ambermq.engine.events.json_meta import encode_json
from ambermq.engine.events.line_template import Choice
from ambermq.engine.events.record_draft import RecordDraft

__all__ = ["Moved", "SetAside", "moved_words"]

_SET_ASIDE: Final = 28
_MOVED: Final = 29
_LISTED_AFTER: Final = 16
"""The events follow `damaged` in lists."""


@final
class SetAside(Struct):
    """A run of messages waits beside its queue, because its dead-letter target is gone, full or reaches no queue."""

    offset: int
    time_us: int
    queue: int
    reason: MoveReason
    words: bytes


def _write_set_aside(draft: RecordDraft, event: SetAside) -> int:
    count = len(event.words) // WORD_BYTES
    return draft.add(
        _SET_ASIDE, timestamp_us=event.time_us, queue=event.queue, count=count, aux=event.reason, meta=event.words
    )


def _set_aside_facts(event: SetAside) -> Facts:
    facts: Facts = {"count": len(event.words) // WORD_BYTES, "bytes": total_size(event.words)}
    return facts | {"reason": event.reason.text, "offsets": ranges_of(event.words)}


@final
class Moved(Struct):
    """A run of waiting messages came from the queue `source` to each of `targets`; the n-th has the n-th offset."""

    offset: int
    time_us: int
    source: int
    targets: tuple[int, ...]
    reason: MoveReason
    words: bytes
    """The entries on `source`, packed."""
    by: str = ""
    """The user that caused it; empty if none is known."""

    @property
    def queues(self) -> tuple[int, ...]:
        """The queues that it is about, the source first."""
        return (self.source, *self.targets)


class _MovedRest(Struct, omit_defaults=True):
    """The JSON after the word of a Moved record; most have none."""

    targets: tuple[int, ...] = ()
    by: str = ""


_decode_rest: Final = json.Decoder(_MovedRest).decode


def _write_moved(draft: RecordDraft, event: Moved) -> int:
    several = event.targets if len(event.targets) > 1 else ()
    rest = encode_json(_MovedRest(several, event.by)) if several or event.by else b""
    first = 0
    for start in range(0, len(event.words), WORD_BYTES):
        offset = draft.add(
            _MOVED,
            timestamp_us=event.time_us,
            queue=event.targets[0],
            ref=event.source,
            count=1,
            aux=event.reason,
            meta=event.words[start : start + WORD_BYTES] + rest,
        )
        first = offset if not start else first
    return first


def _read_moved(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Moved:
    rest = _decode_rest(meta[WORD_BYTES:]) if len(meta) > WORD_BYTES else _MovedRest()
    targets = rest.targets or (row[4],)
    return Moved(offset, time_us, row[5], targets, MoveReason(row[8]), meta[:WORD_BYTES], rest.by)


def moved_words(event: Moved) -> bytes:
    """Return the entries of the messages on the queues that they came to, packed."""
    return pack_words([event.offset + n << 16 | word & 0xFFFF for n, word in enumerate(unpack_words(event.words))])


def _moved_facts(event: Moved) -> Facts:
    count = len(event.words) // WORD_BYTES
    facts: Facts = {"count": count, "bytes": total_size(event.words), "reason": event.reason.text}
    facts |= {"source_id": event.source, "target_ids": list(event.targets), "offsets": ranges_of(event.words)}
    return facts | {"new_offsets": [[event.offset, event.offset + count - 1]]}


MoveEvent = SetAside | Moved

TYPES: Final = (
    EventType(
        event=SetAside,
        number=_SET_ASIDE,
        name="set-aside",
        since="0.2.0",
        listed_after=_LISTED_AFTER,
        layout=Layout(queue="queue", count="words", aux="reason", meta="the words"),
        write=_write_set_aside,
        read=lambda offset, time_us, row, meta: SetAside(offset, time_us, row[4], MoveReason(row[8]), meta),
        keys=IndexKeys.WORDS,
        bound=SizeBound.SETTLED,
        queue="queue",
        facts=_set_aside_facts,
        facts_text="`queue` `queue_id` `count` `bytes` `reason` `offsets`",
        line=("{count:messages} of {queue_id:queue} set aside ({reason}): {offsets:ranges}",),
    ),
    EventType(
        event=Moved,
        number=_MOVED,
        name="moved",
        since="0.2.0",
        listed_after=_LISTED_AFTER,
        layout=Layout(
            queue="first target",
            ref="source",
            count="1",
            aux="reason",
            meta="the word on `source`; then JSON `{targets, by}`, if there are several targets or a user",
        ),
        write=_write_moved,
        read=_read_moved,
        json=_MovedRest,
        keys=IndexKeys.WORDS,
        bound=SizeBound.NAMES,
        queue="queues",
        facts=_moved_facts,
        facts_text=(
            "`queues` `queue_ids`, the source first, `source_id` `target_ids` `count` `bytes` `reason` `offsets` "
            "`new_offsets`; `by`, the user, if it is known"
        ),
        line=(
            "{count:messages} of {source_id:queue} ",
            Choice("reason", "moved", texts={"copied": "copied"}),
            " to {target_ids:queues} ({reason}): {offsets:ranges}",
        ),
    ),
)
