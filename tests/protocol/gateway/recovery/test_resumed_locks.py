"""Suspended links of queues with locks: the locks count on, and a later outcome changes nothing."""

from ambermq.engine.commands import DeclareQueue, UpdateQueue
from ambermq.engine.model.state import totals_of
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.amqp10.performatives.classes import Accepted, Received
from tests.engine.rig import Rig
from tests.protocol.gateway.recovery.resuming import FOREVER, MESSAGE, Resuming

LOCK_MS = 10_000


def held(count: int) -> tuple[Resuming, list[bytes]]:
    """A suspended link of a queue with locks that holds deliveries, and their tags."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings().with_values({"lock_ms": LOCK_MS})))
    peer = Resuming(rig)
    peer.attach(terminus=FOREVER)
    tags = more(peer, count)
    peer.detach()
    return peer, tags


def more(peer: Resuming, count: int, *, sent: int = 0) -> list[bytes]:
    """Publish messages; return the tags of what comes."""
    peer.publish(count)
    return [bytes(one.delivery_tag or b"") for one, _ in peer.receive(count=sent)]


def wait(peer: Resuming, duration_ms: int) -> None:
    """Advance the time."""
    peer.rig.now_us += 1000 * duration_ms
    peer.wire.gateway.carry_out(peer.rig.do())


def test_a_suspended_link_keeps_its_deliveries_while_their_locks_last() -> None:
    """And has them when it is resumed in time, with their tags."""
    peer, tags = held(3)
    wait(peer, LOCK_MS - 100)
    assert peer.counts() == []
    answer = peer.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags))
    assert set(answer.unsettled or {}) == set(tags)
    again = peer.receive()
    assert [(bytes(one.delivery_tag or b""), one.resume) for one, _ in again] == [(tag, True) for tag in tags]
    assert [body[-1:] for _, body in again] == [b"0", b"1", b"2"]


def test_a_lock_counts_on_while_its_link_is_suspended() -> None:
    """At its end the message returns, as a failed delivery, and others get it."""
    peer, tags = held(2)
    wait(peer, LOCK_MS + 100)
    assert peer.counts() == [1, 1]
    assert len(peer.rig.loop.state.suspended) == 1
    answer = peer.attach(terminus=FOREVER, unsettled={tags[0]: Accepted(), tags[1]: None})
    assert answer.unsettled in (None, {})
    # Neither the outcome nor the tags of the expired deliveries matter.
    again = peer.receive()
    assert [one.resume for one, _ in again] == [False, False]
    assert not {bytes(one.delivery_tag or b"") for one, _ in again} & set(tags)
    assert peer.rig.queue().accepted == 0


def test_a_lock_counts_on_after_the_resumption() -> None:
    """The time in which the link was suspended is a part of it."""
    peer, tags = held(1)
    wait(peer, LOCK_MS // 2)
    peer.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags))
    ((again, _),) = peer.receive(1)
    wait(peer, LOCK_MS // 2 + 100)
    assert peer.counts() == [1]
    peer.dispose(again.delivery_id or 0, settled=True, state=Accepted())
    assert peer.rig.queue().depth == 1


def test_a_delivery_whose_lock_ends_before_it_is_sent_again() -> None:
    """Nothing is sent for it, and the link goes on."""
    peer, tags = held(2)
    peer.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags))
    wait(peer, LOCK_MS + 100)
    again = peer.receive()
    assert [(one.resume, bytes(one.delivery_tag or b"")[:8]) for one, _ in again] == [(False, bytes(7) + b"\x01")] * 2


def test_the_second_delivery_of_a_message_is_resumed_by_its_own_tag() -> None:
    """The outcome of the expired one is not taken for one of the second."""
    peer, tags = held(1)
    wait(peer, LOCK_MS + 100)
    peer.attach(terminus=FOREVER, unsettled={})
    ((second, _),) = peer.receive(1)
    tag = bytes(second.delivery_tag or b"")
    peer.detach()
    answer = peer.attach(terminus=FOREVER, unsettled={tags[0]: Accepted(), tag: None})
    assert answer.unsettled == {tag: None}
    ((again, body),) = peer.receive(1)
    assert (bytes(again.delivery_tag or b""), again.resume) == (tag, True)
    assert body.endswith(b"0")
    peer.detach()
    peer.attach(terminus=FOREVER, unsettled={tag: Accepted()})
    assert peer.rig.queue().depth == 0


def test_a_partly_received_delivery_with_a_lock_begins_anew() -> None:
    """Its first delivery had an annotation, which the second one has not."""
    peer, (tag,) = held(1)
    peer.attach(terminus=FOREVER, unsettled={tag: Received(section_number=0, section_offset=4)})
    ((again, body),) = peer.receive()
    assert (again.resume, again.state, body) == (True, None, MESSAGE + b"0")


def test_after_a_kill_of_the_broker_the_locks_begin_anew() -> None:
    """Nothing says when they began."""
    peer, tags = held(2)
    wait(peer, LOCK_MS // 2)
    other = Resuming(peer.rig.next_life())
    wait(other, LOCK_MS - 100)
    assert other.counts() == []
    wait(other, 200)
    assert other.counts() == [1, 1]
    assert other.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags)).unsettled in (None, {})


def test_without_locks_any_more_the_deliveries_stay() -> None:
    """As those of a link that is attached."""
    peer, tags = held(1)
    peer.rig.do(UpdateQueue("key", "q", totals_of, {"lock_ms": 0}))
    wait(peer, 2 * LOCK_MS)
    assert set(peer.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags)).unsettled or {}) == set(tags)
