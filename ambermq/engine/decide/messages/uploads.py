"""The decisions on messages that arrive piece by piece.

Rule 1. A piece is stored if its producer is there and the disk has room. The message is routed when it is whole: one
        of which a piece was refused is refused.
Rule 2. A message that is published takes its chunk records. Whatever else becomes of it, they are ended.
Rule 3. A message whose delivery has begun is acquired as it is published, before any dispatch. If it reaches another
        queue too, may not be offered now, or has a group, it is not: the queue has it as any message.
"""

from collections.abc import Callable
from typing import Any, Final

from ambermq.engine.commands import CutThrough, EndUpload, StoreChunk
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import record_count
from ambermq.engine.effects import AT_CLOSE, NOW, ChunkStored, CutThroughEnded
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.events import (
    Acquired,
    Chunked,
    Event,
    Grouped,
    Keyed,
    Published,
    Scheduled,
    Settled,
    Timed,
    UploadEnded,
)
from ambermq.engine.model.state import State
from ambermq.log.config import BATCH_OVERHEAD_BYTES
from ambermq.log.format.record import RECORD

__all__ = ["UPLOAD_DECISIONS", "complete_cut_through", "end_upload"]

_LATER: Final = (Scheduled, Grouped, Keyed)
"""The events by which a message waits, although its consumer has credit."""


def _store_chunk(state: State, command: StoreChunk, context: DecisionContext) -> Decision:
    upload, size = command.upload, len(command.piece)
    stored = ChunkStored(command.link, upload, size)
    if upload.is_ended or upload.is_refused:
        stored.after = NOW
        return [], [stored]
    if command.producer not in state.producers:
        stored.condition, stored.description, stored.after = "amqp:not-found", "the producer is gone", NOW
        return [], [stored]
    if context.room_bytes < size + RECORD.size + BATCH_OVERHEAD_BYTES:
        stored.condition, stored.after = "amqp:resource-limit-exceeded", NOW
        stored.description = "the broker has no room left on its disk"
        return [], [stored]
    offset = context.next_offset
    return [Chunked(offset, context.now_us, command.producer, command.piece, upload.id or offset)], [stored]


def end_upload(state: State, command: EndUpload, context: DecisionContext) -> Decision:
    """Return the events of the end of an upload: none if it has no chunk records, or its message is published."""
    upload = command.upload.id
    return [UploadEnded(context.next_offset, context.now_us, upload)] if upload in state.uploads else [], []


def complete_cut_through(
    cut_through: CutThrough, events: list[Event], *, first_offset: int, now_us: int
) -> tuple[list[Event], CutThroughEnded]:
    """Return what follows the events of a publish whose delivery has begun, and the effect for its consumer.

    `first_offset` is that of these events.
    Its consumer acquires the message if these events publish it, for its queue alone; else the delivery is aborted.
    """
    ended = CutThroughEnded(cut_through.consumer, cut_through.link, cut_through)
    published = next((event for event in events if type(event) is Published), None)
    waits = any(isinstance(event, _LATER) or (type(event) is Timed and not event.ttl_ms) for event in events)
    if published is None or published.queues != (cut_through.queue,) or waits:
        return [], ended
    queue, consumer, words = cut_through.queue, cut_through.consumer, published.words
    offset = first_offset + record_count(events)
    taken: list[Event] = [Acquired(offset, now_us, queue, (consumer,), words)]
    if cut_through.settled:
        taken.append(Settled(offset + 1, now_us, queue, consumer, ACCEPTED, words))
    (ended.word,), ended.after = unpack_words(words), AT_CLOSE
    return taken, ended


UPLOAD_DECISIONS: Final[dict[type, Callable[[State, Any, DecisionContext], Decision]]] = {
    StoreChunk: _store_chunk,
    EndUpload: end_upload,
}
