"""The decisions on suspended links: they are suspended, resumed, and ended.

Rule 1. A link is suspended only if it leaves something unsettled, and within the limits of the configuration. Else it
        ends as a link that keeps nothing.
Rule 2. What a link holds returns in parts (release_parts.py), each with one more failed delivery.
Rule 3. An attach with the key of a suspended link ends it first, unless it resumes it.
Rule 4. Links of temporary queues, of queues that end with their consumers, and of shared subscriptions keep nothing.
Rule 5. A lock counts on while its link is suspended. At its end the message returns, as that of a link that is not.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ambermq.engine.commands import (
    AttachConsumer,
    AttachProducer,
    EndSuspended,
    ExpireLinks,
    ResendHeld,
    SettleTags,
    Suspension,
)
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.outcome_room import limit_outcomes
from ambermq.engine.decide.release_parts import CHANGES_PER_RETURN
from ambermq.engine.effects import NOW, Deliver, Effect, Unfinished
from ambermq.engine.entries.delivery_key import delivery_key, word_of
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.entries.outcome import MODIFIED_FAILED, Outcome
from ambermq.engine.events import Event, LinkEnded, LinkResumed, LinkSuspended, Settled, TagsKept
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import Consumer, Producer, State
from ambermq.engine.model.suspended_link import KEEPS_NOTHING, UNSETTLED_STATE, Keeping, LinkKey, SuspendedLink
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = [
    "SUSPENSION_DECISIONS",
    "ended_before",
    "ended_on",
    "keeping_on",
    "kept_at_start",
    "resumed",
    "suspended",
    "tags_resumed",
]

_NO_TAGS: Final["PersistentMap[bytes, None]"] = PersistentMap()


def keeping_on(state: State, queue: int, keeping: Keeping) -> Keeping:
    """Return how a consumer of a queue keeps what is unsettled: `keeping`, or nothing (rule 4)."""
    known = state.queues.get(queue)
    return keeping if known is None or may_suspend(state, known) else KEEPS_NOTHING


def may_suspend(state: State, queue: Queue) -> bool:
    """Return whether links that receive from a queue may be suspended."""
    subscription = state.subscriptions.get(queue.id)
    is_shared = subscription is not None and subscription.is_shared
    ends_by_itself = queue.lifetime is not Lifetime.PERMANENT or queue.settings.auto_delete
    return not (ends_by_itself or is_shared)


def suspended(state: State, link: Consumer | Producer, suspension: Suspension, context: DecisionContext) -> list[Event]:
    """Return the event that suspends a link which is detached; none if it must end."""
    if suspension is Suspension.NONE or not link.container:
        return []
    if isinstance(link, Consumer):
        queue = state.queues.get(link.queue)
        held = 0 if queue is None or not may_suspend(state, queue) else queue.held_by(link.id).count
    else:
        held = len(state.tags.get(link.id, _NO_TAGS))
    config = context.config
    until_us = 0
    if suspension is Suspension.OVER:
        timeout_ms = min(link.keeping.timeout_ms, 1000 * config.suspended_s_max)
        if not timeout_ms:
            return []
        until_us = state.elapsed_us(context.now_us) + 1000 * timeout_ms
    is_full = len(state.suspended) >= config.suspended_links_max
    if not held or is_full or state.suspended_held + held > config.suspended_deliveries_max:
        return []
    return [LinkSuspended(context.next_offset, context.now_us, link.id, until_us)]


def kept_at_start(state: State, context: DecisionContext) -> tuple[int, ...]:
    """Return the links that a start of the broker keeps, in order, as many as the limits allow."""
    kept: list[int] = []
    held_max, timeout_min = context.config.suspended_deliveries_max, 1
    links: list[SuspendedLink | Consumer | Producer] = [*state.suspended.values()]
    links += [one for one in state.consumers.values() if one.container]
    links += [one for one in state.producers.values() if one.container and one.id in state.tags]
    for link in sorted(links, key=lambda one: one.id):
        keeping = link.keeping
        if keeping.durability != UNSETTLED_STATE or keeping.timeout_ms < timeout_min:
            continue
        count = _held_count(state, link)
        if count and count <= held_max and len(kept) < context.config.suspended_links_max:
            kept.append(link.id)
            held_max -= count
    return tuple(kept)


def _held_count(state: State, link: SuspendedLink | Consumer | Producer) -> int:
    queue = None if isinstance(link, Producer) else state.queues.get(link.queue)
    if queue is None:
        return len(state.tags.get(link.id, _NO_TAGS))
    return queue.held_by(link.id).count if may_suspend(state, queue) else 0


def ended_before(state: State, command: AttachConsumer | AttachProducer, context: DecisionContext) -> list[Event]:
    """Return a part of the end of a suspended link that an attach does not resume; none if there is none."""
    if not state.suspended:
        return []
    known = state.suspended_ids.get(key_of(command))
    if known is None or command.resumes is not None:
        return []
    return _end_part(state, state.suspended[known], context)


def key_of(command: AttachConsumer | AttachProducer) -> LinkKey:
    """Return the key of the link that a peer attaches."""
    return command.by, command.container, command.link, isinstance(command, AttachConsumer)


def ended_on(state: State, queue: int, command: AttachConsumer, context: DecisionContext) -> list[Event]:
    """Return a part of the end of a suspended link that an attach to a queue does not resume; none if there is none.

    That is one of the same key at another queue, and each other one of a subscription that is not shared: that has one
    link at a time.
    """
    if not state.suspended:
        return []
    known = state.suspended_ids.get(key_of(command), 0)
    if known and state.suspended[known].queue != queue:
        return _end_part(state, state.suspended[known], context)
    subscription = state.subscriptions.get(queue)
    if subscription is None or subscription.is_shared:
        return []
    others = [one for one in state.suspended.values() if one.queue == queue and one.id != known]
    return _end_part(state, min(others, key=lambda one: one.id), context) if others else []


def resumed(
    state: State, command: AttachConsumer, queue: int, consumer: int, context: DecisionContext
) -> tuple[list[Event], tuple[int, ...]]:
    """Return the events by which a new consumer resumes a suspended link, and the keys of what this held.

    `context` is that after the new consumer's attach. The outcomes that the peer has reached apply now.
    """
    known = state.suspended.get(state.suspended_ids.get(key_of(command), 0))
    if command.resumes is None or known is None or known.queue != queue:
        return [], ()
    held = _keys_held(state.queues[queue], known.id)
    events: list[Event] = [LinkResumed(context.next_offset, context.now_us, known.id, consumer)]
    for outcome, words in _by_outcome(held, command.resumes).items():
        offset = context.next_offset + len(events)
        events.append(Settled(offset, context.now_us, queue, consumer, outcome, pack_words(words)))
    limit_outcomes(state, events, context.config)
    return events, held


def _keys_held(queue: Queue, link: int) -> tuple[int, ...]:
    """Return the keys of the deliveries that a link holds."""
    words = unpack_words(queue.held_by(link).to_bytes())
    if not queue.settings.lock_ms:
        return words
    return tuple([delivery_key(word, queue.entries.get(word >> 16, PLAIN).attempt) for word in words])


def _by_outcome(held: tuple[int, ...], resumes: Mapping[int, Outcome | None]) -> dict[Outcome, list[int]]:
    words: dict[Outcome, list[int]] = {}
    for key in held:
        outcome = resumes.get(key)
        if outcome is not None:
            words.setdefault(outcome, []).append(word_of(key))
    return words


def tags_resumed(
    state: State, command: AttachProducer, producer: int, context: DecisionContext
) -> tuple[list[Event], tuple[bytes, ...]]:
    """Return the events by which a new producer resumes a suspended link, and the tags that stay kept.

    Tags that the peer does not name any more are settled by it.
    """
    known = state.suspended.get(state.suspended_ids.get(key_of(command), 0))
    if command.resumes is None or known is None:
        return [], ()
    tags = sorted(state.tags.get(known.id, _NO_TAGS))
    events: list[Event] = [LinkResumed(context.next_offset, context.now_us, known.id, producer)]
    settled = [] if command.is_incomplete else [tag for tag in tags if tag not in command.resumes]
    if settled:
        events.append(TagsKept(context.next_offset + 1, context.now_us, producer, (), tuple(settled)))
    return events, tuple([tag for tag in tags if tag not in settled]) if settled else tuple(tags)


def _resend(state: State, command: ResendHeld, context: DecisionContext) -> Decision:
    consumer = state.consumers.get(command.consumer)
    queue = None if consumer is None else state.queues.get(consumer.queue)
    if queue is None:
        return [], []
    held = set(unpack_words(queue.held_by(command.consumer).remove(pack_words(command.words))[0]))
    elapsed_us = state.elapsed_us(context.now_us)
    effects: list[Effect] = []
    for word in command.words:
        # One message each: a large one is read and held by itself. The link waits for an answer to each word.
        words, entries = ((word,), queue.columns_of((word,))) if word in held else ((), [])
        effect = Deliver(command.consumer, command.link, queue.id, words, entries, after=NOW, is_resumed=True)
        effect.elapsed_us = elapsed_us
        effects.append(effect)
    return [], effects


def _settle_tags(state: State, command: SettleTags, context: DecisionContext) -> Decision:
    known = state.tags.get(command.producer, _NO_TAGS)
    settled = tuple([tag for tag in command.tags if tag in known])
    if not settled:
        return [], []
    return [TagsKept(context.next_offset, context.now_us, command.producer, (), settled)], []


def _expire(state: State, command: ExpireLinks, context: DecisionContext) -> Decision:
    """Set the ends of suspended links; those without a timeout end now, each in a part of the decision."""
    events: list[Event] = []
    now_us = state.elapsed_us(context.now_us)
    for index, link in enumerate(command.links):
        known = state.suspended.get(link)
        if known is None or known.until_us:
            continue
        timeout_ms = min(known.keeping.timeout_ms, 1000 * context.config.suspended_s_max)
        if timeout_ms:
            offset = context.next_offset + len(events)
            events.append(LinkSuspended(offset, context.now_us, link, now_us + 1000 * timeout_ms))
            continue
        after = replace(context, next_offset=context.next_offset + len(events))
        part = _end_part(fold(state, events), known, after)
        rest = command.links[index + (type(part[-1]) is LinkEnded) :]
        return events + part, [Unfinished(ExpireLinks(rest))] if rest else []
    return events, []


def _end(state: State, command: EndSuspended, context: DecisionContext) -> Decision:
    known = state.suspended.get(command.link)
    if known is None:
        return [], []
    is_due = 0 < known.until_us <= state.elapsed_us(context.now_us)
    if not is_due and not command.is_forced:
        return [], []
    part = _end_part(state, known, context)
    return part, [] if type(part[-1]) is LinkEnded else [Unfinished(command)]


def _end_part(state: State, link: SuspendedLink, context: DecisionContext) -> list[Event]:
    """Return the events that return the first messages of a suspended link; with the last ones the link ends."""
    events: list[Event] = []
    queue = state.queues.get(link.queue)
    held = None if queue is None else queue.held_by(link.id)
    if held is not None and held.count:
        count_max = max(context.config.tick_changes_max // CHANGES_PER_RETURN, 1)
        words = held.head(min(held.count, count_max))
        events.append(Settled(context.next_offset, context.now_us, link.queue, link.id, MODIFIED_FAILED, words))
        if held.count * WORD_BYTES > len(words):
            return events
    events.append(LinkEnded(context.next_offset + len(events), context.now_us, link.id))
    return events


SUSPENSION_DECISIONS: dict[type, Callable[[State, Any, DecisionContext], Decision]] = {
    ResendHeld: _resend,
    SettleTags: _settle_tags,
    ExpireLinks: _expire,
    EndSuspended: _end,
}
