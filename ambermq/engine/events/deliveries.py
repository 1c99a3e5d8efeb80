"""Events of messages on queues: acquired, settled, purged, damaged. A run of any length is one record."""

from typing import Final, final

from msgspec import Struct, json

from ambermq.engine.entries.discard_reason import DiscardReason
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, ranges_of, total_size, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, REJECTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, LinkColumn, SizeBound
from ambermq.engine.events.json_meta import encode_json
from ambermq.engine.events.line_template import Choice, Listed
from ambermq.engine.events.record_draft import RecordDraft
from ambermq.engine.events.user_meta import UserMeta, by_meta, read_by

__all__ = ["Acquired", "Damaged", "Discarded", "Purged", "Settled"]

_ACQUIRED: Final = 13
_SETTLED: Final = 14
_DAMAGED: Final = 16
_DISCARDED: Final = 27
_PLAIN_OUTCOMES: Final = (ACCEPTED, REJECTED, RELEASED)


@final
class Acquired(Struct):
    """A run of deliveries: `words` are dealt to `consumers` in turn, one message each, beginning with the first."""

    offset: int
    time_us: int
    queue: int
    consumers: tuple[int, ...]
    words: bytes


def _write_acquired(draft: RecordDraft, event: Acquired) -> int:
    consumers, words = event.consumers, event.words
    consumer_count = len(consumers)
    return draft.add(
        _ACQUIRED,
        timestamp_us=event.time_us,
        queue=event.queue,
        ref=consumers[0],
        count=len(words) // WORD_BYTES,
        aux=consumer_count,
        meta=words if consumer_count == 1 else pack_words(consumers) + words,
    )


