"""The router: the queues that a message reaches from a muxer, each once, in the order of attaching.

Rule 1. A route depends only on the wiring in State, the message, and the draws that State counts. The indexes are
        derived: the events of the wiring update them, and an index that does not match State is built again.
Rule 2. A message visits a muxer once, also if several paths lead to it. So a LOSSY muxer draws once.
Rule 3. The cache of routes by destination is bounded. A change of the wiring clears it.
Rule 4. A route whose time is over raises MatchUnfinished. The caller asks again in the next tick, before anything
        changes the wiring, and the route goes on from there: after a match, or after any 4,096 attachments.
"""

from collections.abc import Collection, Iterator
from operator import attrgetter
from typing import Final, Literal, NamedTuple, Protocol, final

from msgspec import Struct, field

from ambermq.engine.errors import Refused
from ambermq.engine.events import Attached, Detached, Event, MuxerDeleted, Reset
from ambermq.engine.matching.lru_cache import LruCache, recent_answers, weight_of
from ambermq.engine.matching.published_fields import PublishedFields
from ambermq.engine.model.attachment import Argument, Attachment
from ambermq.engine.model.muxer import PLAIN_KINDS, Muxer, MuxerKind
from ambermq.engine.model.state import State
from ambermq.engine.routing.lossy_draw import passes
from ambermq.engine.routing.muxer_entry import IndexedMuxer
from ambermq.engine.routing.reverse_wiring import ReverseWiring
from ambermq.engine.selectors.fields import ABSENT, Added, Fields
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget
from ambermq.log.buffer import Buffer
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["WIRING", "FieldsOf", "Hop", "Route", "Router", "no_fields"]


_MEMBER: Final = attrgetter("member")
_SLICE: Final = 4096
"""The attachments after which the time is checked: 1 ms."""


class FieldsOf(Protocol):
    """A reader of message bytes. It decodes only the fields that matching reads."""

    def __call__(self, body: Buffer, added: Added = (), /) -> Fields:
        """Return the fields of a message, with the annotations that outcomes have added."""


WIRING = (Attached, Detached, MuxerDeleted, Reset)
"""The events that `apply_event` accepts."""


class _NoFields:
    def get(self, name: str) -> object:
        del name
        return ABSENT


def no_fields(_body: Buffer, _added: Added = (), /) -> Fields:
    """Return fields that are all absent."""
    return _NoFields()


class Hop(NamedTuple):
    """One muxer on the path of a message, for explanations."""

    muxer: int
    passed: bool
    """False if a LOSSY muxer dropped the message."""
    attachments: tuple[Attachment, ...]
    """The attachments that match."""


class Route(NamedTuple):
    """The route of one message."""

    queues: tuple[int, ...]
    drawn: tuple[int, ...]
    """The LOSSY muxers that drew for it."""
    is_lost: bool
    """Whether at least one of them dropped it."""


class _Progress(Struct):
    """A route as far as it is known, until its time is over or it ends."""

    muxers: "PersistentMap[int, Muxer]"
    """The wiring of the route."""
    muxer: int
    destination: str
    fields: Fields | None
    matched: dict[int, tuple[Attachment, ...]] = field(default_factory=dict)
    """The attachments that match, by muxer."""
    queues: dict[int, None] = field(default_factory=dict)
    """The queues that the first matching attachments lead to."""
    count: int = 0
    """The number of those attachments."""


