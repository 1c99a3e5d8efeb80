"""The story of one message: all events that concern it, found by its id without a scan of the log.

    message-id   -> id hash -> ids of each index -> publish records; the id in each is compared
    publish      -> the bucket of its entry, and its queues -> touches of each index -> the records that name it
    moves        -> the buckets of its later entries, and their queues -> more of them
    records      -> the links and queues that they name; each was declared by the record at the offset that is its id

Rule 1. A record that an index names is read and compared: hashes collide, and messages share buckets.
Rule 2. If a message is older than the horizon, only its publish record is left. Its story then begins with its places
in the state at the horizon.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from struct import pack

from ambermq.engine.address import muxer_address
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.explain_route import explain
from ambermq.engine.entries.entry_word import WORD_BYTES, entry_of, pack_words
from ambermq.engine.errors import Refused
from ambermq.engine.events import (
    Acquired,
    Attached,
    Detached,
    Discarded,
    Event,
    LinkResumed,
    Moved,
    Published,
    Purged,
    Reset,
)
from ambermq.engine.events.registry import NUMBERS
from ambermq.engine.history.id_origins import Link, Origins
from ambermq.engine.history.message_route import Passage, message_routes
from ambermq.engine.history.message_steps import MessagePlace, MessagePlaceState, Step, Track
from ambermq.engine.history.past import Past, PastError, PastKind
from ambermq.engine.model.state import State
from ambermq.engine.records.index_keys import BROKER, bucket_key, node_key, touches_of
from ambermq.engine.records.reader import events_of
from ambermq.engine.routing.router import FieldsOf, Router, no_fields
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_reads import DAMAGED
from ambermq.log.read.search import Search

__all__ = ["MessageStory", "Route", "find_message", "open_search", "origin_of", "story_of"]

_ADDITIONS_MAX = 8
"""The events between a message and the one that names it as a copy are fewer."""
_RESET = bytes(10) + bytes((NUMBERS[Reset], 0))
"""The end of a reset record less than an hour after its batch: half its time, no count, no aux, type, no flags."""
_PURGED = bytes(5) + bytes((NUMBERS[Purged], 0))
"""The end of the record of a purge: most of its count, which is 0 or 1, no aux, type, no flags."""


@dataclass(frozen=True, slots=True)
class Route:
    """Why a message reached a queue: the attachments of muxers, from the muxer that its producer sends to."""

    queue: int
    """The queue's id."""
    attached: int | None
    """The offset of the event that attached the queue to the producer's muxer for the destination of the message."""
    passages: tuple[Passage, ...] = ()
    """The muxers on any other route. Both are missing if the history does not reach back to that wiring."""


@dataclass(frozen=True, slots=True)
class MessageStory:
    """The story of one message."""

    published: Published
    """The event that published the message."""
    steps: list[Step]
    """What happened to it, in order, the publish first."""
    places: list[MessagePlace]
    """The places of the message now, in the order in which it came to them."""
    routes: list[Route]
    """The routes to the queues that it was published to."""
    horizon: int
    """The events below this offset were compacted; 0 if the history is whole."""
    queues: dict[int, str]
    """The names of its queues by id."""
    muxers: dict[int, str]
    """The name of the muxer that it was sent to, by id."""
    links: dict[int, Link]
    """Its producer and consumers by id. These three lack the names that the history does not have."""
    edited_from: int = 0
    """The offset of the message that it is an edited copy of; 0 for no copy, and if the history does not say."""

    @property
    def offset(self) -> int:
        """The offset of the publish record, which identifies the message."""
        return self.published.offset

    @property
    def is_whole(self) -> bool:
        """Whether the history has every event of the message."""
        return self.offset >= self.horizon

    @property
    def producer(self) -> Link | None:
        """The link that published it."""
        return self.links.get(self.published.producer)


def open_search(past: Past) -> Search:
    """Return the search that stories need; the caller closes it. Raises DamageError."""
    return Search(past.reader, touches_of)


def find_message(past: Past, search: Search, id_hashes: Collection[int], is_it: Callable[[Buffer], bool]) -> list[int]:
    """Return the offsets of the messages with an id, oldest first.

    `id_hashes` has a hash for each type that the id can have. `is_it` returns whether the bytes of a message, or the
    first piece of a large one, have the id. Damaged messages are not found. Raises DamageError.
    """
    found = []
    for offset in search.ids(id_hashes):
        event = past.event_at(offset)
        if type(event) is Published:
            head = past.body(event.chunks[0] if event.chunks else offset)
            if head is not DAMAGED and is_it(head):
                found.append(offset)
    return found


def story_of(past: Past, search: Search, offset: int, fields_of: FieldsOf = no_fields) -> MessageStory:
    """Return the story of the message published at `offset`; `fields_of` reads the fields that muxers match.

    The offset may also be that of a move. Raises PastError if no message was published there, and DamageError.
    """
    published = past.event_at(origin_of(past, offset)) if offset >= 0 else None
    if type(published) is not Published:
        raise PastError(PastKind.NO_SUCH_OFFSET, f"no message was published at offset {offset}")
    return _StorySearch(past, search, published, fields_of).story()


