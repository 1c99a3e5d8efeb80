"""The links of a non-destructive queue: each gets every message once, then the new ones; nothing is taken."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import DeclareQueue, DeleteQueue, MoveMessages, PurgeQueue, UpdateQueue
from ambermq.engine.effects import Answered
from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.settings.queue_settings import Settings as QueueSettings
from ambermq.protocol.amqp10.performatives.classes import Accepted, Attach, Detach, Disposition, Flow, Source, Target
from ambermq.protocol.gateway.sources.queue_follower import QueueFollower
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.decide.messages.test_expiry import wait
from tests.engine.rig import Rig
from tests.protocol.gateway.sources.test_queue_browser import filled, message, said, selecting
from tests.protocol.watching import Watching, bodies


def lasting(*texts: str, **values: Any) -> Rig:
    """Return an engine with a non-destructive queue."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", QueueSettings(non_destructive=True, **values)))
    return filled(*texts, rig=rig)


def follow(peer: Watching, *, handle: int = 0, credit: int = 100, **fields: Any) -> list[str]:
    """Attach a link; return what it gets at once."""
    peer.attach("q", handle=handle, mode=None, **fields)
    return said(bodies(peer.flow(credit, handle=handle)))


def test_each_link_gets_all_and_then_the_new_ones() -> None:
    """Once each, by its own credit; the engine sees consumers that take nothing."""
    rig = lasting("a", "b")
    peer = Watching(rig)
    source = peer.attach("q", mode=None).source
    assert isinstance(source, Source)
    assert source.distribution_mode == "copy"
    assert said(bodies(peer.flow(100))) == ["a", "b"]
    assert follow(peer, handle=1, credit=1) == ["a"]
    filled("c", rig=rig)
    assert said(bodies(peer.settle())) == ["c"]
    assert said(bodies(peer.flow(9, handle=1, count=1))) == ["b", "c"]
    queue = rig.queue()
    assert (queue.consumers, queue.available, queue.delivered, queue.accepted) == (2, 3, 0, 0)


@pytest.mark.parametrize("second", [False, True])
def test_outcomes_are_settled_and_change_nothing(second: bool) -> None:
    """Also in receiver-settle-mode second."""
    rig = lasting("a", "b")
    peer = Watching(rig)
    log_end = rig.loop.log.log_end
    follow(peer, snd_settle_mode=0, rcv_settle_mode=int(second))
    answers = peer.say(Disposition(role=True, first=0, last=1, settled=not second, state=Accepted()))
    settled = [one for one in answers if isinstance(one, Disposition)]
    assert [(one.first, one.last, one.settled) for one in settled] == ([(0, 1, True)] if second else [])
    assert (rig.queue().available, rig.loop.log.log_end) == (2, log_end + 1)


def test_a_drain_is_answered() -> None:
    """When all is sent; the link goes on with new credit."""
    rig = lasting("a", "b")
    peer = Watching(rig)
    peer.attach("q", mode=None)
    assert said(peer.drain()) == ["a", "b"]
    count = 1 << 20
    answers = peer.flow(9, count=count, drain=True)
    assert (bodies(answers), [one.link_credit for one, _ in answers if isinstance(one, Flow)][-1:]) == ([], [0])
    filled("c", rig=rig)
    assert bodies(peer.settle()) == []
    assert said(bodies(peer.flow(9, count=count + 9))) == ["c"]


def test_a_selector_chooses() -> None:
    """What is not selected is left out, once."""
    rig = lasting("a")
    peer = Watching(rig)
    assert follow(peer, filter=selecting("colour = 'red'")) == []
    assert follow(peer, handle=1, filter=selecting("colour IS NULL")) == ["a"]


def test_what_has_left_the_queue_is_not_sent() -> None:
    """Purged or expired; what came is the rest."""
    rig = lasting("a", "b", "c", message_ttl_ms=1000)
    peer = Watching(rig)
    follow(peer, credit=1)
    rig.do(PurgeQueue("key", "q"))
    filled("d", rig=rig)
    assert said(bodies(peer.flow(1, count=1))) == ["d"]
    filled("e", rig=rig)
    wait(rig, 2_000_000)
    assert bodies(peer.flow(9, count=2)) == []


