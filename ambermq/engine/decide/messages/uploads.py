"""The decisions on messages that arrive piece by piece.

Rule 1. A piece is stored if its producer is there and the disk has room. The message is routed when it is whole.
Rule 2. A message that is published takes its chunk records. Whatever else becomes of it, they are ended.
"""

from collections.abc import Callable
from typing import Any, Final

from ambermq.engine.commands import EndUpload, StoreChunk
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.effects import NOW, ChunkStored
from ambermq.engine.events import Chunked, UploadEnded
from ambermq.engine.model.state import State
from ambermq.log.config import BATCH_OVERHEAD_BYTES
from ambermq.log.format.record import RECORD

__all__ = ["UPLOAD_DECISIONS", "end_upload"]


def _store_chunk(state: State, command: StoreChunk, context: DecisionContext) -> Decision:
    upload, size = command.upload, len(command.piece)
    stored = ChunkStored(command.link, upload, size)
    if upload.is_ended:
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


UPLOAD_DECISIONS: Final[dict[type, Callable[[State, Any, DecisionContext], Decision]]] = {
    StoreChunk: _store_chunk,
    EndUpload: end_upload,
}
