"""The decision on messages for queues with a dedup window: each such queue takes a message-id once.

Rule 1. Each queue of a route decides by itself. A message that every queue has already is accepted, and not stored.
Rule 2. A run has the same result as its messages one by one. So it is decided in groups of neighbours that the same
        queues take; a group ends where an id comes again. What a group stores is known to the next one.
Rule 3. Only messages that are stored leave their ids, in the batch of the messages.
Rule 4. In a transaction its commit decides, in the order of the posts.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from ambermq.engine.commands import Identities, Post, Publish
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import context_after
from ambermq.engine.decide.messages.last_values import part_of
from ambermq.engine.decide.messages.overflow import Added
from ambermq.engine.effects import AT_CLOSE, Effect, PublishDone, Unfinished
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words
from ambermq.engine.entries.id_digest import NO_DIGEST, digest_of
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import Chunked, Duplicated, Event, Identified, Prioritized, Published, Scheduled, Timed
from ambermq.engine.model.queue_parts.id_window import IdWindow
from ambermq.engine.model.state import State
from ambermq.log.buffer import Buffer

__all__ = ["Duplicates", "IdWindows", "deduplicated", "duplicate_events", "split_posts", "windowed"]

_LOOKED_MAX: Final = 256
"""The maximum of messages of a run that one decision looks at; the others are decided next."""
_WINDOWED_MAX: Final = 1000
"""The maximum of queues with a dedup window on a route: what they remember is in the batch of the message."""
_ADDITIONS: Final = (Published, Chunked, Timed, Scheduled, Prioritized, Identified, Duplicated)

_Decide = Callable[[State, Publish, tuple[int, ...], DecisionContext, Added], Decision]


def windowed(state: State, queues: tuple[int, ...]) -> tuple[int, ...]:
    """Return those of `queues` that have a dedup window."""
    known = state.deduplicating
    return tuple([queue for queue in queues if queue in known])


class IdWindows:
    """The windows of the queues of one decision, with the ids that it has added."""

    def __init__(self, state: State, now_us: int) -> None:
        self._state = state
        self._now_us = state.elapsed_us(now_us)
        self._windows: dict[int, IdWindow] = {}

    def find(self, queue: int, digest: bytes) -> int:
        """Return the word of the first message with an id on a queue; 0 if the queue does not know it."""
        return self._of(queue).find(digest, self._now_us, self._window_us(queue))

    def add(self, queues: Iterable[int], words: bytes, digests: bytes, ids_max: int) -> None:
        """Add the ids of messages to queues, as the fold of the event does."""
        for queue in queues:
            window = self._of(queue)
            self._windows[queue] = window.add(words, digests, self._now_us, self._window_us(queue), ids_max)

    def apply(self, events: Iterable[Event]) -> None:
        """Add what events say."""
        for event in events:
            if type(event) is Identified:
                self.add(event.queues, event.words, event.digests, event.ids_max)

    def knowing(self, queues: tuple[int, ...], digest: bytes) -> tuple[int, ...]:
        """Return those of `queues` that know an id."""
        if digest == NO_DIGEST:
            return ()
        return tuple([queue for queue in queues if self.find(queue, digest)])

    def _of(self, queue: int) -> IdWindow:
        known = self._windows.get(queue)
        return self._state.queues[queue].ids if known is None else known

    def _window_us(self, queue: int) -> int:
        return 1000 * self._state.queues[queue].settings.dedup_window_ms


def deduplicated(
    state: State,
    command: Publish,
    queues: tuple[int, ...],
    context: DecisionContext,
    added: Added,
    windows: IdWindows,
    decide: _Decide,
) -> Decision:
    """Return the decision for a run to queues of which some have a dedup window; it may end with Unfinished.

    `decide` decides what is to be stored, by the maxima of the queues.
    """
    known = windowed(state, queues)
    if len(known) > _WINDOWED_MAX:
        why = f"it would reach {len(known)} queues with dedup_window_ms: at most {_WINDOWED_MAX}"
        done = _done(command, len(command.bodies), OutcomeKind.REJECTED)
        done.condition, done.description = "amqp:resource-limit-exceeded", why
        return [], [done]
    # At worst each message is a group. A fan-out in parts is the last one of its decision.
    looked = min(_LOOKED_MAX, max(1, context.config.tick_changes_max // len(queues)))
    first = command.part(0, looked) if len(command.bodies) > looked else command
    digests = _digests(first, context)
    events, effects = list[Event](), list[Effect]()
    added = Added(dict(added.counts), dict(added.sizes))
    start, count = 0, len(first.bodies)
    is_over = False
    while start < count and not is_over:
        end, duplicating = _group(windows, known, digests, start)
        part, some = first.part(start, end), digests[start:end]
        made: list[Event]
        answers: list[Effect]
        targets = queues if not duplicating else tuple([queue for queue in queues if queue not in duplicating])
        if not targets:
            made, answers = [], [_done(part, len(part.bodies), OutcomeKind.ACCEPTED)]
        else:
            keeping = tuple([queue for queue in known if queue not in duplicating])
            if keeping and any(one != NO_DIGEST for one in some):
                part.identities = Identities(keeping, b"".join(some), context.config.dedup_ids_max)
            made, answers = decide(state, part, targets, context, added)
        # What another event changes is not in the state.
        is_over = not all(isinstance(event, _ADDITIONS) for event in made)
        start = end
        if answers and isinstance(last := answers[-1], Unfinished):
            start, is_over = end - len(last.command.bodies), True
            del answers[-1]
        if duplicating:
            accepted = _accepted(answers, some)
            place = context_after(context, made)
            made = [*made, *duplicate_events(windows, duplicating, accepted, part.producer, place)]
        windows.apply(made)
        _note(made, added)
        context = context_after(context, made)
        room = sum([len(body) for event in made if type(event) is Published for body in event.bodies])
        context = replace(context, room_bytes=context.room_bytes - room)
        events += made
        effects += answers
    if start < len(command.bodies):
        effects.append(Unfinished(command.part(start, len(command.bodies))))
    return events, effects


def _digests(command: Publish, context: DecisionContext) -> list[bytes]:
    """Return the digests of the ids of a run."""
    return [
        _digest(body, context) if id_hash else NO_DIGEST
        for body, id_hash in zip(command.heads, command.id_hashes, strict=True)
    ]


def _digest(body: Buffer, context: DecisionContext) -> bytes:
    return digest_of(context.router.fields_of(body).get("properties.message-id"))


def _group(
    windows: IdWindows, known: tuple[int, ...], digests: Sequence[bytes], start: int
) -> tuple[int, tuple[int, ...]]:
    """Return the end of the group that begins at `start`, and the queues that have its ids already."""
    duplicating = windows.knowing(known, digests[start])
    seen = set[bytes]()
    for index in range(start, len(digests)):
        digest = digests[index]
        if digest in seen or (index > start and windows.knowing(known, digest) != duplicating):
            return index, duplicating
        if digest != NO_DIGEST:
            seen.add(digest)
    return len(digests), duplicating


def _done(command: Publish, count: int, kind: OutcomeKind) -> PublishDone:
    # Accepted promises that the first message is durable.
    return PublishDone(command.link, command.first_id, count, kind, command.settled, after=AT_CLOSE)


def _accepted(answers: Iterable[Effect], digests: Sequence[bytes]) -> list[bytes]:
    """Return the ids of the messages that are accepted."""
    found: list[bytes] = []
    position = 0
    for answer in answers:
        if type(answer) is PublishDone:
            if answer.kind is OutcomeKind.ACCEPTED:
                found += digests[position : position + answer.count]
            position += answer.count
    return found


def duplicate_events(
    windows: IdWindows, queues: Iterable[int], digests: Sequence[bytes], producer: int, context: DecisionContext
) -> list[Event]:
    """Return the events of messages that queues have already; the queues with the same first messages are in one."""
    if not digests:
        return []
    together: dict[bytes, list[int]] = {}
    for queue in queues:
        words = pack_words([windows.find(queue, digest) for digest in digests])
        together.setdefault(words, []).append(queue)
    return [
        Duplicated(offset, context.now_us, tuple(some), producer, words)
        for offset, (words, some) in enumerate(together.items(), context.next_offset)
    ]


def _note(events: Iterable[Event], added: Added) -> None:
    for event in events:
        if type(event) is Published:
            for queue in event.queues:
                added.add(queue, len(event.words) // WORD_BYTES, event.size)


class Duplicates(NamedTuple):
    """Messages of a transaction that queues have already."""

    queues: tuple[int, ...]
    digests: list[bytes]
    producer: int


def split_posts(state: State, posts: Sequence[Post], context: DecisionContext) -> list[Post | Duplicates]:
    """Return the posts of a transaction without what their queues have already, and what that is, in order."""
    windows = IdWindows(state, context.now_us)
    parts: list[Post | Duplicates] = []
    for post in posts:
        known = windowed(state, post.queues)
        if known:
            parts += _split(post, known, windows, context)
        else:
            parts.append(post)
    return parts


def _split(
    post: Post, known: tuple[int, ...], windows: IdWindows, context: DecisionContext
) -> Iterable[Post | Duplicates]:
    messages = post.messages
    digests = _digests(messages, context)
    start = 0
    while start < len(digests):
        end, duplicating = _group(windows, known, digests, start)
        some = digests[start:end]
        targets = tuple([queue for queue in post.queues if queue not in duplicating])
        keeping = tuple([queue for queue in known if queue not in duplicating])
        if targets:
            part = messages.part(start, end)
            if keeping:
                packed, ids_max = b"".join(some), context.config.dedup_ids_max
                part.identities = Identities(keeping, packed, ids_max)
                # The words are known when the commit has its offsets; the ids are what matters here.
                windows.add(keeping, pack_words([1] * len(some)), packed, ids_max)
            reserving = tuple([queue for queue in post.reserving if queue in targets])
            # A queue with keys has no window: it is one of the targets of each part.
            yield Post(targets, part, post.time_us, reserving, part_of(post.keys, start, end))
        if duplicating:
            yield Duplicates(duplicating, some, messages.producer)
        start = end