def origin_of(past: Past, offset: int) -> int:
    """Return the offset of the publish record of a message, by that of its publish or of one of its moves.

    Raises DamageError.
    """
    event = past.event_at(offset)
    while type(event) is Moved:
        before = entry_of(int.from_bytes(event.words[:WORD_BYTES], "little"))
        event, offset = past.event_at(before), before
        if event is None:
            # That move was compacted. What lives at the horizon says where it came from.
            state = past.state_at(past.horizon.offset - 1)
            found = (entry.origin for queue in state.queues.values() if (entry := queue.entries.get(before)))
            return next(found, before)
    return offset


class _StorySearch:
    """The look-ups for one message."""

    def __init__(self, past: Past, search: Search, published: Published, fields_of: FieldsOf) -> None:
        self._past = past
        self._search = search
        self._published = published
        self._fields_of = fields_of
        self._first = max(published.offset, past.horizon.offset)
        is_old = published.offset < past.horizon.offset
        self._base: State | None = past.state_at(past.horizon.offset - 1) if is_old else None

    def story(self) -> MessageStory:
        """Return the story of the message."""
        track, published = self._track(), self._published
        origins = Origins(self._past, self._base)
        ids = {published.producer, *(step.link for step in track.steps)}
        ids |= {place.consumer for place in track.places.values()}
        links = {link.id: link for link in map(origins.link, sorted(ids - {0})) if link is not None}
        producer = links.get(published.producer)
        return MessageStory(
            published,
            track.steps,
            list(track.places.values()),
            self._routes(producer),
            self._past.horizon.offset,
            {queue: name for queue in self._queues(track) if (name := origins.queue(queue)) is not None},
            {producer.muxer: origins.muxer(producer.muxer) or "?"} if producer else {},
            links,
            self._edited_from(),
        )

    def _edited_from(self) -> int:
        """Return the offset of the message whose edited copy this one is; it ends right behind the copy."""
        published = self._published
        if published.producer:
            return 0
        for offset in range(published.offset + 1, published.offset + _ADDITIONS_MAX + 2):
            event = self._past.event_at(offset)
            if type(event) is Discarded and event.copy == published.offset:
                return entry_of(int.from_bytes(event.words[:WORD_BYTES], "little"))
        return 0

    def _track(self) -> Track:
        """Return the places and steps of the message up to now.

        A pass takes the records that name the message by its entries, and those that end its queues and consumers. A
        move that comes to light, since a return before it was not known, begins another pass for its new entry.
        """
        first, named, searched = self._first, dict[int, Event](), set[int]()
        track = self._first_track()
        while wanted := {place.word for place in track.places.values()} - searched:
            for word in sorted(wanted):
                packed = pack_words([word])
                offsets = self._search.touches({bucket_key(entry_of(word)): packed}, first)
                named |= {event.offset: event for event in self._events(offsets)}
            searched |= wanted
            track = self._track_of(named.values())
            if searched.issuperset(place.word for place in track.places.values()):
                self._add_ends(named, track)
                track = self._track_of(named.values())
        return track

    def _add_ends(self, named: dict[int, Event], track: Track) -> None:
        """Add the records that end the queues and consumers of the message."""
        first, queues = self._first, self._queues(track)
        last = track.steps[-1].offset if track.is_over else self._past.end - 1
        others = self._search.touches(self._ends(named.values(), track), first, last)
        others += self._search.touches(dict.fromkeys(map(node_key, queues), _PURGED), first, last)
        others += self._search.touches_of_epochs(node_key(BROKER), first, last)
        named |= {event.offset: event for event in self._events(sorted({*others}))}
        self._add_successors(named, last)

    def _add_successors(self, named: dict[int, Event], last: int) -> None:
        """Add the records that end the consumers that resumed links of the message's consumers."""
        seen = set[int]()
        while new := {event.successor for event in named.values() if type(event) is LinkResumed} - seen:
            wanted = {node_key(consumer): pack("<qq", 0, consumer) for consumer in new}
            found = self._events(self._search.touches(wanted, self._first, last))
            named |= {event.offset: event for event in found}
            seen |= new

    def _queues(self, track: Track) -> tuple[int, ...]:
        """Return the queues that the message was on, each once."""
        return tuple(dict.fromkeys((*self._published.queues, *(queue for queue, _ in track.places))))

    def _track_of(self, events: Iterable[Event]) -> Track:
        """Return the places and steps of the message after these events."""
        track = self._first_track()
        for event in sorted(events, key=lambda event: event.offset):
            if track.is_over:
                break
            track.apply(event)
        return track

    def _ends(self, named: Iterable[Event], track: Track) -> dict[int, bytes]:
        """Return the keys of the records that end its queues and consumers, each with bytes of such a record.

        Those are its columns queue and ref. The lengths before them depend on whether a user is known.
        """
        consumers = {place.consumer for place in self._first_track().places.values()} - {0}
        for event in named:
            if type(event) is Acquired:
                consumers.update(event.consumers)
        wanted = {node_key(queue): pack("<qq", queue, 0) for queue in self._queues(track)}
        wanted |= {node_key(consumer): pack("<qq", 0, consumer) for consumer in consumers}
        return {**wanted, node_key(BROKER): _RESET}

    def _first_track(self) -> Track:
        """Return the places of the message without a look-up: after its publish, or at the horizon."""
        published = self._published
        track = Track(int.from_bytes(published.words, "little"))
        track.apply(published)
        if self._base is not None:
            track.places.clear()
            word = int.from_bytes(published.words, "little")
            for queue in published.queues:
                track.put(_place_in(self._base, queue, word))
            for queue, moved in _moved_words(self._base, word):
                track.put(_place_in(self._base, queue, moved))
        return track

    def _routes(self, producer: Link | None) -> list[Route]:
        """Return the route to each queue: mostly one attachment, found by an index, else through the wiring of then."""
        queues = self._published.queues
        if producer is None:
            return [Route(queue, None) for queue in queues]
        attached = {} if producer.is_addressed else {queue: self._attached(queue, producer) for queue in queues}
        if all(attached.get(queue) is not None for queue in queues):
            return [Route(queue, attached[queue]) for queue in queues]
        passages = self._passages(producer)
        return [Route(queue, None, passages.get(queue, ())) for queue in queues]

    def _passages(self, producer: Link) -> dict[int, tuple[Passage, ...]]:
        """Return the passages to each queue in the wiring of then; none if the history begins later."""
        published, past = self._published, self._past
        if published.offset <= past.horizon.offset:
            return {}
        state, router = past.state_at(published.offset - 1), Router(self._fields_of)
        head = past.body(published.chunks[0] if published.chunks else published.offset)
        fields = no_fields(b"") if head is DAMAGED else self._fields_of(head)
        if not producer.is_addressed:
            return message_routes(state, router.hops(state, producer.muxer, producer.destination, fields, None))
        muxer = state.muxers.get(producer.muxer)
        address = "" if muxer is None else muxer_address(muxer.name)
        try:
            return message_routes(
                state, explain(state, address, fields, DecisionContext(0, 0, 0, EngineConfig(), router)).hops
            )
        except Refused:
            return {}

    def _attached(self, queue: int, producer: Link) -> int | None:
        """Return the offset of the attachment by which the producer's own muxer sent the message to a queue."""
        wanted = {node_key(queue): pack("<qq", queue, producer.muxer)}
        found = None
        for event in self._events(self._search.touches(wanted, queue, self._published.offset)):
            match event:
                case Attached(muxer=producer.muxer, argument=producer.destination):
                    found = event.offset
                case Detached(muxer=producer.muxer) if event.attachment in (found, 0):
                    found = None
        return found

    def _events(self, offsets: list[int]) -> Iterator[Event]:
        """Yield the events at ascending offsets; each batch is read once."""
        position = 0
        while position < len(offsets):
            readable = self._past.reader.find_batch(offsets[position])
            end = offsets[position] + 1 if readable is None else readable.batch.next_offset
            batch_offsets = set()
            while position < len(offsets) and offsets[position] < end:
                batch_offsets.add(offsets[position])
                position += 1
            if readable is not None:
                yield from (event for event in events_of(readable.batch) if event.offset in batch_offsets)


