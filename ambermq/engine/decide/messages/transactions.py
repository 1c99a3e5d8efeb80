"""The decision on the end of a transaction.

Rule 1. A commit is one batch: the outcomes first, then the messages in the order of their posts. Pieces of messages may
        come before it, in batches of their own: nothing refers to them until the commit.
Rule 2. A commit that cannot be is a rollback, and its refusal says why. It never depends on the room of a queue: each
        post has kept its own.
Rule 3. A rollback returns the deliveries that their receiver has settled, each with a failed delivery more. Those that
        it has not settled stay with it.
Rule 4. A queue with the policy drop-head may be above its maximum after a commit. Its oldest messages are discarded at
        once, in a batch of their own: a crash between the two loses none of the committed ones.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ambermq.engine.commands import COMMITTED, ROLLBACK, Discharge, Post, Publish, TidyQueues, Transaction
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import end_nodes
from ambermq.engine.decide.messages.additions import additions_of, ttl_ms_until
from ambermq.engine.decide.messages.duplicates import Duplicates, IdWindows, duplicate_events, split_posts
from ambermq.engine.decide.messages.last_values import Keys
from ambermq.engine.decide.messages.overflow import displaced
from ambermq.engine.decide.messages.stored import published
from ambermq.engine.decide.outcome_room import limit_outcomes
from ambermq.engine.effects import Answered, Effect, OutcomeApplied, Posted, PublishDone, RefusedCommand, Unfinished
from ambermq.engine.entries.discard_reason import DiscardReason
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words
from ambermq.engine.entries.outcome import MODIFIED_FAILED, Outcome, OutcomeKind
from ambermq.engine.events import Chunked, Committed, Discarded, Event, Published, Settled, UploadEnded
from ambermq.engine.events.json_meta import JSON_FACTOR
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.state import State
from ambermq.engine.settings.queue_settings import DROP_HEAD
from ambermq.log.buffer import Buffer
from ambermq.log.format.record import RECORD
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE

__all__ = ["TRANSACTION_DECISIONS", "posted", "rolled_back"]

_PART: Final = 4
"""The outcomes and the messages of a commit each have at most this part of its batch. Other messages are stored in
pieces before it."""
_RETURNED_BYTES: Final = 16_384
"""The most bytes of the words that one event of a rollback returns."""
_OUTCOME_BYTES: Final = 160
"""The most bytes of an outcome in the log, without its texts and annotations."""
_COLUMNS: Final = ("keys", "digests", "dues", "codes", "ttls")
"""The fields of events that have numbers for each message."""
_SPARE_BYTES: Final = 8192
"""The bytes of a batch that a commit leaves free, for its header and alignment."""
_TAIL_BYTES: Final = 64
"""The bytes of a message that are in the batch of the commit, if the others come before it."""
_TIMEOUT_TEXT: Final = "the transaction was open for more than {} ms (transaction_ms_max)"


def posted(
    state: State, command: Publish, queues: tuple[int, ...], context: DecisionContext, keys: Keys
) -> list[Effect]:
    """Return the effects of a run in a transaction, for queues that have room for it."""
    if command.expires_ms:
        # By the clock of now: its steps until the commit change nothing.
        if command.lives_ms:
            command.lives_ms = [ttl_ms_until(one, context.now_us) for one in command.lives_ms]
        command.ttl_ms, command.expires_ms = ttl_ms_until(command.expires_ms, context.now_us), 0
    settings = [(queue, state.queues[queue].settings.overflow) for queue in queues]
    reserving = tuple([queue for queue, overflow in settings if overflow != DROP_HEAD])
    done = PublishDone(
        command.link, command.first_id, len(command.bodies), OutcomeKind.ACCEPTED, command.settled, after=0
    )
    return [Posted(Post(queues, command, state.elapsed_us(context.now_us), reserving, keys)), done]


def _discharge(state: State, command: Discharge, context: DecisionContext) -> Decision:
    transaction = command.transaction
    if transaction.end:
        # The rollback came with its end.
        why = _TIMEOUT_TEXT.format(context.config.transaction_ms_max)
        return [], [Answered(command.key, "") if command.fails else RefusedCommand(command.key, transaction.end, why)]
    if command.fails:
        return rolled_back(state, transaction, context), [Answered(command.key, "")]
    refusal = transaction.refusal or _missing(state, transaction) or _without_room(transaction, context)
    refusal = refusal or _too_many(transaction, context)
    if refusal:
        return rolled_back(state, transaction, context), [RefusedCommand(command.key, ROLLBACK, refusal)]
    return _committed(state, command, context)


def rolled_back(state: State, transaction: Transaction, context: DecisionContext) -> list[Event]:
    """Return the events of a rollback: the deliveries that their receiver has settled return to their queues.

    They need not be in one batch.
    """
    words: dict[int, list[int]] = {}
    for (consumer, word), retirement in transaction.retirements.items():
        if retirement.is_settled:
            words.setdefault(consumer, []).append(word)
    events: list[Event] = []
    for post in transaction.posts:
        upload = post.messages.upload
        if upload is not None and upload.id in state.uploads:
            events.append(UploadEnded(context.next_offset + len(events), context.now_us, upload.id))
    for consumer, some in words.items():
        known = state.consumers.get(consumer)
        queue = None if known is None else state.queues.get(known.queue)
        if queue is None:
            continue
        taken, _ = queue.held_by(consumer).remove(pack_words(some))
        step = min(_RETURNED_BYTES, context.batch_bytes_max // _PART // WORD_BYTES * WORD_BYTES)
        for start in range(0, len(taken), step):
            part, offset = taken[start : start + step], context.next_offset + len(events)
            events.append(Settled(offset, context.now_us, queue.id, consumer, MODIFIED_FAILED, part))
    return events


def _missing(state: State, transaction: Transaction) -> str:
    """Return which queue or delivery of a transaction is not there any more; empty if all are."""
    for post in transaction.posts:
        if any(queue not in state.queues for queue in post.queues):
            return "a queue of a message of the transaction was deleted"
    words: dict[int, list[int]] = {}
    for consumer, word in transaction.retirements:
        words.setdefault(consumer, []).append(word)
    for consumer, some in words.items():
        known = state.consumers.get(consumer)
        queue = None if known is None else state.queues.get(known.queue)
        held = EMPTY_QUEUE if queue is None else queue.held_by(consumer)
        taken, _ = held.remove(pack_words(some))
        if len(taken) < len(some) * WORD_BYTES:
            return "a delivery of the transaction is not held by its receiver any more"
    return ""


def _without_room(transaction: Transaction, context: DecisionContext) -> str:
    if transaction.posts and context.room_bytes < 2 * (transaction.size + transaction.head_bytes):
        return "the broker has no room left on its disk"
    return ""


def _too_many(transaction: Transaction, context: DecisionContext) -> str:
    """Return why the outcomes of a transaction do not fit into its batch; empty if they do."""
    if len(transaction.retirements) > (count_max := context.config.transaction_messages_max):
        return f"it settles {len(transaction.retirements)} deliveries, at most {count_max} (transaction_messages_max)"
    size = 0
    for retirement in transaction.retirements.values():
        size += WORD_BYTES + retirement.outcome.text_bytes
    if size > context.batch_bytes_max // _PART:
        return f"its outcomes have {size} bytes, at most {context.batch_bytes_max // _PART}"
    return ""


def _committed(state: State, command: Discharge, context: DecisionContext) -> Decision:
    transaction = command.transaction
    parts_of: Sequence[Post | Duplicates] = transaction.posts
    if state.deduplicating:
        parts_of = split_posts(state, transaction.posts, context)
    posts = [one for one in parts_of if isinstance(one, Post)]
    chunks, kept = _pieces(posts, context)
    events: list[Event] = list(chunks)
    offset = first = context.next_offset + len(chunks)
    emptied: list[int] = []
    for consumer, outcome, some in _outcomes(transaction):
        queue = state.queues[state.consumers[consumer].queue]
        events.append(Settled(offset, context.now_us, queue.id, consumer, outcome, pack_words(some)))
        offset += 1
        if queue.lifetime >= Lifetime.NO_MESSAGES:
            emptied.append(queue.id)
    limit_outcomes(state, events, context.config)
    elapsed_us = state.elapsed_us(context.now_us)
    windows, runs_of_posts = IdWindows(state, context.now_us), iter(kept)
    for post in parts_of:
        if isinstance(post, Duplicates):
            at = replace(context, next_offset=offset)
            made = duplicate_events(windows, post.queues, post.digests, post.producer, at)
            events += made
            offset += len(made)
            continue
        runs = next(runs_of_posts)
        parts, messages = list[Published](), post.messages
        for run in runs:
            place = offset, context.now_us
            parts.append(published(messages, post.queues, place, run.sizes, run.bodies, run.id_hashes, run.chunks))
            offset += len(run.bodies)
        # The runs of a post have consecutive offsets, so their times are those of one run.
        words, size = b"".join([one.words for one in parts]), sum([one.size for one in parts])
        whole = Published(parts[0].offset, context.now_us, post.queues, messages.producer, words, size)
        additions = additions_of(messages, whole, context.now_us - (elapsed_us - post.time_us), offset, post.keys)
        offset += len(additions)
        events += [*parts, *additions]
        windows.apply(additions)
    count = sum([len(post.messages.bodies) for post in posts])
    if count or transaction.retirements:
        events.append(Committed(offset, context.now_us, first, count, len(transaction.retirements)))
    if (size := sum(map(_size_of, events[len(chunks) :]))) > context.batch_bytes_max - _SPARE_BYTES:
        why = f"its records have {size} bytes, a batch has {context.batch_bytes_max} (batch_bytes_max)"
        return rolled_back(state, transaction, context), [RefusedCommand(command.key, ROLLBACK, why)]
    effects: list[Effect] = [OutcomeApplied(None, consumer=consumer) for consumer in sorted(_awaiting(transaction))]
    effects.append(Answered(command.key, COMMITTED))
    trimmed = {queue: None for post in posts for queue in post.queues if queue not in post.reserving}
    if trimmed or emptied:
        effects.append(Unfinished(TidyQueues(tuple(trimmed), tuple(dict.fromkeys(emptied)))))
    return events, effects


def _awaiting(transaction: Transaction) -> set[int]:
    """Return the consumers that have not settled what returns: its settlement comes before new deliveries."""
    return {
        consumer
        for (consumer, _), retirement in transaction.retirements.items()
        if retirement.outcome.returns and not retirement.is_settled
    }


def _outcomes(transaction: Transaction) -> list[tuple[int, Outcome, list[int]]]:
    """Return the outcomes of a transaction, those of a consumer that are alike together."""
    runs: dict[tuple[int, Outcome], list[int]] = {}
    for (consumer, word), retirement in transaction.retirements.items():
        runs.setdefault((consumer, retirement.outcome), []).append(word)
    return [(consumer, outcome, words) for (consumer, outcome), words in runs.items()]


class _Run(NamedTuple):
    """Messages of one event."""

    bodies: list[Buffer]
    """The messages, or the last piece of one."""
    id_hashes: list[int]
    sizes: list[int]
    """The bytes of each whole message."""
    chunks: tuple[int, ...] = ()
    """The offsets of the pieces before the last one."""


def _pieces(posts: Sequence[Post], context: DecisionContext) -> tuple[list[Event], list[list[_Run]]]:
    """Return the events of the pieces that come before the commit, and the runs of each post.

    The largest messages are stored in pieces, as many as the batch of the commit has no room for.
    """
    sizes = [len(body) for post in posts for body in post.messages.bodies]
    limit = context.config.chunk_bytes
    left = sum(sizes)
    for size in sorted(sizes, reverse=True):
        if left <= context.batch_bytes_max // _PART:
            break
        left -= size
        limit = min(limit, max(size - 1, _TAIL_BYTES))
    events: list[Event] = []
    return events, [_runs_of(post, limit, events, context) for post in posts]


def _runs_of(post: Post, limit: int, events: list[Event], context: DecisionContext) -> list[_Run]:
    """Return the runs of a post; messages above `limit` bytes are one run each, and `events` get their pieces."""
    messages = post.messages
    known = () if messages.upload is None else tuple(messages.upload.chunks)
    if messages.upload is not None and len(messages.bodies[0]) <= limit:
        return [_Run(messages.bodies, messages.id_hashes, messages.sizes, known)]
    if all(len(body) <= limit for body in messages.bodies):
        return [_Run(messages.bodies, messages.id_hashes, list(map(len, messages.bodies)))]
    runs: list[_Run] = []
    for body, id_hash, size in zip(messages.bodies, messages.id_hashes, messages.sizes, strict=True):
        if len(body) <= limit:
            if not runs or runs[-1].chunks:
                runs.append(_Run([], [], []))
            runs[-1].bodies.append(body)
            runs[-1].id_hashes.append(id_hash)
            runs[-1].sizes.append(len(body))
            continue
        end, step = len(body) - _TAIL_BYTES, context.config.chunk_bytes
        view = memoryview(body)
        pieces = [view[start : min(start + step, end)] for start in range(0, end, step)]
        first = context.next_offset + len(events)
        events += [
            Chunked(offset, context.now_us, messages.producer, piece) for offset, piece in enumerate(pieces, first)
        ]
        runs.append(_Run([body[end:]], [id_hash], [size], (*known, *range(first, first + len(pieces)))))
    return runs


def _size_of(event: Event) -> int:
    """Return the most bytes of an event of a commit in its batch."""
    if type(event) is Published:
        names = WORD_BYTES * (len(event.queues) + len(event.chunks) + 1)
        return len(event.bodies) * (RECORD.size + names) + sum(map(len, event.bodies))
    if type(event) is Settled:
        outcome = event.outcome
        text = len(outcome.condition) + len(outcome.description)
        text += sum([len(key) + len(value) + WORD_BYTES for key, value in outcome.annotations])
        return RECORD.size + len(event.words) + _OUTCOME_BYTES + JSON_FACTOR * text
    words, queues = getattr(event, "words", b""), getattr(event, "queues", ())
    for name in _COLUMNS:
        words += getattr(event, name, b"")
    return RECORD.size + len(words) + WORD_BYTES * (len(queues) + 2)


def _tidy(state: State, command: TidyQueues, context: DecisionContext) -> Decision:
    events: list[Event] = []
    for index, queue_id in enumerate(command.trimmed):
        queue = state.queues.get(queue_id)
        is_ring = queue is not None and queue.settings.overflow == DROP_HEAD
        words = displaced(queue, 0, 0, context.config) if queue is not None and is_ring else b""
        if words:
            offset = context.next_offset + len(events)
            events.append(Discarded(offset, context.now_us, queue_id, DiscardReason.LENGTH, words))
        if len(words) >= WORD_BYTES * context.config.dispatch_messages_max:
            return events, [Unfinished(TidyQueues(command.trimmed[index:], command.emptied))]
    if not command.emptied:
        return events, []
    if events:
        return events, [Unfinished(TidyQueues((), command.emptied))]
    return end_nodes(state, command.emptied, context)


TRANSACTION_DECISIONS: Final[dict[type, Callable[[State, Any, DecisionContext], Decision]]] = {
    Discharge: _discharge,
    TidyQueues: _tidy,
}