def test_a_paused_queue_sends_nothing() -> None:
    """Until it is resumed."""
    rig = lasting("a", paused=True)
    peer = Watching(rig)
    assert follow(peer) == []
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"paused": False}))
    assert said(bodies(peer.settle())) == ["a"]


def test_a_message_that_comes_from_another_queue_is_a_new_one() -> None:
    """It takes the tail."""
    rig = lasting("a")
    peer = Watching(rig)
    filled("b", rig=rig)
    rig.do(DeclareQueue("key", "other", QueueSettings()))
    producer = rig.producer("other")
    rig.do(rig.publish(producer, message("moved")))
    assert follow(peer) == ["a", "b"]
    offsets = [word >> 16 for word in rig.queue("other").ready]
    rig.do(MoveMessages("key", "other", offsets, "/queues/q"))
    assert said(bodies(peer.settle())) == ["moved"]


def test_the_end_of_the_queue_ends_the_link() -> None:
    """And nothing of it is left."""
    rig = lasting("a")
    peer = Watching(rig)
    follow(peer)
    peer.gateway.carry_out([one for one in rig.do(DeleteQueue("key", "q")) if type(one) is not Answered])
    gone = [one for one, _ in peer.settle() if isinstance(one, Detach)]
    assert gone[0].error is not None
    assert gone[0].error.condition == "amqp:resource-deleted"
    assert not peer.gateway.sources.due_ms


def test_the_end_of_the_link_leaves_nothing() -> None:
    """By a detach, or with its connection."""
    rig = lasting("a")
    peer = Watching(rig)
    follow(peer)
    follow(peer, handle=1)
    peer.say(Detach(handle=0, closed=True))
    assert (len(peer.gateway.sources.due_ms), rig.queue().consumers) == (1, 1)
    peer.peer.lost()
    peer.settle()
    assert (len(peer.gateway.sources.due_ms), rig.queue().consumers) == (0, 0)


def test_they_are_bounded() -> None:
    """By the limit of browsing links; the refusal names it."""
    rig = lasting("a")
    peer = Watching(rig, limits=ServerLimits(sources_max=1))
    follow(peer)
    answers = peer.say(Attach(name="l1", handle=1, role=True, source=Source(address="q"), target=Target()))
    (goodbye,) = [one for one in answers if isinstance(one, Detach)]
    assert goodbye.error is not None
    assert "sources_max" in str(goodbye.error.description)
    peer.settle()
    assert len(peer.gateway.consumers) == 1
    assert rig.queue().consumers == 1


def test_a_link_keeps_no_more_than_its_place() -> None:
    """However long the queue is, it has a few words, and no state of the past."""
    rig = lasting(*["x"] * 700)
    peer = Watching(rig)
    follow(peer, credit=3)
    (source,) = peer.gateway.sources.due_ms
    assert isinstance(source, QueueFollower)
    assert len(source._words) * WORD_BYTES <= 8 * 256
    assert (source.past_bytes, source.duration_ms_max) == (0, 0)
    assert len(bodies(peer.flow(1000, count=3))) == 697


@given(st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_message_is_missed_and_none_comes_twice(rng: random.Random) -> None:
    """For any mix of priorities, credit, new messages and late links."""
    rig = lasting(priorities=True)
    peer, sent, got = Watching(rig), list[str](), dict[int, list[str]]()
    producer = rig.producer()
    for _ in range(30):
        if rng.random() < 0.5:
            texts = [str(len(sent) + turn) for turn in range(rng.randint(1, 4))]
            command = rig.publish(producer, *map(message, texts))
            command.priority = rng.choice((4, 4, 9, 0))
            rig.do(command)
            sent += texts
        elif len(got) < 3 and rng.random() < 0.3:
            handle = len(got)
            got[handle] = []
            peer.attach("q", handle=handle, mode=None)
        elif got:
            handle = rng.choice(list(got))
            got[handle] += said(bodies(peer.flow(rng.randint(0, 5), handle=handle, count=len(got[handle]))))
            peer.flow(0, handle=handle, count=len(got[handle]))
    for handle, some in got.items():
        assert some + said(bodies(peer.flow(1000, handle=handle, count=len(some)))) == sent
