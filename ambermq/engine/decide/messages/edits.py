"""The decision on edited copies: each takes the place of its message, on the queue that the message came from.

Rule 1. The copy and the end of its message are in one batch of the log: after a kill both are done, or none.
Rule 2. A copy goes to its queue alone, as a redriven message does. It is a message of its own, with its own offset.
        The event that ends the message names the copy; an annotation of the copy names the message.
Rule 3. A copy that its queue does not take leaves the message where it is.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, takewhile
from typing import Any, Final

from msgspec.structs import replace

from ambermq.engine.commands import EditMessages, Publish
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import record_count, with_queue_end
from ambermq.engine.decide.messages.dead_letters import room_for
from ambermq.engine.decide.messages.last_values import keys_of_run
from ambermq.engine.decide.messages.moves import named_in, targets_of
from ambermq.engine.decide.messages.overflow import Added
from ambermq.engine.decide.messages.stored import stored
from ambermq.engine.decide.wiring import existing_queue
from ambermq.engine.effects import Answered
from ambermq.engine.entries.discard_reason import DiscardReason
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import pack_words, size_code, size_of
from ambermq.engine.events import Discarded, Event, Published
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.log.buffer import Buffer

__all__ = ["EDIT_DECISIONS"]

_COUNT_MAX: Final = 100
"""The messages that one command edits at most: each is decoded and encoded."""
_BYTES_MAX: Final = 16 << 20
"""The largest message that is edited: it is in memory as a whole. A larger one stays, as if there were no room."""
_RECORDS_BYTES: Final = 512
"""The bytes of the records of a copy without its body are fewer."""


def _edit_messages(state: State, command: EditMessages, context: DecisionContext) -> Decision:
    source, offsets = existing_queue(state, command.name, context.config), command.offsets[:_COUNT_MAX]
    fitting = [word for word in named_in(source, offsets).words if size_of(word) <= _BYTES_MAX]
    words = _first_words(fitting, context.batch_bytes_max // 4)
    bodies = context.read(source.id, words, [source.entries.get(word >> 16) for word in words]) if words else ()
    if bodies is None:
        return [], [Answered(command.key, {"done": 0, "is_reading": True})]
    copies = _first_copies(command, source, words, bodies, context)
    if len(copies) < len(words):
        offsets = offsets[: offsets.index(words[len(copies)] >> 16)]
        words = words[: len(copies)]
    elif len(set(offsets)) > len(words):
        offsets = _about(offsets, words, source)
    named = named_in(source, offsets)
    too_large = sum([size_of(word) > _BYTES_MAX for word in named.words])
    groups, no_origin = targets_of(state, command, source, words, context)
    target_of = {word: target for target, group in groups.items() for word in group}
    edits = _Edits(state, source, command, context)
    for word, copy in zip(words, copies, strict=True):
        if copy is not None and word in target_of:
            edits.add(word, copy, state.queues[target_of[word]])
    damaged = copies.count(None)
    moved = sum(edits.counts.values())
    answer: dict[str, Any] = {"moved": moved, "acquired": named.acquired, "gone": named.gone + damaged}
    answer |= {"no_room": too_large + len(words) - no_origin - moved - damaged, "no_origin": no_origin}
    answer |= {"done": len(offsets), "is_reading": False}
    if command.dry_run is not None:
        return [], [Answered(command.key, {**answer, "targets": edits.counts, "taken": edits.added.to_bytes()})]
    return with_queue_end(state, edits.events, source, context, [Answered(command.key, answer)])


def _about(offsets: Sequence[int], words: Sequence[int], source: Queue) -> Sequence[int]:
    """Return the first of named offsets, up to one of a waiting message that is not among `words`."""
    known = {word >> 16 for word in words}
    waiting = {word >> 16 for word in named_in(source, offsets).words if size_of(word) <= _BYTES_MAX}
    return list(takewhile(lambda offset: offset in known or offset not in waiting, offsets))


def _first_words(words: Sequence[int], bytes_max: int) -> list[int]:
    """Return the first words of a limited size, at least one if there is any."""
    sizes = accumulate(map(size_of, words))
    return [word for word, size in zip(words, sizes, strict=True) if size <= bytes_max or word == words[0]]


def _first_copies(
    command: EditMessages,
    source: Queue,
    words: Sequence[int],
    bodies: Sequence[Buffer | None],
    context: DecisionContext,
) -> list[Publish | None]:
    """Return the first copies that fit into half a batch, at least one; that of a damaged message is None."""
    copies: list[Publish | None] = []
    left = context.batch_bytes_max // 2
    for word, body in zip(words, bodies, strict=True):
        marks = source.entries.get(word >> 16, PLAIN).marks
        copy = None if body is None else command.edit(body, word >> 16, marks)
        left -= _RECORDS_BYTES if copy is None else copy.size + _RECORDS_BYTES
        if left < 0 and copies:
            break
        copies.append(copy)
    return copies


class _Edits:
    """The events of the edited copies of one command."""

    def __init__(self, state: State, source: Queue, command: EditMessages, context: DecisionContext) -> None:
        self._state = state
        self._source = source
        self._command = command
        self._context = context
        self._authorized: set[int] = set()
        self.added = Added.from_bytes(command.dry_run or b"")
        self.events: list[Event] = []
        self.counts: dict[str, int] = {}
        """The copies, by the name of their queue."""

    def add(self, word: int, copy: Publish, target: Queue) -> None:
        """Add a copy for a queue, if the queue takes it. Raises Refused if the request may not send to it."""
        if self._command.authorize is not None and target.id not in self._authorized:
            self._command.authorize(target.name)
            self._authorized.add(target.id)
        if not self._has_room(copy, target):
            return
        self.added.add(target.id, 1, copy.size)
        self.counts[target.name] = self.counts.get(target.name, 0) + 1
        if self._command.dry_run is not None:
            return
        moment = self._context
        place = moment.next_offset + record_count(self.events)
        keys = keys_of_run(self._state, copy, (target.id,), moment)
        some = stored(copy, (target.id,), replace(moment, next_offset=place), copy.size, keys)[0]
        published = next(event for event in some if type(event) is Published)
        self.events += some
        place += record_count(some)
        one = pack_words([word])
        reason, by = DiscardReason.EDITED, ""
        self.events.append(Discarded(place, moment.now_us, self._source.id, reason, one, by, published.offset))

    def _has_room(self, copy: Publish, target: Queue) -> bool:
        limit = target.settings.message_bytes_max
        if limit and copy.size > limit:
            return False
        if min(copy.size, self._context.config.chunk_bytes) > self._context.batch_bytes_max // 2:
            return False
        has_room = room_for(target, [size_code(copy.size)], self.added, self._context) > 0
        return has_room and copy.size <= self._context.room_bytes


EDIT_DECISIONS: Final[dict[type, Callable[[State, Any, DecisionContext], Decision]]] = {EditMessages: _edit_messages}
