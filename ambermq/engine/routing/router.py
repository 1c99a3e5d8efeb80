"""From a muxer to queues: which of them a message reaches, each once, in the order of attaching.

Rule 1. Routing is a function of the wiring in State, the message, and the draws that State counts. The indexes are
        derived: kept up by the events of wiring as they happen, and made anew where they stand for something else.
Rule 2. A muxer is visited once a message, whatever the number of ways to it: a LOSSY one draws once.
Rule 3. What is remembered by destination is bounded, and dropped as a whole when the wiring changes.
"""

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple, Protocol, final

from ambermq.engine.events import Attached, Detached, Event, MuxerDeleted, Reset
from ambermq.engine.matching.lru_cache import LruCache, recent_answers, weight_of
from ambermq.engine.model.attachment import Argument, Attachment
from ambermq.engine.model.muxer import PLAIN_KINDS, Muxer, MuxerKind
from ambermq.engine.model.state import State
from ambermq.engine.routing.lossy_draw import passes
from ambermq.engine.routing.muxer_entry import IndexedMuxer
from ambermq.engine.routing.reverse_wiring import ReverseWiring
from ambermq.engine.selectors.fields import ABSENT, Added, Fields
from ambermq.log.buffer import Buffer
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["WIRING", "FieldsOf", "Hop", "Route", "Router", "no_fields"]


class FieldsOf(Protocol):
    """Reads out of a message's bytes what matching may ask of it, no more than is asked for."""

    def __call__(self, body: Buffer, added: Added = (), /) -> Fields:
        """Return the fields of a message, with annotations that were added to it meanwhile."""


WIRING = (Attached, Detached, MuxerDeleted, Reset)
"""The events that `apply_event` wants."""


class _NoFields:
    def get(self, name: str) -> object:
        del name
        return ABSENT


def no_fields(_body: Buffer, _added: Added = (), /) -> Fields:
    """Return the fields of a message that has none."""
    return _NoFields()


class Hop(NamedTuple):
    """One muxer on a message's way, for who wants to know why."""

    muxer: int
    passed: bool
    """False where a LOSSY muxer has dropped it."""
    attachments: tuple[Attachment, ...]
    """Those that it passed on by."""


class Route(NamedTuple):
    """Where one message goes."""

    queues: tuple[int, ...]
    drawn: tuple[int, ...]
    """LOSSY muxers that drew for it."""
    is_lost: bool
    """Whether one of them dropped it, on one way at least."""