def _read_acquired(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Acquired:
    split = 0 if row[8] == 1 else row[8] * WORD_BYTES
    consumers = unpack_words(meta[:split]) if split else (row[5],)
    return Acquired(offset, time_us, row[4], consumers, meta[split:])


def _acquired_facts(event: Acquired) -> Facts:
    consumers, offsets = list(event.consumers), ranges_of(event.words)
    return {"count": len(event.words) // WORD_BYTES, "consumers": consumers, "offsets": offsets}


@final
class Settled(Struct):
    """A consumer settled a run of its deliveries with one outcome."""

    offset: int
    time_us: int
    queue: int
    consumer: int
    outcome: Outcome
    words: bytes


class OutcomeRest(Struct, omit_defaults=True):
    """The JSON after the words of a Settled record; a plain outcome has none."""

    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: tuple[tuple[bytes, bytes], ...] = ()
    condition: str = ""
    description: str = ""


_decode_rest: Final = json.Decoder(OutcomeRest).decode


def _write_settled(draft: RecordDraft, event: Settled) -> int:
    outcome = event.outcome
    rest = b""
    if outcome not in _PLAIN_OUTCOMES:
        rest = encode_json(
            OutcomeRest(
                outcome.delivery_failed,
                outcome.undeliverable_here,
                outcome.annotations,
                outcome.condition,
                outcome.description,
            )
        )
    return draft.add(
        _SETTLED,
        timestamp_us=event.time_us,
        queue=event.queue,
        ref=event.consumer,
        count=len(event.words) // WORD_BYTES,
        aux=outcome.kind,
        meta=event.words + rest,
    )


def _read_settled(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Settled:
    split = row[7] * WORD_BYTES
    outcome = ACCEPTED
    if row[8] != OutcomeKind.ACCEPTED or len(meta) > split:
        rest = _decode_rest(meta[split:]) if len(meta) > split else OutcomeRest()
        outcome = Outcome(
            OutcomeKind(row[8]),
            rest.delivery_failed,
            rest.undeliverable_here,
            rest.annotations,
            rest.condition,
            rest.description,
        )
    return Settled(offset, time_us, row[4], row[5], outcome, meta[:split])


def _settled_facts(event: Settled) -> Facts:
    outcome = event.outcome
    facts: Facts = {"count": len(event.words) // WORD_BYTES, "bytes": total_size(event.words)}
    facts |= {"consumer": event.consumer, "outcome": outcome.kind.name.lower(), "offsets": ranges_of(event.words)}
    if outcome.kind is OutcomeKind.MODIFIED:
        facts |= {"delivery_failed": outcome.delivery_failed, "undeliverable_here": outcome.undeliverable_here}
    facts |= {"condition": outcome.condition} if outcome.condition else {}
    return facts | ({"description": outcome.description} if outcome.description else {})


def _annotation_count(event: Settled) -> Facts:
    outcome = event.outcome
    has_annotations = outcome.kind is OutcomeKind.MODIFIED and outcome.annotations
    return {"annotations": len(outcome.annotations)} if has_annotations else {}


@final
class Purged(Struct):
    """A queue was purged of its available messages below the offset `before`."""

    offset: int
    time_us: int
    queue: int
    before: int
    scheduled: int = 0
    """1 if messages that are scheduled for later are purged too."""
    by: str = ""
    """The user that caused it; empty if none is known."""


@final
class Damaged(Struct):
    """The bytes of a run of messages are damaged: the queue sets the messages aside and never delivers them."""

    offset: int
    time_us: int
    queue: int
    words: bytes


def _write_damaged(draft: RecordDraft, event: Damaged) -> int:
    # The record of a single message has no count: old readers expect that.
    count = len(event.words) // WORD_BYTES
    return draft.add(
        _DAMAGED,
        timestamp_us=event.time_us,
        queue=event.queue,
        count=count if count > 1 else 0,
        meta=event.words,
    )


def _damaged_facts(event: Damaged) -> Facts:
    count = len(event.words) // WORD_BYTES
    return {"count": count, "bytes": total_size(event.words), "offsets": ranges_of(event.words)}


@final
class Discarded(Struct):
    """A run of waiting messages was discarded, for a reason."""

    offset: int
    time_us: int
    queue: int
    reason: DiscardReason
    words: bytes
    by: str = ""
    """The user that caused it; empty if none is known, or if the broker did it by itself."""
    copy: int = 0
    """The offset of the edited copy that took the place of the only message; 0 without one."""


def _write_discarded(draft: RecordDraft, event: Discarded) -> int:
    count = len(event.words) // WORD_BYTES
    meta = event.words + by_meta(event)
    return draft.add(
        _DISCARDED,
        timestamp_us=event.time_us,
        queue=event.queue,
        ref=event.copy,
        count=count,
        aux=event.reason,
        meta=meta,
    )


def _read_discarded(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Discarded:
    split = row[7] * WORD_BYTES
    return Discarded(offset, time_us, row[4], DiscardReason(row[8]), meta[:split], read_by(meta[split:]), row[5])


def _discarded_facts(event: Discarded) -> Facts:
    facts: Facts = {"count": len(event.words) // WORD_BYTES, "bytes": total_size(event.words)}
    facts |= {"reason": event.reason.text, "offsets": ranges_of(event.words)}
    return facts | ({"copy": event.copy} if event.copy else {})


DeliveryEvent = Acquired | Settled | Purged | Damaged | Discarded

TYPES: Final = (
    EventType(
        event=Acquired,
        number=_ACQUIRED,
        name="acquired",
        layout=Layout(
            queue="queue",
            ref="first consumer",
            count="words",
            aux="consumers",
            meta="consumer ids, if there are several; then the words",
        ),
        write=_write_acquired,
        read=_read_acquired,
        keys=IndexKeys.WORDS,
        bound=SizeBound.DEALT,
        link=LinkColumn.REF,
        queue="queue",
        facts=_acquired_facts,
        facts_text="`queue` `queue_id` `count` `consumers` `offsets`",
        line=("{count:messages} of {queue_id:queue} to {consumers:links}: {offsets:ranges}",),
    ),
    EventType(
        event=Settled,
        number=_SETTLED,
        name="settled",
        layout=Layout(
            queue="queue",
            ref="consumer",
            count="words",
            aux="outcome",
            meta="the words; then JSON with the outcome's other fields",
        ),
        write=_write_settled,
        read=_read_settled,
        json=OutcomeRest,
        keys=IndexKeys.WORDS,
        bound=SizeBound.SETTLED,
        link=LinkColumn.REF,
        queue="queue",
        facts=_settled_facts,
        facts_text=(
            "`queue` `queue_id` `count` `bytes` `consumer` `outcome` `offsets`; "
            "`delivery_failed` `undeliverable_here` of the outcome modified; `condition` `description` of an error"
        ),
        line=(
            "{count:messages} of {queue_id:queue} {outcome}",
            Listed(
                " ({})",
                (
                    Choice("delivery_failed", texts={True: "delivery failed", False: "delivery not failed"}),
                    Choice("undeliverable_here", texts={True: "undeliverable here"}),
                    Choice("annotations", "{annotations} annotations"),
                    Choice("condition", "{condition}"),
                    Choice("description", "{description}"),
                ),
            ),
            " by {consumer:link}: {offsets:ranges}",
        ),
        line_facts=_annotation_count,
    ),
    EventType(
        event=Purged,
        number=15,
        name="purged",
        layout=Layout(
            queue="queue",
            ref="before: the offset below which messages are purged",
            count="scheduled: 1 if scheduled messages are purged too",
            meta="JSON `{by}`, or empty",
        ),
        meta=by_meta,
        json=UserMeta,
        bound=SizeBound.NAMES,
        keys=IndexKeys.NODE,
        queue="queue",
        facts=lambda event: {"before": event.before} | ({"scheduled": True} if event.scheduled else {}),
        facts_text="`queue` `queue_id` `before`; `scheduled`, if it is true; `by`, the user, if it is known",
        line=("queue {queue_id:queue} purged: its available messages below offset {before} are deleted",),
    ),
    EventType(
        event=Damaged,
        number=_DAMAGED,
        name="damaged",
        layout=Layout(queue="queue", count="words; 0 for one", meta="the words"),
        write=_write_damaged,
        read=lambda offset, time_us, row, meta: Damaged(offset, time_us, row[4], meta),
        keys=IndexKeys.WORDS,
        bound=SizeBound.SETTLED,
        queue="queue",
        facts=_damaged_facts,
        facts_text="`queue` `queue_id` `count` `bytes` `offsets`",
        line=(
            "{count:messages} of {queue_id:queue} cannot be read and ",
            Choice("count", "are", {1: "is"}),
            " set aside: {offsets:ranges}",
        ),
    ),
    EventType(
        event=Discarded,
        number=_DISCARDED,
        name="discarded",
        since="0.2.0",
        listed_after=_DAMAGED,
        layout=Layout(
            queue="queue",
            ref="copy: the offset of the edited copy of the message, or 0",
            count="words",
            aux="reason",
            meta="the words; then JSON `{by}`, if a user is known",
        ),
        write=_write_discarded,
        read=_read_discarded,
        json=UserMeta,
        keys=IndexKeys.WORDS,
        bound=SizeBound.SETTLED,
        queue="queue",
        facts=_discarded_facts,
        facts_text=(
            "`queue` `queue_id` `count` `bytes` `reason` `offsets`; `by`, the user, if it is known; `copy`, the offset "
            "of an edited copy"
        ),
        line=(
            "{count:messages} of {queue_id:queue} discarded ({reason}): {offsets:ranges}",
            Choice("copy", ", edited copy {copy}"),
        ),
    ),
)
