"""The wiring seen from members, held against a look through all muxers."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachMember,
    Command,
    DeclareMuxer,
    DeclareQueue,
    DeleteMuxer,
    DeleteQueue,
    DetachMember,
    ResetHost,
)
from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import State
from ambermq.engine.routing.router import Router
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.world import World

_ARGUMENTS: dict[str, tuple[Argument, ...]] = {
    "simple": (None,),
    "destination": ("a", "b"),
    "property": ((Condition("x", True, 1),), (Condition("x", True, True),), (Condition("x", True, 1.0),)),
}
_KINDS = {
    "simple": MuxerKind.SIMPLE,
    "destination": MuxerKind.DESTINATION,
    "property": MuxerKind.PROPERTY,
}
_muxers = st.sampled_from(list(_KINDS))
_members = st.sampled_from(["q", "r", *(f"muxer:{name}" for name in _KINDS)])
_attached = st.tuples(st.sampled_from([AttachMember, AttachMember, DetachMember]), _muxers, _members, st.integers(0, 2))
_deleted = st.one_of(
    st.builds(DeleteQueue, st.just("key"), st.sampled_from("qr")),
    st.builds(DeleteMuxer, st.just("key"), _muxers),
    st.just(ResetHost("key")),
)


def _begun() -> World:
    world = World()
    _come_back(world)
    return world


def _come_back(world: World) -> None:
    for name, kind in _KINDS.items():
        world.do(DeclareMuxer("key", name, kind))
    for name in "qr":
        world.do(DeclareQueue("key", name, Settings()))


def _command(said: Command | tuple[Any, ...]) -> Command:
    if isinstance(said, tuple):
        kind, muxer, member, choice = said
        arguments = _ARGUMENTS[muxer]
        command: Command = kind("key", muxer, member, arguments[choice % len(arguments)])
        return command
    return said


def _naive(state: State, member: int) -> list[tuple[int, Any]]:
    """Look through all."""
    found = [
        (muxer.id, one) for muxer in state.muxers.values() for one in muxer.attachments.values() if one.member == member
    ]
    return sorted(found, key=lambda pair: pair[1].id)


@given(st.lists(_attached | _attached | _deleted, max_size=40))
def test_members_know_what_a_look_through_all_muxers_finds(asked: list[Any]) -> None:
    """In order of id, each by its argument, and their number; for an updated index and a new one."""
    world = _begun()
    for said in asked:
        world.do(_command(said))
        if not isinstance(said, tuple):
            _come_back(world)
        state = world.state
        for router in (world.router, Router()):
            assert router.attachment_count(state) == sum(len(one.attachments) for one in state.muxers.values())
            for member in (*state.queues, *state.muxers):
                found = router.attachments_of(state, member)
                assert found == _naive(state, member)
                for muxer, one in found:
                    assert router.find(state, muxer, member, one.argument) == one
                    assert router.find(state, muxer, member, "none") is None