@final
class Router:
    """The routes of one virtual host. One thread calls it, with states that follow each other."""

    __slots__ = ("_cached_max", "_fields_of", "_indexed", "_members", "_muxers", "_routes")

    def __init__(self, fields_of: FieldsOf = no_fields, *, cached_max: int = 10_000) -> None:
        """`cached_max`: destinations remembered, of each muxer and of all together."""
        self._fields_of = fields_of
        self._cached_max = cached_max
        self._indexed: dict[int, IndexedMuxer] = {}
        self._members: ReverseWiring | None = None
        self._muxers: PersistentMap[int, Muxer] | None = None
        self._routes: LruCache[tuple[int, str], tuple[int, ...] | Literal[False]] = recent_answers(cached_max)
        """By muxer and destination; False where the messages themselves must be seen."""

    def prepare(self, state: State) -> None:
        """Index all muxers now, before anybody waits for it."""
        for muxer in state.muxers.values():
            self._index_of(state, muxer)
        self._known_members(state)

    def apply_event(self, event: Event, state: State) -> None:
        """Keep up with an event of WIRING; `state` is that after it."""
        if type(event) is Attached:
            muxer = state.muxers.get(event.muxer)
            indexed = self._indexed.get(event.muxer)
            if muxer is not None:
                attachment = muxer.attachments[event.offset]
                if indexed is not None:
                    indexed.attach(attachment, muxer, state.muxers)
                else:
                    # From the first one on: the first message for a new muxer waits for no index of all of them.
                    self._index_of(state, muxer)
                if self._members is not None:
                    self._members.add(state, muxer.id, attachment)
        elif type(event) is Detached:
            muxer = state.muxers.get(event.muxer)
            indexed = self._indexed.get(event.muxer)
            if muxer is not None and indexed is not None:
                gone = indexed.attachments.get(event.attachment)
                indexed.detach(event.attachment, muxer)
                if self._members is not None and gone is not None:
                    self._members.remove(muxer.id, gone)
            else:
                self._members = None
        elif type(event) is MuxerDeleted:
            indexed = self._indexed.pop(event.muxer, None)
            if indexed is None or indexed.attachments:
                self._members = None
        elif type(event) is Reset:
            self._indexed.clear()
            self._members = None

    def plain_route(self, state: State, muxer: int, destination: str) -> tuple[int, ...] | None:
        """Return the queues of every message for a destination; None where the messages themselves must be seen."""
        if state.muxers is not self._muxers:
            self._muxers = state.muxers
            self._routes.clear()
        key = (muxer, destination)
        route = self._routes.get(key)
        if route is None:
            found = self._find_plain(state, muxer, destination)
            route = False if found is None else found
            self._routes.put(key, route, weight_of(destination, found or ()))
        return None if route is False else route

    def route(
        self, state: State, muxer: int, destination: str, fields: Fields | None, drawn: dict[int, int] | None = None
    ) -> Route:
        """Return the route of one message; `drawn` counts the draws of LOSSY muxers that State does not know yet."""
        draws = {} if drawn is None else drawn
        queues: dict[int, None] = {}
        lossy: list[int] = []
        is_lost = False
        for hop in self.hops(state, muxer, destination, fields, draws):
            if state.muxers[hop.muxer].kind is MuxerKind.LOSSY:
                lossy.append(hop.muxer)
                draws[hop.muxer] = draws.get(hop.muxer, 0) + 1
                is_lost = is_lost or not hop.passed
            for attachment in hop.attachments:
                if attachment.member in state.queues:
                    queues[attachment.member] = None
        return Route(tuple(queues), tuple(lossy), is_lost)

    def hops(
        self, state: State, muxer: int, destination: str, fields: Fields | None, draws: dict[int, int] | None
    ) -> Iterator[Hop]:
        """Yield a message's way, muxer by muxer; without `draws` every LOSSY muxer passes it on."""
        visited = {muxer}
        ahead = [muxer]
        while ahead:
            one = state.muxers.get(ahead.pop())
            if one is None:
                continue
            if draws is not None and one.kind is MuxerKind.LOSSY and not _draw(state, one, draws):
                yield Hop(one.id, passed=False, attachments=())
                continue
            indexed = self._index_of(state, one)
            attachments = indexed.index.match(destination, fields)
            yield Hop(one.id, passed=True, attachments=attachments)
            if indexed.member_muxers:
                onward = dict.fromkeys(one.member for one in attachments if one.member in indexed.member_muxers)
                fresh = [member for member in onward if member not in visited]
                visited.update(fresh)
                ahead += reversed(fresh)

    def fields_of(self, body: Buffer) -> Fields:
        """Return what matching may ask of a message."""
        return self._fields_of(body)

    def attachment_count(self, state: State) -> int:
        """Return how many attachments all muxers have together."""
        return len(self._known_members(state))

    def find(self, state: State, muxer: int, member: int, argument: Argument) -> Attachment | None:
        """Return the attachment of a member by an argument, None where there is none."""
        return self._known_members(state).find(state, muxer, member, argument)

    def attachments_of(self, state: State, member: int, *, at_most: int | None = None) -> list[tuple[int, Attachment]]:
        """Return what a queue or muxer is attached by, as (muxer, attachment), in order of id; `at_most` so many."""
        return self._known_members(state).attachments_of(state, member, at_most=at_most)

    def upstream_muxers(self, state: State, member: int) -> set[int]:
        """Return the muxers that pass on to a queue or muxer."""
        return self._known_members(state).upstream_muxers(state, member)

    def downstream_muxers(self, state: State, muxer: int) -> Collection[int]:
        """Return the muxers that a muxer passes on to."""
        return [one for one in self._index_of(state, state.muxers[muxer]).member_muxers if one in state.muxers]

    def path(self, state: State, start: int, goal: int) -> list[int]:
        """Return muxers from `start` to `goal`, each passing on to the next; empty where none does."""
        came_from: dict[int, int] = {start: 0}
        ahead = [start]
        while ahead:
            muxer = ahead.pop()
            if muxer == goal:
                return _path_to(came_from, goal)
            for onward in self._index_of(state, state.muxers[muxer]).member_muxers:
                if onward not in came_from and onward in state.muxers:
                    came_from[onward] = muxer
                    ahead.append(onward)
        return []

    def _find_plain(self, state: State, muxer: int, destination: str) -> tuple[int, ...] | None:
        """Return the queues of a destination where every muxer on the way looks at nothing else."""
        if not _is_plain(state, muxer):
            return None
        queues: dict[int, None] = {}
        for hop in self.hops(state, muxer, destination, None, None):
            members = [one.member for one in hop.attachments]
            # Asked before the walk goes on to any of them.
            if not all(_is_plain(state, member) for member in members):
                return None
            queues.update(dict.fromkeys(member for member in members if member in state.queues))
        return tuple(queues)

    def _index_of(self, state: State, muxer: Muxer) -> IndexedMuxer:
        indexed = self._indexed.get(muxer.id)
        if indexed is None or indexed.attachments is not muxer.attachments:
            indexed = self._indexed[muxer.id] = IndexedMuxer(muxer, state.muxers, cached_max=self._cached_max)
        return indexed

    def _known_members(self, state: State) -> ReverseWiring:
        if self._members is None:
            self._members = ReverseWiring(state)
        return self._members


def _is_plain(state: State, member: int) -> bool:
    """Return whether a member is anything but a muxer that looks into messages."""
    muxer = state.muxers.get(member)
    return muxer is None or muxer.kind in PLAIN_KINDS


def _draw(state: State, muxer: Muxer, draws: dict[int, int]) -> bool:
    number = state.draws.get(muxer.id, 0) + draws.get(muxer.id, 0)
    return passes(muxer.options.seed, muxer.name, number, muxer.options.probability)


def _path_to(came_from: dict[int, int], goal: int) -> list[int]:
    way, muxer = [], goal
    while muxer:
        way.append(muxer)
        muxer = came_from[muxer]
    return way[::-1]