@final
class Router:
    """The router of one virtual host. One thread calls it, with consecutive states."""

    __slots__ = (
        "_budget",
        "_cached_max",
        "_fields_of",
        "_indexed",
        "_members",
        "_muxers",
        "_rest",
        "_routes",
        "_selectors_max",
    )

    def __init__(
        self,
        fields_of: FieldsOf = no_fields,
        *,
        cached_max: int = 10_000,
        budget: TimeBudget | None = None,
        selectors_max: int = 1 << 62,
    ) -> None:
        """`cached_max` is the maximum of cached destinations, of each muxer and of the router.

        `budget` is the time of matching in a tick, `selectors_max` the maximum of selectors for one message.
        """
        self._fields_of = fields_of
        self._cached_max = cached_max
        self._budget = budget or TimeBudget()
        self._selectors_max = selectors_max
        self._rest: _Progress | None = None
        """The route that was not finished in the last tick."""
        self._indexed: dict[int, IndexedMuxer] = {}
        self._members: ReverseWiring | None = None
        self._muxers: PersistentMap[int, Muxer] | None = None
        self._routes: LruCache[tuple[int, str], tuple[int, ...] | Literal[False]] = recent_answers(cached_max)
        """By muxer and destination; False if the route depends on each message."""

    def prepare(self, state: State) -> None:
        """Index all muxers, so that no message waits for it later."""
        for muxer in state.muxers.values():
            self._index_of(state, muxer)
        self._known_members(state)

    def apply_event(self, event: Event, state: State) -> None:
        """Update the indexes for an event of WIRING; `state` is the state after it."""
        if type(event) is Attached:
            muxer = state.muxers.get(event.muxer)
            indexed = self._indexed.get(event.muxer)
            if muxer is not None:
                attachment = muxer.attachments[event.offset]
                if indexed is not None:
                    indexed.attach(attachment, muxer, state.muxers)
                else:
                    # The index is built at the first attachment, so the first message does not wait for it.
                    self._index_of(state, muxer)
                if self._members is not None:
                    self._members.add(state, muxer.id, attachment)
        elif type(event) is Detached:
            muxer = state.muxers.get(event.muxer)
            indexed = self._indexed.get(event.muxer)
            if muxer is not None and indexed is not None:
                removed = indexed.attachments.get(event.attachment)
                indexed.detach(event.attachment, muxer)
                if self._members is not None and removed is not None:
                    self._members.remove(muxer.id, removed)
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
        """Return the queues of every message for a destination; None if the route depends on each message."""
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
        """Return the route of one message; `drawn` counts draws of LOSSY muxers that are not in `state` yet.

        Raises MatchUnfinished, and Refused if the message needs too many selectors; then nothing is drawn.
        """
        draws = {} if drawn is None else drawn
        lossy: list[int] = []
        try:
            return self._route(state, self._progress(state, muxer, destination, fields), draws, lossy)
        except (MatchUnfinished, Refused):
            for one in lossy:
                draws[one] -= 1
                if not draws[one]:
                    del draws[one]
            raise

    def _route(self, state: State, progress: _Progress, draws: dict[int, int], lossy: list[int]) -> Route:
        """Return the route of a message; add the muxers that draw to `draws` and `lossy`."""
        is_lost = False
        seen = 0
        for hop in self._hops(state, progress, draws):
            if state.muxers[hop.muxer].kind is MuxerKind.LOSSY:
                lossy.append(hop.muxer)
                draws[hop.muxer] = draws.get(hop.muxer, 0) + 1
                is_lost = is_lost or not hop.passed
            seen = self._reach(state, progress, hop, seen)
        return Route(tuple(progress.queues), tuple(lossy), is_lost)

    def _reach(self, state: State, progress: _Progress, hop: Hop, seen: int) -> int:
        """Add the queues of a hop, and return `seen` plus its attachments. Raises MatchUnfinished."""
        attachments = hop.attachments
        for start in range(0, len(attachments), _SLICE):
            part = attachments[start : start + _SLICE]
            seen += len(part)
            if seen > progress.count:
                progress.queues.update(dict.fromkeys(filter(state.queues.__contains__, map(_MEMBER, part))))
                progress.count = seen
                if len(attachments) > _SLICE:
                    self._check_time(progress)
        return seen

    def _check_time(self, progress: _Progress) -> None:
        if self._budget.is_spent():
            self._rest = progress
            raise MatchUnfinished

    def hops(
        self, state: State, muxer: int, destination: str, fields: Fields | None, draws: dict[int, int] | None
    ) -> Iterator[Hop]:
        """Yield the muxers on a message's path, in order; without `draws` no LOSSY muxer drops it."""
        return self._hops(state, self._progress(state, muxer, destination, fields), draws)

    def _hops(self, state: State, progress: _Progress, draws: dict[int, int] | None) -> Iterator[Hop]:
        matched = progress.matched
        visited = {progress.muxer}
        pending = [progress.muxer]
        while pending:
            one = state.muxers.get(pending.pop())
            if one is None:
                continue
            if draws is not None and one.kind is MuxerKind.LOSSY and not _draw(state, one, draws):
                yield Hop(one.id, passed=False, attachments=())
                continue
            indexed = self._index_of(state, one)
            attachments = matched.get(one.id)
            if attachments is None:
                try:
                    attachments = indexed.index.match(progress.destination, progress.fields)
                except MatchUnfinished:
                    self._rest = progress
                    raise
                matched[one.id] = attachments
                if len(attachments) > _SLICE:
                    self._check_time(progress)
            yield Hop(one.id, passed=True, attachments=attachments)
            if indexed.member_muxers:
                onward = dict.fromkeys(filter(indexed.member_muxers.__contains__, map(_MEMBER, attachments)))
                fresh = [member for member in onward if member not in visited]
                visited.update(fresh)
                pending += reversed(fresh)

    def _progress(self, state: State, muxer: int, destination: str, fields: Fields | None) -> _Progress:
        """Return what is known of a route if its time was over, else a new one."""
        rest, self._rest = self._rest, None
        if rest is None or rest.muxers is not state.muxers or rest.fields is not fields:
            return _Progress(state.muxers, muxer, destination, fields)
        is_same = (rest.muxer, rest.destination) == (muxer, destination)
        return rest if is_same else _Progress(state.muxers, muxer, destination, fields)

    def fields_of(self, body: Buffer) -> PublishedFields:
        """Return the fields of a message, with the known answers if its route was not finished."""
        rest = self._rest
        if rest is not None and type(rest.fields) is PublishedFields and rest.fields.body is body:
            return rest.fields
        return PublishedFields(self._fields_of(body), body, self._budget, self._selectors_max)

    def attachment_count(self, state: State) -> int:
        """Return the number of attachments of all muxers."""
        return len(self._known_members(state))

    def find(self, state: State, muxer: int, member: int, argument: Argument) -> Attachment | None:
        """Return the attachment with this muxer, member and argument, None if there is none."""
        return self._known_members(state).find(state, muxer, member, argument)

    def attachments_of(self, state: State, member: int, *, at_most: int | None = None) -> list[tuple[int, Attachment]]:
        """Return the attachments of a member as (muxer, attachment), in order of id, at most `at_most`."""
        return self._known_members(state).attachments_of(state, member, at_most=at_most)

    def upstream_muxers(self, state: State, member: int) -> set[int]:
        """Return the muxers that a queue or muxer is attached to."""
        return self._known_members(state).upstream_muxers(state, member)

    def downstream_muxers(self, state: State, muxer: int) -> Collection[int]:
        """Return the muxers that are attached to a muxer."""
        return [one for one in self._index_of(state, state.muxers[muxer]).member_muxers if one in state.muxers]

    def path(self, state: State, start: int, goal: int) -> list[int]:
        """Return a path of muxers from `start` to `goal`; each sends to the next. Empty if there is no path."""
        came_from: dict[int, int] = {start: 0}
        pending = [start]
        while pending:
            muxer = pending.pop()
            if muxer == goal:
                return _path_to(came_from, goal)
            for onward in self._index_of(state, state.muxers[muxer]).member_muxers:
                if onward not in came_from and onward in state.muxers:
                    came_from[onward] = muxer
                    pending.append(onward)
        return []

    def _find_plain(self, state: State, muxer: int, destination: str) -> tuple[int, ...] | None:
        """Return the queues of a destination, or None if a muxer on the path compares anything else."""
        if not _is_plain(state, muxer):
            return None
        progress, seen = self._progress(state, muxer, destination, None), 0
        for hop in self._hops(state, progress, None):
            onward = self._index_of(state, state.muxers[hop.muxer]).member_muxers
            # This check comes before the walk visits any of the members.
            muxers = filter(onward.__contains__, map(_MEMBER, hop.attachments))
            if not all(_is_plain(state, one) for one in muxers):
                return None
            seen = self._reach(state, progress, hop, seen)
        return tuple(progress.queues)

    def _index_of(self, state: State, muxer: Muxer) -> IndexedMuxer:
        indexed = self._indexed.get(muxer.id)
        if indexed is None or indexed.attachments is not muxer.attachments:
            indexed = self._indexed[muxer.id] = IndexedMuxer(
                muxer, state.muxers, cached_max=self._cached_max, budget=self._budget
            )
        return indexed

    def _known_members(self, state: State) -> ReverseWiring:
        if self._members is None:
            self._members = ReverseWiring(state)
        return self._members


def _is_plain(state: State, member: int) -> bool:
    """Return whether a member is a queue, or a muxer that compares only destinations."""
    muxer = state.muxers.get(member)
    return muxer is None or muxer.kind in PLAIN_KINDS


def _draw(state: State, muxer: Muxer, draws: dict[int, int]) -> bool:
    number = state.draws.get(muxer.id, 0) + draws.get(muxer.id, 0)
    return passes(muxer.options.seed, muxer.name, number, muxer.options.probability)


def _path_to(came_from: dict[int, int], goal: int) -> list[int]:
    path, muxer = [], goal
    while muxer:
        path.append(muxer)
        muxer = came_from[muxer]
    return path[::-1]
