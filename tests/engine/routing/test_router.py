"""Routes over random wirings, against a walk that compares everything with everything."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachMember, DeclareMuxer, DeclareQueue, DetachMember
from ambermq.engine.effects import Answered
from ambermq.engine.matching.muxer_index import MuxerIndex
from ambermq.engine.model.attachment import Argument, Attachment, Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.state import State
from ambermq.engine.routing.lossy_draw import passes
from ambermq.engine.routing.muxer_entry import IndexedMuxer
from ambermq.engine.routing.router import Route, Router
from ambermq.engine.selectors.fields import ABSENT
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget
from tests.engine.world import World

_KINDS = (MuxerKind.SIMPLE, MuxerKind.DESTINATION, MuxerKind.WILD_DESTINATION, MuxerKind.PROPERTY, MuxerKind.LOSSY)
_MUXERS, _QUEUES = 5, 4
_DESTINATIONS = ("a", "a.b", "b.b", "")
_ARGUMENTS: dict[MuxerKind, tuple[Argument, ...]] = {
    MuxerKind.SIMPLE: (None,),
    MuxerKind.LOSSY: (None,),
    MuxerKind.DESTINATION: ("a", "a.b"),
    MuxerKind.WILD_DESTINATION: ("#", "a.*"),
    MuxerKind.PROPERTY: ((Condition("x"),), (Condition("x", True, 1), Condition("y"))),
}
_kinds = st.lists(st.sampled_from(_KINDS), min_size=_MUXERS, max_size=_MUXERS)
_edges = st.lists(
    st.tuples(st.integers(0, _MUXERS - 1), st.integers(0, _MUXERS + _QUEUES - 1), st.integers(0, 1), st.integers(0, 3)),
    max_size=24,
)
_messages = st.lists(
    st.tuples(st.sampled_from(_DESTINATIONS), st.dictionaries(st.sampled_from("xy"), st.integers(1, 2))), max_size=6
)


class _Fields:
    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def get(self, name: str) -> Any:
        return self.values.get(name, ABSENT)


def _wired(kinds: list[MuxerKind], edges: list[tuple[int, int, int, int]]) -> World:
    """Return a world with these muxers; an edge attaches, and now and then lets go again."""
    world = World()
    for number, kind in enumerate(kinds):
        options = Options(probability=0.5, seed=number) if kind is MuxerKind.LOSSY else Options()
        world.do(DeclareMuxer("key", f"m{number}", kind, options))
    for number in range(_QUEUES):
        world.do(DeclareQueue("key", f"q{number}", Settings()))
    for muxer, member, choice, then in edges:
        name = f"muxer:m{member}" if member < _MUXERS else f"q{member - _MUXERS}"
        arguments = _ARGUMENTS[kinds[muxer]]
        argument = arguments[choice % len(arguments)]
        (effect,) = world.do(AttachMember("key", f"m{muxer}", name, argument))
        if type(effect) is Answered and not then:
            world.do(DetachMember("key", f"m{muxer}", name, argument))
    return world


def _naive(state: State, muxer: int, destination: str, fields: _Fields, drawn: dict[int, int]) -> Route:
    """Walk depth first, each muxer once, comparing every attachment."""
    queues: list[int] = []
    lossy: list[int] = []
    lost = []

    def visit(one: int, seen: set[int]) -> None:
        muxer = state.muxers[one]
        if muxer.kind is MuxerKind.LOSSY:
            number = state.draws.get(one, 0) + drawn.get(one, 0)
            drawn[one] = drawn.get(one, 0) + 1
            lossy.append(one)
            if not passes(muxer.options.seed, muxer.name, number, muxer.options.probability):
                lost.append(one)
                return
        matching = [attached for _, attached in sorted(muxer.attachments.items()) if _matches(muxer.kind, attached)]
        queues.extend(attached.member for attached in matching if attached.member in state.queues)
        onward = [attached.member for attached in matching if attached.member in state.muxers]
        fresh = [member for member in dict.fromkeys(onward) if member not in seen]
        seen.update(fresh)
        for member in fresh:
            visit(member, seen)

    def _matches(kind: MuxerKind, attached: Attachment) -> bool:
        argument = attached.argument
        if kind is MuxerKind.DESTINATION:
            return argument == destination
        if kind is MuxerKind.WILD_DESTINATION:
            return argument == "#" or (destination.startswith("a.") and destination.count(".") == 1)
        if isinstance(argument, tuple):
            return all(
                fields.get(one.name) is not ABSENT and (not one.has_value or fields.get(one.name) == one.value)
                for one in argument
            )
        return True

    visit(muxer, {muxer})
    return Route(tuple(dict.fromkeys(queues)), tuple(lossy), bool(lost))


@settings(deadline=None)
@given(_kinds, _edges, _messages)
def test_routes_are_those_of_the_naive_walk(
    kinds: list[MuxerKind], edges: list[tuple[int, int, int, int]], messages: list[tuple[str, dict[str, int]]]
) -> None:
    """For a router that has heard every event, and for one that comes to know the wiring now."""
    world = _wired(kinds, edges)
    fresh = Router()
    start = world.state.muxer_names["m0"]
    drawn: dict[int, int] = {}
    expected_drawn: dict[int, int] = {}
    for destination, values in messages:
        fields = _Fields(values)
        again = dict(drawn)
        expected = _naive(world.state, start, destination, fields, expected_drawn)
        assert world.router.route(world.state, start, destination, fields, drawn) == expected
        assert fresh.route(world.state, start, destination, fields, again) == expected
        assert drawn == again == expected_drawn
        plain = world.router.plain_route(world.state, start, destination)
        assert plain is None or plain == expected.queues


@settings(deadline=None)
@given(_kinds, _edges, _messages)
def test_a_route_cut_into_ticks_is_the_same(
    kinds: list[MuxerKind], edges: list[tuple[int, int, int, int]], messages: list[tuple[str, dict[str, int]]]
) -> None:
    """However little time a tick has, a route asks on where it ended, and draws once."""
    world = _wired(kinds, edges)
    start = world.state.muxer_names["m0"]
    budget = TimeBudget(count(0, 1000).__next__, duration_us=1)
    known = {str(number).encode(): _Fields(values) for number, (_, values) in enumerate(messages)}
    cut = Router(lambda body, _added=(): known[bytes(body)], cached_max=0, budget=budget)

    def in_ticks(route: Callable[[], Any]) -> Any:
        for _ in range(1000):
            budget.end_ns = None
            try:
                return route()
            except MatchUnfinished:
                continue
        raise AssertionError("the route makes no progress")

    drawn: dict[int, int] = {}
    expected_drawn: dict[int, int] = {}
    for body, (destination, _) in zip(known, messages, strict=True):
        expected = _naive(world.state, start, destination, known[body], expected_drawn)
        found = in_ticks(
            lambda body=body, destination=destination: cut.route(
                world.state, start, destination, cut.fields_of(body), drawn
            )
        )
        assert found == expected
        assert drawn == expected_drawn
        plain = in_ticks(lambda destination=destination: cut.plain_route(world.state, start, destination))
        assert plain == Router().plain_route(world.state, start, destination)


def test_a_destination_is_plain_where_its_way_is() -> None:
    """What a muxer that looks into messages takes costs other destinations nothing."""
    world = World()
    world.do(DeclareMuxer("key", "topic", MuxerKind.WILD_DESTINATION))
    world.do(DeclareMuxer("key", "selecting", MuxerKind.SELECTOR))
    world.do(DeclareQueue("key", "q", Settings()))
    world.do(AttachMember("key", "topic", "q", "a.#"))
    world.do(AttachMember("key", "topic", "muxer:selecting", "a.b"))
    world.do(AttachMember("key", "selecting", "q", "x = 1"))
    topic = world.state.muxer_names["topic"]
    for _ in range(2):
        assert world.router.plain_route(world.state, topic, "a.c") == (world.queue().id,)
        assert world.router.plain_route(world.state, topic, "a.b") is None
        assert world.router.plain_route(world.state, topic, "c") == ()


@given(_kinds, _edges)
def test_messages_never_go_round(kinds: list[MuxerKind], edges: list[tuple[int, int, int, int]]) -> None:
    """Whatever was asked for, no muxer leads to itself, and a refusal says which way it would have."""
    world = _wired(kinds, edges)
    for number in range(_MUXERS):
        muxer = world.state.muxer_names[f"m{number}"]
        for onward in _members(world.state, muxer):
            assert not world.router.path(world.state, onward, muxer)


def _members(state: State, muxer: int) -> Iterator[int]:
    return (one.member for one in state.muxers[muxer].attachments.values() if one.member in state.muxers)


def test_a_draw_is_a_function_of_seed_name_and_number() -> None:
    """Golden choices: the same on every machine, for ever; and about as many as the probability says."""
    text = "".join("x" if passes(7, "lossy", number, 0.5) else "." for number in range(32))
    assert text == ".x..xxx...xxxxxx..x..xx.xxxx.x.."
    assert all(passes(1, "m", number, 1.0) for number in range(100))
    assert not any(passes(1, "m", number, 0.0) for number in range(100))
    assert sum(passes(3, "m", number, 0.2) for number in range(1000)) == 212


def test_a_muxer_is_indexed_from_the_oldest_attachment_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a broker starts and as attachments come: to take up an older one late moves the numbers of all younger."""
    world, taken = World(), list[int]()
    add = MuxerIndex.add

    def added(index: MuxerIndex, attachment: Attachment) -> None:
        taken.append(attachment.id)
        add(index, attachment)

    monkeypatch.setattr(MuxerIndex, "add", added)
    world.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for number in range(100):
        world.do(DeclareQueue("key", f"q{number}", Settings()))
        world.do(AttachMember("key", "all", f"q{number}"))
    assert taken == sorted(taken)
    assert len(taken) == 200
    for muxer in world.state.muxers.values():
        taken.clear()
        IndexedMuxer(muxer, world.state.muxers, cached_max=10)
        assert taken == sorted(muxer.attachments.keys())


def test_what_peers_ask_for_is_remembered_within_bounds() -> None:
    """Many destinations, long ones, and such that lead to many queues: a frequent caller pays for none of them."""
    world = World()
    world.router = router = Router(cached_max=3)
    world.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for number in range(200):
        world.do(DeclareQueue("key", f"q{number}", Settings()))
        world.do(AttachMember("key", "all", f"q{number}"))
    muxer, everywhere = world.state.muxer_names["all"], world.state.muxer_names["QUEUE"]
    known = router.plain_route(world.state, everywhere, "q1")
    for destination in ("a", "b", "c", "long" * 1000, "d"):
        assert router.plain_route(world.state, everywhere, destination) == ()
        assert router.plain_route(world.state, everywhere, "q1") is known
    assert len(router._routes) == 3
    assert len(router.plain_route(world.state, muxer, "x") or ()) == 200
    assert len(router.plain_route(world.state, muxer, "y") or ()) == 200
    assert len(router._routes) == 1
