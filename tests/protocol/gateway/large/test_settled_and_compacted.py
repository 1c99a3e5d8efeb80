"""Settled deliveries of large messages that wait while the log is compacted: their queue has them no more."""

from pathlib import Path

import pytest

from ambermq.engine.commands import DeclareQueue
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Flow, Source, Target
from ambermq.protocol.amqp10.spec import SenderSettleMode
from tests.protocol.gateway.large.test_cut_through import Peer as EarlyPeer
from tests.protocol.gateway.large.test_cut_through_ends import read
from tests.protocol.gateway.large.test_large_messages import CONFIG, Peer, message
from tests.protocol.gateway.sources.test_browsing_compacted import compacted
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import DiskRig, bodies


@pytest.fixture
def peer(tmp_path: Path) -> Peer:
    """A peer that sends to a queue with cut-through, and receives settled deliveries from it with a narrow window."""
    directory = str(tmp_path / "data")
    rig = DiskRig(directory, config=CONFIG, hot_bytes_max=0, cold_bytes_max=1 << 12)
    rig.do(DeclareQueue("key", "q", Settings(cut_through=True)))
    peer = Peer(rig, directory=directory)
    peer.sender()
    terminus = {"source": Source(address="q"), "target": Target(), "snd_settle_mode": SenderSettleMode.SETTLED}
    peer.say(Attach(name="d", handle=5, role=True, **terminus))
    return peer


def window(size: int) -> Flow:
    """Return the flow that opens the window of a session that got nothing."""
    return Flow(next_incoming_id=0, incoming_window=size, next_outgoing_id=FIRST_ID, outgoing_window=100)


def fill_backlog(peer: Peer) -> tuple[list[bytes], list[object]]:
    """Deliver three messages into the backlog, of which the window takes three frames; return them, and what came."""
    sent = [message(number, 9500) for number in range(3)]
    for body in sent:
        peer.give(b"".join(peer.frames(body)))
    said = peer.flow(10, handle=5, incoming_window=3)
    assert (peer.rig.queue().depth, peer.rig.queue().accepted) == (0, 3)
    return sent, list(said)


def test_a_compaction_takes_nothing_from_a_backlog(peer: Peer) -> None:
    """Each waits behind the one before it, and all come byte for byte."""
    sent, said = fill_backlog(peer)
    assert compacted(peer).is_committed
    said += peer.give(Wire.frame(window(1000)))
    assert bodies(said) == sent  # type: ignore[arg-type]
    assert not peer.rig.loop.log._body_holds._numbers


def test_a_backlog_that_ends_holds_nothing(peer: Peer) -> None:
    """Its messages are gone: they were settled."""
    fill_backlog(peer)
    assert peer.rig.loop.log._body_holds._numbers
    peer.say(Detach(handle=5, closed=True))
    assert not peer.rig.loop.log._body_holds._numbers


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
def test_a_compaction_takes_nothing_from_a_message_that_was_cut_through(peer: Peer, *, is_open: bool) -> None:
    """Neither in the middle of its stream, nor while the window keeps it from becoming one."""
    peer.flow(10, handle=5, incoming_window=1)
    body = message(1, 9500)
    frames = peer.frames(body)
    read(peer, *frames[:-5])
    begun = peer.rig.do()
    if not is_open:
        (consumer_link,) = peer.gateway.consumers.values()
        consumer_link.link.session.windows.remote = 0
    peer.gateway.carry_out(begun)
    said = [*peer.settle(), *peer.give(b"".join(frames[-5:]))]
    assert (peer.rig.queue().depth, peer.rig.queue().accepted) == (0, 1)
    assert compacted(peer).is_committed
    said += peer.give(Wire.frame(window(1000)))
    assert bodies(said) == [body]
    assert not peer.rig.loop.log._body_holds._numbers


@pytest.mark.parametrize("is_lost", [True, False])
def test_an_early_delivery_that_never_begins_leaves_the_log_free(peer: Peer, *, is_lost: bool) -> None:
    """Its link ends between the publish and the sync: a hold that stays would keep old segments until a restart."""
    peer.say(Detach(handle=5, closed=True))
    receiver = EarlyPeer(peer.rig, gateway=peer.gateway, container="receiver")
    terminus = {"source": Source(address="q"), "target": Target(), "snd_settle_mode": SenderSettleMode.SETTLED}
    receiver.say(Attach(name="d", handle=5, role=True, **terminus))
    receiver.flow(10, handle=5, incoming_window=1)
    frames = peer.frames(message(1, 9500))
    read(peer, *frames[:-5])
    begun = peer.rig.do()
    (consumer_link,) = peer.gateway.consumers.values()
    consumer_link.link.session.windows.remote = 0
    peer.gateway.carry_out(begun)
    read(peer, *frames[-5:])
    effects = peer.rig.step()
    for _ in range(10):
        if peer.rig.queue().accepted:
            break
        peer.gateway.carry_out([*effects, *peer.rig.completed()])
        effects = peer.rig.step()
    assert peer.rig.queue().accepted == 1
    if is_lost:
        receiver.peer.lost()
    else:
        read(receiver, Wire.frame(Detach(handle=5, closed=True)))
    peer.gateway.carry_out([*effects, *peer.rig.completed()])
    peer.settle()
    assert not peer.rig.loop.log._body_holds._numbers
