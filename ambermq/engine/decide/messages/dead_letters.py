"""What becomes of messages that their queue gives up: they go to its dead-letter target, wait beside it, or end.

Rule 1. The address of a queue means that queue itself. Muxers and topics are routed, as for a producer.
Rule 2. Without a target a message ends by an event with the reason. A target that is gone, full or reaches no queue
        ends none: the message is set aside, and tried again.
Rule 3. A message that would come back to a queue which it left for the same reason, without a consumer in between, or
        that has moved too often, ends with the reason `loop`.
Rule 4. The moves of one decision reach a queue up to its maximum, also with what the decision adds to it otherwise.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ambermq.engine.address import NodeKind, parse_address
from ambermq.engine.commands import GiveUp
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import context_after, record_count, with_queue_end
from ambermq.engine.decide.messages.last_values import NO_KEYS, Keys, key_events, keyed_queues, keys_of_words
from ambermq.engine.decide.messages.overflow import Added, displaced
from ambermq.engine.decide.node_names import message_destination, muxer_id, topic_muxer
from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import pack_words, size_of, unpack_words
from ambermq.engine.errors import Refused
from ambermq.engine.events import Discarded, Drawn, Event, Moved, SetAside
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.engine.selectors.fields import Fields, text_of
from ambermq.engine.settings.queue_settings import DROP_HEAD
from ambermq.engine.time_budget import MatchUnfinished

__all__ = ["Fate", "fate_of", "give_up", "room_for"]

_BY_THEMSELVES: Final = (MoveReason.LENGTH, MoveReason.EXPIRED)
"""The reasons for which messages move on without any consumer."""


class Fate(NamedTuple):
    """What becomes of messages that a queue gives up."""

    events: list[Event]
    left: bytes
    """The packed words of those that no target takes now."""
    is_reading: bool = False
    """Whether some of those are read from the disk first, for their keys."""


def give_up(state: State, command: GiveUp, context: DecisionContext) -> Decision:
    """Return the decision on waiting or set-aside messages that a queue gives up."""
    queue = state.queues.get(command.queue)
    if queue is None:
        return [], []
    # Several consumers with selectors may have found one message: it is given up once.
    words = pack_words([word for word in dict.fromkeys(unpack_words(command.words)) if queue.holds(word)])
    if not words:
        return [], []
    if isinstance(command.reason, DiscardReason):
        ended = Discarded(context.next_offset, context.now_us, queue.id, command.reason, words)
        return with_queue_end(state, [ended], queue, context, [])
    events, left, _ = fate_of(state, queue, words, command.reason, context)
    # A rejected message is set aside already. The event says so for its story.
    is_told = not command.is_again and command.reason is MoveReason.REJECTED
    if fresh := left if is_told else pack_words([word for word in unpack_words(left) if not queue.aside.holds(word)]):
        offset = context.next_offset + record_count(events)
        events.append(SetAside(offset, context.now_us, queue.id, command.reason, fresh))
    return with_queue_end(state, events, queue, context, [])


def fate_of(
    state: State,
    queue: Queue,
    words: bytes,
    reason: MoveReason,
    context: DecisionContext,
    added: Added | None = None,
) -> Fate:
    """Return the events by which packed words leave a queue, and those words that stay.

    `added` are messages that the decision adds to queues otherwise.
    """
    if not queue.settings.dead_letter:
        why = DiscardReason(reason)
        return Fate([Discarded(context.next_offset, context.now_us, queue.id, why, words)], b"")
    return _Fates(state, queue, reason, context, added or Added({}, {})).decide(words)


class _Fates:
    """The fates of some messages of one queue with a target."""

    def __init__(self, state: State, queue: Queue, reason: MoveReason, context: DecisionContext, added: Added) -> None:
        self._state = state
        self._queue = queue
        self._reason = reason
        self._context = context
        self._added = added
        self._events: list[Event] = []
        self._is_reading = False

    def decide(self, words: bytes) -> Fate:
        """Return the fates of packed words."""
        numbers = unpack_words(words)
        groups: dict[tuple[int, ...], list[int]] = {}
        looped: list[int] = []
        for word, route in zip(numbers, self._routes(numbers), strict=True):
            if self._loops(word, route):
                looped.append(word)
            else:
                groups.setdefault(route, []).append(word)
        left = groups.pop((), [])
        for route, group in groups.items():
            count = self._room(route, group)
            keys = self._keys(route, group[:count])
            if keys is None:
                self._is_reading, count = True, 0
            if count:
                moved = pack_words(group[:count])
                event = Moved(self._next, self._context.now_us, self._queue.id, route, self._reason, moved)
                self._emit(event)
                for keyed in key_events(keys or (), event.offset, self._next, self._context.now_us):
                    self._emit(keyed)
                for target in route:
                    self._added.add(target, count, sum(map(size_of, group[:count])))
            left += group[count:]
        if looped:
            packed = pack_words(looped)
            self._emit(Discarded(self._next, self._context.now_us, self._queue.id, DiscardReason.LOOP, packed))
        return Fate(self._events, pack_words(sorted(left)), self._is_reading)

    def _keys(self, route: tuple[int, ...], group: list[int]) -> Keys | None:
        """Return the keys of messages for those of their targets that keep last values; None if they are not known."""
        # Without messages there is nothing to read, and no read would end.
        wanted = keyed_queues(self._state, route) if group else {}
        return keys_of_words(wanted, self._queue, group, self._context) if wanted else NO_KEYS

    @property
    def _next(self) -> int:
        return self._context.next_offset

    def _emit(self, event: Event) -> None:
        self._events.append(event)
        self._context = context_after(self._context, [event])

    def _loops(self, word: int, route: tuple[int, ...]) -> bool:
        """Return whether the dead letters of a message must end."""
        marks = self._queue.entries.get(word >> 16, PLAIN).marks
        if marks is None:
            return False
        if marks.moves >= self._context.config.dead_letter_moves_max:
            return True
        return self._reason in _BY_THEMSELVES and any((queue, self._reason) in marks.visited for queue in route)

    def _room(self, route: tuple[int, ...], group: list[int]) -> int:
        """Return how many of the first messages of a group all queues of a route take, and make room for them."""
        count = len(group)
        targets = [self._state.queues[queue] for queue in route]
        for target in targets:
            if target.settings.overflow != DROP_HEAD:
                count = min(count, room_for(target, group, self._added, self._context))
        for target in targets:
            if count and target.settings.overflow == DROP_HEAD:
                count = min(count, self._displace(target, group[:count]))
        return count

    def _displace(self, target: Queue, group: list[int]) -> int:
        """Discard the oldest messages of a target; return how many messages it takes then."""
        room = room_for(target, group, self._added, self._context)
        if room == len(group) or self._added.counts.get(target.id, 0):
            # What this decision has added is not in the state: the next one discards it.
            return room
        words = displaced(target, len(group), sum(map(size_of, group)), self._context.config)
        if not words:
            return room
        freed = unpack_words(words)
        self._added.add(target.id, -len(freed), -sum(map(size_of, freed)))
        room = room_for(target, group, self._added, self._context)
        self._emit(Discarded(self._next, self._context.now_us, target.id, DiscardReason.LENGTH, words))
        return room

    def _routes(self, words: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield the queues for each word; none if the target is gone, reaches no queue, or is not known yet."""
        route = self._router()
        if not callable(route):
            for _ in words:
                yield route
            return
        entries = [self._queue.entries.get(word >> 16) for word in words]
        fields = list(self._context.peek(self._queue.id, words, entries) or ())
        for one in [*fields, *[None] * (len(words) - len(fields))]:
            yield () if one is None else route(one)

    def _router(self) -> "tuple[int, ...] | Callable[[Fields], tuple[int, ...]]":
        """Return the queues of all messages, or a function from the fields of a message to its queues."""
        state, config = self._state, self._context.config
        try:
            address = parse_address(self._queue.settings.dead_letter, name_bytes_max=config.name_bytes_max)
            if address.kind is NodeKind.QUEUE:
                target = state.queue_named(address.name)
                return () if target is None or target.id == self._queue.id else (target.id,)
            if address.kind is NodeKind.TOPIC:
                muxer = topic_muxer(state, address.name)
                destination: str | None = address.name
            else:
                muxer, destination = muxer_id(state, address.name), address.destination
        except Refused:
            return ()
        if destination is not None:
            plain = self._context.router.plain_route(state, muxer, destination)
            if plain is not None:
                return self._checked(plain)
        return lambda fields: self._routed(muxer, destination, fields)

    def _routed(self, muxer: int, destination: str | None, fields: Fields) -> tuple[int, ...]:
        """Return the queues of one message."""
        state, context = self._state, self._context
        if destination is None:
            to, subject = text_of(fields, "properties.to"), text_of(fields, "properties.subject")
            name = state.muxers[muxer].name
            destination = message_destination(name, to, subject, name_bytes_max=context.config.name_bytes_max)
        drawn: dict[int, int] = {}
        try:
            found = context.router.route(state, muxer, destination, fields, drawn)
        except (MatchUnfinished, Refused):
            return ()
        for lossy, count in drawn.items():
            self._emit(Drawn(self._next, context.now_us, lossy, count))
        return self._checked(found.queues)

    def _checked(self, queues: tuple[int, ...]) -> tuple[int, ...]:
        """Return queues without the source; none if they are too many for one record."""
        others = tuple([queue for queue in queues if queue != self._queue.id])
        return others if len(others) <= self._context.config.dead_letter_queues_max else ()


def room_for(queue: Queue, words: Sequence[int], added: Added, context: DecisionContext) -> int:
    """Return how many of the first messages fit into a queue; `added` are messages not in its state."""
    settings = queue.settings
    if context.reserved is not None and queue.id in context.reserved.counts:
        added = added.with_reserved(queue.id, context.reserved)
    room = (settings.messages_max or context.config.queue_messages_max) - queue.waiting
    room = min(len(words), max(0, room - added.counts.get(queue.id, 0)))
    if not settings.bytes_max:
        return room
    left = settings.bytes_max - queue.waiting_size - added.sizes.get(queue.id, 0)
    for count, word in enumerate(words[:room]):
        left -= size_of(word)
        if left < 0:
            return count
    return room
