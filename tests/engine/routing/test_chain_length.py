"""How many muxers messages pass one after the other, and what attaching makes of that."""

import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachMember, Command, DeclareMuxer, DeclareQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.engine.events import Attached, MuxerDeclared
from ambermq.engine.fold.apply import apply
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.routing.chain_length import chain_length
from ambermq.engine.routing.router import Router
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.world import World

_NODES = 7


def _longest(start: int, onward: dict[int, list[int]]) -> int:
    return 1 + max((_longest(one, onward) for one in onward[start]), default=0)


@settings(max_examples=200, deadline=None, database=None)
@given(arrows=st.sets(st.tuples(st.integers(0, _NODES - 1), st.integers(0, _NODES - 1))))
def test_it_is_the_longest_way(arrows: set[tuple[int, int]]) -> None:
    """Of all there are, whatever they share."""
    onward: dict[int, list[int]] = {one: [] for one in range(_NODES)}
    for first, second in arrows:
        if first < second:
            onward[first].append(second)
    for start in range(_NODES):
        assert chain_length(start, onward.__getitem__) == _longest(start, onward)


def _ask(world: World, *commands: Command) -> list[Answered | RefusedCommand]:
    effects = [effect for command in commands for effect in world.do(command)]
    return [effect for effect in effects if isinstance(effect, Answered | RefusedCommand)]


def test_an_attachment_that_makes_a_chain_too_long_is_refused() -> None:
    """What lies before the muxer counts, and what lies behind the member; nothing is done."""
    world = World(EngineConfig(chain_muxers_max=4))
    for number in range(5):
        world.do(DeclareMuxer("key", f"m{number}", MuxerKind.SIMPLE))
    world.do(DeclareQueue("key", "q", Settings()))
    joined = [AttachMember("key", f"m{one}", f"muxer:m{one + 1}") for one in (0, 2, 1)]
    assert [type(one) for one in _ask(world, *joined)] == [Answered] * 3
    before = world.state
    for muxer, member in (("m3", "m4"), ("m4", "m0")):
        (refused,) = _ask(world, AttachMember("key", muxer, f"muxer:{member}"))
        assert type(refused) is RefusedCommand
        assert refused.condition == "amqp:resource-limit-exceeded"
        assert "messages would pass 5 muxers one after the other" in refused.description
        assert refused.description.endswith("at most 4 (chain_muxers_max)")
    assert world.state is before
    fits = [AttachMember("key", "m4", "muxer:m1"), AttachMember("key", "m3", "q")]
    assert [type(one) for one in _ask(world, *fits)] == [Answered] * 2


def test_a_longer_chain_of_an_old_log_routes() -> None:
    """Nothing recurses: replaying it, routing through it, and attaching beside it."""
    count = 2 * sys.getrecursionlimit()
    world = World()
    (queue,) = _ask(world, DeclareQueue("key", "q", Settings()))
    assert type(queue) is Answered
    first = world.next_offset
    for number in range(count):
        world.happened(MuxerDeclared(first + number, 0, f"m{number}", MuxerKind.SIMPLE))
    members = [*range(first + 1, first + count), world.state.queue_names["q"]]
    for muxer, member in enumerate(members, first):
        world.happened(Attached(world.next_offset, 0, muxer, member))
    folded = EMPTY_STATE
    for event in world.events:
        folded = apply(folded, event)
    assert folded == world.state
    assert Router().plain_route(folded, first, "x") == (world.state.queue_names["q"],)
    (refused,) = _ask(world, DeclareMuxer("key", "one", MuxerKind.SIMPLE), AttachMember("key", "one", "muxer:m0"))[1:]
    assert type(refused) is RefusedCommand
    assert f"pass {count + 1} muxers" in refused.description
