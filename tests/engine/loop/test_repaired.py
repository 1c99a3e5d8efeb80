"""What a repair of the log has left out of the wiring: found again at a start, shown, and removed by hand."""

import pytest

from ambermq.engine.commands import AttachMember, DeclareMuxer, DeclareQueue, DetachMember
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.decide import decide, started
from ambermq.engine.effects import Answered
from ambermq.engine.events import Attached, Event, MuxerDeclared, QueueDeclared
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.muxer import QUEUE_MUXER, TOPIC_MUXER, Muxer, MuxerKind
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.routing.router import Router
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.management.attachments import attachment_attributes
from tests.engine.world import World, record_count

_QUEUES = ("a", "b", "c", "d")


def _context(next_offset: int) -> DecisionContext:
    return DecisionContext(2_000, next_offset, 1 << 40, EngineConfig(), Router())


def _lived() -> World:
    world = World()
    world.do(DeclareMuxer("key", "mine", MuxerKind.SIMPLE))
    for name in _QUEUES:
        world.do(DeclareQueue("key", name, Settings()))
        world.do(AttachMember("key", "mine", name))
    return world


def _muxer(state: State, name: str) -> Muxer:
    muxer = state.muxer_named(name)
    assert muxer is not None
    return muxer


def _by_name(state: State) -> list[str]:
    members = [one.member for one in _muxer(state, QUEUE_MUXER).attachments.values()]
    return sorted(state.queues[member].name for member in members)


@pytest.mark.parametrize("lost", [(QUEUE_MUXER,), (QUEUE_MUXER, TOPIC_MUXER)])
def test_a_start_that_was_cut_at_any_record_is_made_whole_by_the_next(lost: tuple[str, ...]) -> None:
    """Every queue is attached by its name once, whatever the first of them got done."""
    world = _lived()
    kept: list[Event] = [event for event in world.events if not (type(event) is MuxerDeclared and event.name in lost)]
    bare = fold(EMPTY_STATE, kept)
    assert QUEUE_MUXER not in bare.muxer_names
    first = started(bare, _context(world.next_offset))
    assert sum(map(record_count, first)) == len(first) == 1 + len(lost) + len(_QUEUES)
    for cut in range(len(first) + 1):
        state = fold(bare, first[:cut])
        again = fold(state, started(state, _context(world.next_offset + cut)))
        assert _by_name(again) == sorted(_QUEUES)
        assert TOPIC_MUXER in again.muxer_names


def test_what_was_detached_by_hand_stays_so_at_a_start() -> None:
    """From QUEUE as it was declared first, and from one that a start has made anew."""
    world = _lived()
    world.do(DetachMember("key", QUEUE_MUXER, "d", "d"))
    again = fold(world.state, started(world.state, _context(world.next_offset)))
    assert _by_name(again) == ["a", "b", "c"]
    remade = World()
    remade.state = fold(EMPTY_STATE, [event for event in _lived().events if type(event) is not MuxerDeclared])
    remade.next_offset = 1_000
    for event in started(remade.state, remade.context):
        remade.happened(event)
    remade.do(DetachMember("key", QUEUE_MUXER, "b", "b"))
    again = fold(remade.state, started(remade.state, _context(remade.next_offset)))
    assert _by_name(again) == ["a", "c", "d"]


def test_a_member_that_could_not_be_saved_is_shown_as_gone_and_detached_by_id() -> None:
    """Messages pass it by; nothing else about the muxer has changed."""
    lived = _lived()
    world = World()
    world.state = fold(
        EMPTY_STATE, [one for one in lived.events if not (type(one) is QueueDeclared and one.name == "b")]
    )
    world.next_offset = lived.next_offset
    world.router = Router()
    gone = _gone(world.state, "mine")
    told = attachment_attributes(world.state, _muxer(world.state, "mine"), gone)
    assert (told["member"], told["id"]) == (None, gone.id)
    route = world.router.plain_route(world.state, _muxer(world.state, "mine").id, "x")
    assert route == tuple(world.state.queue_names[name] for name in ("a", "c", "d"))
    (answer,) = world.do(DetachMember("key", "mine", "", attachment=gone.id))
    assert type(answer) is Answered
    left = _muxer(world.state, "mine").attachments.values()
    assert sorted(world.state.queues[one.member].name for one in left) == ["a", "c", "d"]
    events, (refused,) = decide(world.state, DetachMember("key", "mine", "", attachment=gone.id), world.context)
    assert not events
    assert type(refused) is not Answered


def _gone(state: State, muxer: str) -> Attachment:
    (gone,) = [one for one in _muxer(state, muxer).attachments.values() if one.member not in state.queues]
    return gone


def test_the_attachments_that_a_start_makes_are_facts_of_their_own() -> None:
    """In order of the queues' age, which is how the next start knows where it was cut."""
    world = _lived()
    bare = fold(EMPTY_STATE, [event for event in world.events if type(event) is not MuxerDeclared])
    members = [one.member for one in started(bare, _context(world.next_offset)) if type(one) is Attached]
    assert members == sorted(members)
    assert len(members) == len(_QUEUES)
