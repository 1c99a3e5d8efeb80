"""The records of messages that their queues take: in one run, in several, or in pieces if they are large.

Rule 1. A run's messages fit into half of a batch, and all its heads into the other half.
Rule 2. What says when messages expire or are due, and their group, priority, keys and ids are behind them, in the same
        batch.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ambermq.engine.commands import Publish
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.messages.additions import additions_of
from ambermq.engine.decide.messages.last_values import KEYED_MAX, NO_KEYS, Keys, part_of
from ambermq.engine.effects import AT_CLOSE, NOW, PublishDone
from ambermq.engine.entries.entry_word import WORD_BYTES, make_run
from ambermq.engine.entries.id_digest import DIGEST_BYTES
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.events import Chunked, Event, Published
from ambermq.log.buffer import Buffer
from ambermq.log.config import BATCH_OVERHEAD_BYTES
from ambermq.log.format.record import RECORD

__all__ = ["event_messages_max", "head_bytes", "published", "stored"]

_RECORD_BYTES: Final = RECORD.size
_DESCRIBED_MAX: Final = 1000
"""The maximum of messages in one event that are scheduled, have groups or expire at different times: an event in the
same batch has a word or two for each."""


def stored(
    command: Publish, queues: tuple[int, ...], context: DecisionContext, size: int, keys: Keys = NO_KEYS
) -> Decision:
    """Return the decision that publishes a run to queues that have room for it; `size` is that of its records."""
    config, count = context.config, len(command.bodies)
    after = AT_CLOSE if command.durable else NOW
    done = PublishDone(command.link, command.first_id, count, OutcomeKind.ACCEPTED, command.settled, after=after)
    if command.size > config.chunk_bytes or command.upload is not None:
        return _large_run(command, queues, context, keys), [done]
    messages_max = count if size <= context.batch_bytes_max // 2 else event_messages_max(queues, context)
    is_plain = command.priority == PRIORITY_DEFAULT and not (keys or command.groups or command.tag)
    is_plain &= command.identities is None and not command.expires_ms
    if messages_max == count and is_plain and not (command.ttl_ms or command.time_ms or command.delay_ms):
        # The common case.
        place, bodies = (context.next_offset, context.now_us), command.bodies
        return [published(command, queues, place, list(map(len, bodies)), bodies, command.id_hashes)], [done]
    events: list[Event] = []
    offset = done.offset = context.next_offset
    if keys:
        messages_max = min(messages_max, KEYED_MAX)
    if command.identities is not None:
        # The event of the ids has its queues, and a word and a digest for each message.
        head = head_bytes(queues)
        left = context.batch_bytes_max // 2 - BATCH_OVERHEAD_BYTES - head
        messages_max = min(messages_max, max(1, left // (head + WORD_BYTES + DIGEST_BYTES)))
    if command.groups or command.time_ms or command.delay_ms or command.lives_ms:
        messages_max = min(messages_max, _DESCRIBED_MAX)
    for start in range(0, count, messages_max):
        part = command if messages_max >= count else command.part(start, start + messages_max)
        place, bodies = (offset, context.now_us), part.bodies
        event = published(part, queues, place, list(map(len, bodies)), bodies, part.id_hashes)
        offset += len(part.bodies)
        additions = additions_of(part, event, context.now_us, offset, part_of(keys, start, start + messages_max))
        events += [event, *additions]
        offset += len(additions)
    return events, [done]


def published(
    command: Publish,
    queues: tuple[int, ...],
    place: tuple[int, int],
    sizes: list[int],
    bodies: Sequence[Buffer],
    id_hashes: Sequence[int],
    chunks: tuple[int, ...] = (),
) -> Published:
    """Return the event of messages of a run, at the offset and time of `place`; `sizes` are those of the whole ones.

    With `chunks`, the offsets of pieces before it, it is that of one message, and its body the last piece.
    """
    offset, now_us = place
    words, size = make_run(offset, sizes)
    return Published(offset, now_us, queues, command.producer, words, size, command.durable, chunks, bodies, id_hashes)


def head_bytes(queues: tuple[int, ...]) -> int:
    """Return the maximum bytes of a message's record without the message."""
    return _RECORD_BYTES + WORD_BYTES * len(queues)


def event_messages_max(queues: tuple[int, ...], context: DecisionContext) -> int:
    """Return the maximum of messages for these queues in one event."""
    return max(1, (context.batch_bytes_max // 2 - BATCH_OVERHEAD_BYTES) // head_bytes(queues))


def _large_run(command: Publish, queues: tuple[int, ...], context: DecisionContext, keys: Keys) -> list[Event]:
    """Return the events of a run that may exceed a batch: one run for each message, in chunks if it is large."""
    events: list[Event] = []
    if command.upload is not None:
        chunks = tuple(command.upload.chunks)
        place = context.next_offset, context.now_us
        event = published(command, queues, place, command.sizes, command.bodies, command.id_hashes, chunks)
        return [event, *additions_of(command, event, context.now_us, context.next_offset + 1, keys)]
    for index, (body, id_hash) in enumerate(zip(command.bodies, command.id_hashes, strict=True)):
        piece_bytes = context.config.chunk_bytes
        view = memoryview(body)
        pieces = [view[start : start + piece_bytes] for start in range(0, len(view), piece_bytes)] or [view]
        chunks = tuple(range(context.next_offset, context.next_offset + len(pieces) - 1))
        events += [
            Chunked(offset, context.now_us, command.producer, piece)
            for offset, piece in zip(chunks, pieces[:-1], strict=True)
        ]
        offset = context.next_offset + len(chunks)
        last = pieces[-1:] if chunks else [body]
        event = published(command, queues, (offset, context.now_us), [len(view)], last, [id_hash], chunks)
        is_described = command.lives_ms or command.groups or command.times_ms or command.identities is not None
        part = command.part(index, index + 1) if is_described else command
        additions = additions_of(part, event, context.now_us, offset + 1, part_of(keys, index, index + 1))
        events += [event, *additions]
        context = replace(context, next_offset=offset + 1 + len(additions))
    return events
