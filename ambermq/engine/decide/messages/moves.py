"""The decisions on single messages of a queue that a person names: find them, move them, remove them.

Rule 1. Only messages that wait, or are set aside, leave a queue. Those that a consumer holds stay, and are counted.
        Those that are scheduled for later are found and removed alone, by a command that is for them.
Rule 2. All moves of one command are in one batch of the log: after a kill all are done, or none.
Rule 3. A redriven message goes to the queue that it left, by its identity, else to the queue of that name; to that
        queue alone, at its tail. A queue without room takes the first ones.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple

from ambermq.engine.commands import EditMessages, FindMessages, MessageFilter, MoveMessages, RemoveMessages
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import record_count, with_queue_end
from ambermq.engine.decide.messages.dead_letters import room_for
from ambermq.engine.decide.messages.last_values import key_events, keyed_queues, keys_of_words
from ambermq.engine.decide.messages.overflow import Added
from ambermq.engine.decide.wiring import existing_queue
from ambermq.engine.effects import Answered
from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import entry_of, pack_words, size_of, unpack_words
from ambermq.engine.errors import Refused
from ambermq.engine.events import Discarded, Event, Moved
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.engine.selectors.fields import ABSENT, Fields
from ambermq.engine.time_budget import MatchUnfinished
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["MOVE_DECISIONS", "named_in", "targets_of"]

_COUNT_MAX: Final = 1000
"""The messages that one command moves or removes at most."""
_HELD_MAX: Final = 50_000
"""The acquired messages among which a command looks for those that it names; a longer list counts as gone."""
_VISITED_MAX: Final = 5000
"""The messages that one command looks at."""


def _find_messages(state: State, command: FindMessages, context: DecisionContext) -> Decision:
    queue = existing_queue(state, command.name, context.config)
    return [], [Answered(command.key, command.read(_Search(queue, command, context, state.stepped_us).run()._asdict()))]


class _Page(NamedTuple):
    """What one command has found."""

    messages: list[dict[str, Any]]
    next: int
    """The offset from where to go on."""
    is_end: bool
    is_reading: bool
    end: int
    """The offset behind every message of the queue."""


class _Search:
    """The search of one command."""

    def __init__(self, queue: Queue, command: FindMessages, context: DecisionContext, stepped_us: int) -> None:
        self._queue = queue
        self._stepped_us = stepped_us
        self._command = command
        self._context = context
        self._count_max = min(command.count_max, _COUNT_MAX)

    def run(self) -> _Page:
        """Return what is found."""
        command, found, last = self._command, list[dict[str, Any]](), self._command.after
        end = self._context.next_offset
        reads = command.reads_messages or command.filter.selector is not None
        # Each message that is read costs about as much as one for a consumer with a selector.
        visits = self._context.config.scan_messages_max if reads else _VISITED_MAX
        words = [
            word
            for word in islice(_words_after(_lists(self._queue, command.filter), last), visits)
            if word >> 16 < command.before
        ]
        entries = [self._queue.entries.get(word >> 16) for word in words]
        fields: Sequence[Fields | None] | None = [None] * len(words)
        if reads and words:
            fields = self._context.peek(self._queue.id, words, entries)
        if fields is None:
            return _Page(found, last, False, True, end)
        for word, entry, one in zip(words, entries, fields, strict=False):
            try:
                is_found = _passes(command.filter, entry or PLAIN, one)
            except MatchUnfinished:
                return _Page(found, last, False, True, end)
            last = word >> 16
            if is_found:
                row = _row(self._queue, word, entry or PLAIN, one)
                due_us = self._queue.due_us_of(word >> 16) if self._queue.timer_count else 0
                found.append(row | ({"due_us": due_us + self._stepped_us} if due_us else {}))
            if len(found) >= self._count_max:
                return _Page(found, last, False, False, end)
        # A message in a batch that is not written yet has no fields.
        is_end = len(words) < visits and len(fields) >= len(words)
        return _Page(found, last, is_end, len(fields) < len(words), end)


def _lists(queue: Queue, wanted: MessageFilter) -> tuple[PersistentQueue, ...]:
    """Return the lists that have the messages of a filter."""
    return (queue.scheduled,) if wanted.scheduled else queue.unscheduled_lists


def _words_after(lists: tuple[PersistentQueue, ...], offset: int) -> Iterator[int]:
    """Yield the words of ordered lists behind an offset, in order."""
    return merge(*(_above(one, offset << 16 | 0xFFFF) for one in lists))


def _above(words: PersistentQueue, word: int) -> Iterator[int]:
    while run := words.run_above(word):
        numbers = unpack_words(run)
        yield from numbers
        word = numbers[-1]


def _passes(wanted: MessageFilter, entry: Entry, fields: Fields | None) -> bool:
    marks = entry.marks
    if wanted.reason or wanted.source or wanted.since_us:
        if marks is None or marks.time_us < wanted.since_us:
            return False
        if wanted.reason not in ("", marks.reason.text) or wanted.source not in ("", marks.source):
            return False
    return wanted.selector is None or (fields is not None and wanted.selector.matches(fields))


def _row(queue: Queue, word: int, entry: Entry, fields: Fields | None) -> dict[str, Any]:
    row: dict[str, Any] = {"offset": entry_of(word), "bytes": size_of(word), "delivery_count": entry.count}
    row["state"] = queue.state_of(word)
    message_id = ABSENT if fields is None else fields.get("properties.message-id")
    row["message_id"] = None if message_id is ABSENT else message_id
    marks = entry.marks
    if marks is not None:
        row |= {"reason": marks.reason.text, "source": marks.source, "time_us": marks.time_us, "count": marks.count}
        row |= {"description": marks.description, "redrives": marks.redrives}
        row["first_source"] = marks.first_source or marks.source
    return row


class _Named(NamedTuple):
    """The messages that a command names."""

    words: list[int]
    """Those that wait, each once."""
    acquired: int
    gone: int


def named_in(queue: Queue, offsets: Sequence[int], *, scheduled: bool = False) -> _Named:
    """Return what there is of the named messages. Raises Refused if they are too many."""
    lists = (queue.scheduled,) if scheduled else queue.unscheduled_lists
    if len(offsets) > _COUNT_MAX:
        raise Refused("amqp:invalid-field", f"a request names at most {_COUNT_MAX} messages, found {len(offsets)}")
    words, missing = [], list[int]()
    for offset in dict.fromkeys(offsets):
        word = next((found for one in lists if (found := _word_at(one, offset))), 0)
        if word:
            words.append(word)
        else:
            missing.append(offset)
    held = set[int]()
    if missing:
        some = islice((word for words in queue.acquired.values() for word in words), _HELD_MAX)
        held = set(map(entry_of, some)) & set(missing)
    return _Named(words, len(held), len(missing) - len(held))


def _word_at(words: PersistentQueue, offset: int) -> int:
    """Return the word of an entry in an ordered list, 0 if it is not there."""
    run = words.run_above((offset << 16) - 1) if words.count and 0 <= offset < 1 << 47 else b""
    word = int.from_bytes(run[:8], "little")
    return word if run and entry_of(word) == offset else 0


def _move_messages(state: State, command: MoveMessages, context: DecisionContext) -> Decision:
    source = existing_queue(state, command.name, context.config)
    named, added = named_in(source, command.offsets), Added.from_bytes(command.dry_run or b"")
    groups, no_origin = targets_of(state, command, source, named.words, context)
    events: list[Event] = []
    moved, names = 0, dict[str, int]()
    for target_id, group in groups.items():
        target = state.queues[target_id]
        if command.authorize is not None:
            command.authorize(target.name)
        count = room_for(target, group, added, context)
        if not count:
            continue
        added.add(target_id, count, sum(map(size_of, group[:count])))
        names[target.name] = count
        moved += count
        if command.dry_run is None:
            offset = context.next_offset + record_count(events)
            words = pack_words(group[:count])
            event = Moved(offset, context.now_us, source.id, (target_id,), command.reason, words)
            events += [event, *_keys(state, source, target_id, event, context)]
    no_room = len(named.words) - no_origin - moved
    answer: dict[str, Any] = {"moved": moved, "acquired": named.acquired, "gone": named.gone, "no_room": no_room}
    answer |= {"no_origin": no_origin, "to": list(names)}
    if command.dry_run is not None:
        return [], [Answered(command.key, {**answer, "targets": names, "taken": added.to_bytes()})]
    answered = Answered(command.key, answer)
    if command.reason is MoveReason.COPIED:
        return events, [answered]
    return with_queue_end(state, events, source, context, [answered])


def _keys(state: State, source: Queue, target: int, moved: Moved, context: DecisionContext) -> list[Event]:
    """Return the events of the keys of moved messages. Raises MatchUnfinished if they are read from the disk first."""
    wanted = keyed_queues(state, (target,))
    if not wanted:
        return []
    words = unpack_words(moved.words)
    keys = keys_of_words(wanted, source, words, context)
    if keys is None:
        raise MatchUnfinished
    return key_events(keys, moved.offset, moved.offset + len(words), context.now_us)


def targets_of(
    state: State, command: MoveMessages | EditMessages, source: Queue, words: list[int], context: DecisionContext
) -> tuple[dict[int, list[int]], int]:
    """Return the messages by the queue that each goes to, and how many have none. Raises Refused."""
    if command.to:
        target = existing_queue(state, command.to, context.config)
        if target.id == source.id:
            raise Refused("amqp:invalid-field", f"the messages of queue {source.name!r} are there already")
        return {target.id: words} if words else {}, 0
    groups: dict[int, list[int]] = {}
    no_origin = 0
    for word in words:
        marks = source.entries.get(word >> 16, PLAIN).marks
        found = None
        if marks is not None:
            found = marks.source_id if marks.source_id in state.queues else state.queue_names.get(marks.source)
        if found is None or found == source.id:
            no_origin += 1
        else:
            groups.setdefault(found, []).append(word)
    return groups, no_origin


def _remove_messages(state: State, command: RemoveMessages, context: DecisionContext) -> Decision:
    queue = existing_queue(state, command.name, context.config)
    named = named_in(queue, command.offsets, scheduled=command.scheduled)
    answered = Answered(command.key, {"removed": len(named.words), "acquired": named.acquired, "gone": named.gone})
    if not named.words:
        return [], [answered]
    words = pack_words(sorted(named.words))
    reason = DiscardReason.CANCELLED if command.scheduled else DiscardReason.PURGED
    event = Discarded(context.next_offset, context.now_us, queue.id, reason, words)
    return with_queue_end(state, [event], queue, context, [answered])


MOVE_DECISIONS: Final[dict[type, Callable[[State, Any, DecisionContext], Decision]]] = {
    FindMessages: _find_messages,
    MoveMessages: _move_messages,
    RemoveMessages: _remove_messages,
}