def _moved_words(state: State, word: int) -> list[tuple[int, int]]:
    """Return the queue and the entry of each place that moves have taken a message to, by its first word."""
    origin, code = word >> 16, word & 0xFFFF
    return [
        (queue.id, entry << 16 | code)
        for queue in state.queues.values()
        for entry, columns in queue.entries.items()
        if columns.origin == origin
    ]


def _place_in(state: State, queue_id: int, word: int) -> MessagePlace:
    """Return the place of an entry on a queue in a state."""
    queue = state.queues.get(queue_id)
    if queue is None:
        return MessagePlace(queue_id, MessagePlaceState.ARCHIVED, word)
    entry = queue.entries.get(word >> 16)
    count = entry.count if entry else 0
    for consumer, held in queue.acquired.items():
        if held.remove(pack_words([word]))[0]:
            return MessagePlace(queue_id, MessagePlaceState.ACQUIRED, word, consumer, count)
    if queue.aside.holds(word):
        return MessagePlace(queue_id, MessagePlaceState.SET_ASIDE, word, count=count)
    if queue.scheduled.holds(word):
        return MessagePlace(queue_id, MessagePlaceState.SCHEDULED, word, count=count)
    state_now = MessagePlaceState.AVAILABLE if queue.holds(word) else MessagePlaceState.ARCHIVED
    return MessagePlace(queue_id, state_now, word, count=count)
