"""Links whose queue or muxer goes are ended, each by its own id, and nobody else is asked."""

from engine.commands import DeclareMuxer, DeleteMuxer
from engine.effects import ProducersEnded
from engine.muxer import MuxerKind
from protocol.performatives import Detach, Target
from tests.protocol.test_stealing import attach, heard, pair


def test_producers_of_what_is_gone_are_ended_and_no_others() -> None:
    """On every connection; those that the gateway knows are those that are there."""
    one, two = pair("me", "you")
    one.rig.do(DeclareMuxer("key", "m", MuxerKind.SIMPLE))
    muxer = Target(address="/muxers/m/x")
    attach(one, "a", sends=True, target=muxer)
    attach(one, "b", sends=True, handle=1)
    attach(two, "c", sends=True, target=muxer)
    attach(two, "d", sends=True, target=muxer, handle=1)
    assert set(one.gateway.producers) == set(one.rig.loop.state.producers)
    two.say(Detach(handle=1, closed=True))
    effects = one.rig.do(DeleteMuxer("key", "m"))
    one.gateway.carry_out([effect for effect in effects if type(effect) is ProducersEnded])
    assert heard(one) == heard(two) == ["amqp:resource-deleted"]
    assert list(one.gateway.producers) == list(one.rig.loop.state.producers)
    assert len(one.gateway.producers) == 1
    one.peer.lost()
    one.settle()
    assert not one.gateway.producers
    assert not one.rig.loop.state.producers
