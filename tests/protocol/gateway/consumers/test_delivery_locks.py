"""Links on queues with locks: tags, annotations, late outcomes, and transactions, frame by frame."""

from typing import Any

import pytest

from ambermq.engine.commands import DeclareQueue, UpdateQueue
from ambermq.engine.effects import Deliver
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.amqp10.message.message import decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Discharge,
    Disposition,
    Flow,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.types.values import Symbol, Timestamp
from ambermq.protocol.gateway.consumers.delivery_locks import ExpiredDeliveries
from tests.engine.rig import Rig
from tests.protocol.gateway.transactions.test_connection_transactions import BODY, Transacting, condition
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import Watching, bodies

LOCK_MS = 1000
LOCK_US = 1000 * LOCK_MS
LATE_US = 60_000


def locked_rig(*, lock_ms: int = LOCK_MS) -> Rig:
    """Return a rig with a queue with locks."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings().with_values({"lock_ms": lock_ms})))
    return rig


def receiving(count: int, *, credit: int = 100, **fields: Any) -> tuple[Watching, list[tuple[Any, bytes]]]:
    """Return a receiver on a queue with locks, with what it was sent of `count` messages."""
    peer = Watching(locked_rig(), **fields)
    peer.say(Attach(name="r", handle=0, role=True, source=Source(address="q"), rcv_settle_mode=1))
    if count:
        peer.rig.do(peer.rig.publish(peer.rig.producer(), *[BODY + b"%d" % number for number in range(count)]))
    return peer, peer.flow(credit)


def wait(peer: Watching, duration_us: int) -> list[tuple[Any, bytes]]:
    """Advance the time; return what comes."""
    peer.rig.now_us += duration_us
    said = peer.settle()
    while peer.rig.loop.schedule.timer_us <= peer.rig.now_us:
        said += peer.settle()
    return said


def tags(said: list[tuple[Any, bytes]]) -> list[bytes]:
    """Return the delivery-tags among what came."""
    return [bytes(each.delivery_tag) for each, _ in said if isinstance(each, Transfer)]


def answers(said: list[Any]) -> list[tuple[int, int, Any]]:
    """Return the ids and the states of the dispositions among what came, which settle."""
    found = [each for each in said if isinstance(each, Disposition)]
    assert all(each.settled and not each.role for each in found)
    return [(each.first, each.first if each.last is None else each.last, each.state) for each in found]


def test_a_delivery_says_when_its_lock_ends() -> None:
    """By an annotation; what comes again has another tag and the next time."""
    peer, said = receiving(2)
    assert [body[-1:] for body in bodies(said)] == [b"0", b"1"]
    until_ms = peer.rig.now_us // 1000 + LOCK_MS
    annotations = [decode_message(body).message_annotations for body in bodies(said)]
    assert annotations == [{Symbol("x-opt-locked-until"): Timestamp(until_ms)}] * 2
    again = wait(peer, LOCK_US + LATE_US)
    assert [body[-1:] for body in bodies(again)] == [b"0", b"1"]
    assert [decode_message(body).header.delivery_count for body in bodies(again)] == [1, 1]  # type: ignore[union-attr]
    assert [decode_message(body).message_annotations for body in bodies(again)] == [
        {Symbol("x-opt-locked-until"): Timestamp(peer.rig.now_us // 1000 + LOCK_MS)}
    ] * 2
    assert [tag[8:] for tag in tags(again)] == [tag[8:] for tag in tags(said)]
    assert [int.from_bytes(tag[:8]) for tag in tags(said) + tags(again)] == [0, 0, 1, 1]
    third = wait(peer, LOCK_US + LATE_US)
    assert len({*tags(said), *tags(again), *tags(third)}) == 6


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("state", [Accepted(), Released(), Rejected(), Modified(delivery_failed=True)])
def test_a_late_outcome_changes_nothing(state: Any, *, settled: bool) -> None:
    """It is answered if the receiver has not settled; one of the second delivery is applied."""
    peer, _ = receiving(3)
    assert len(bodies(wait(peer, LOCK_US + LATE_US))) == 3
    before = peer.rig.queue()
    said = peer.say(Disposition(role=True, first=0, last=1, settled=settled, state=state))
    assert peer.rig.queue() == before
    assert peer.gateway.traffic.outcomes_late == 2
    assert sum([last - first + 1 for first, last, _ in answers(said)]) == (0 if settled else 2)
    assert all(condition(one) == "amqp:precondition-failed" for _, _, one in answers(said))
    said = peer.say(Disposition(role=True, first=2, last=4, settled=False, state=Accepted()))
    late, applied = [one for one in answers(said) if one[0] < 3], [one for one in answers(said) if one[0] >= 3]
    assert [condition(one) for _, _, one in late] == ["amqp:precondition-failed"]
    assert sum([last - first + 1 for first, last, _ in applied]) == 2
    assert all(one == Accepted() for _, _, one in applied)
    assert (peer.rig.queue().accepted, peer.rig.queue().acquired_count) == (2, 1)
    (link,) = peer.peer._links.consumers.values()
    assert link._expired is not None
    assert not link._expired._by_word


def test_a_state_that_is_no_outcome_is_no_late_outcome() -> None:
    """A later settlement is."""
    peer, _ = receiving(1)
    wait(peer, LOCK_US + LATE_US)
    received = Received(section_number=0, section_offset=0)
    assert answers(peer.say(Disposition(role=True, first=0, settled=False, state=received))) == []
    assert peer.gateway.traffic.outcomes_late == 0
    peer.say(Disposition(role=True, first=0, settled=True, state=received))
    assert (peer.gateway.traffic.outcomes_late, peer.rig.queue().acquired_count) == (1, 1)


def test_clients_of_service_bus_are_told_in_their_words() -> None:
    """A connection with a link to `$cbs` is one of theirs; its deliveries have sequence numbers."""
    peer = Watching(locked_rig())
    peer.say(Attach(name="c", handle=1, role=False, source=Source(), target=Target(address="$cbs")))
    peer.say(Attach(name="r", handle=0, role=True, source=Source(address="q"), rcv_settle_mode=1))
    peer.rig.do(peer.rig.publish(peer.rig.producer(), BODY + b"0"))
    (body,) = bodies(peer.flow(9))
    (word,) = peer.rig.queue().held_by(next(iter(peer.rig.queue().acquired)))
    found = decode_message(body).message_annotations
    assert found is not None
    assert found["x-opt-sequence-number"] == word >> 16
    wait(peer, LOCK_US + LATE_US)
    ((_, _, state),) = answers(peer.say(Disposition(role=True, first=0, settled=False, state=Accepted())))
    assert condition(state) == "com.microsoft:message-lock-lost"


def test_what_has_no_room_returns() -> None:
    """No lock passes in a backlog: what the window does not take is not counted, and comes when there is room."""
    peer, _ = receiving(0)
    consumer = next(iter(peer.gateway.consumers))
    windows = {"next_outgoing_id": FIRST_ID, "outgoing_window": 1000}
    peer.give(Wire.frame(Flow(**windows, next_incoming_id=0, incoming_window=2)))
    peer.rig.loop.set_credit(consumer, 5)
    effects = peer.rig.do(peer.rig.publish(peer.rig.producer(), *[BODY + b"%d" % number for number in range(5)]))
    peer.gateway.carry_out([one for one in effects if type(one) is Deliver])
    said = peer.settle()
    assert [body[-1:] for body in bodies(said)] == [b"0", b"1"]
    assert (peer.rig.queue().acquired_count, peer.rig.queue().available) == (2, 3)
    said = peer.give(Wire.frame(Flow(**windows, next_incoming_id=2, incoming_window=100)))
    assert [body[-1:] for body in bodies(said)] == [b"2", b"3", b"4"]
    assert peer.rig.queue().counters.failed == 0
    peer.say(Disposition(role=True, first=0, last=4, settled=True, state=Accepted()))
    assert peer.rig.queue().accepted == 5


def test_an_open_transaction_keeps_the_lock() -> None:
    """Until it ends: a commit is done, and after a rollback the lock is over."""
    peer = Transacting(locked_rig())
    for text in (b"a", b"b"):
        peer.send(1, BODY + text)
    first, second = peer.get(2)
    one, two = peer.declare(), peer.declare()
    peer.retire(one, first, settled=True)
    peer.retire(two, second, settled=False)
    wait(peer, 3 * LOCK_US)
    assert peer.rig.queue().acquired_count == 2
    assert peer.control(Discharge(txn_id=one)) == Accepted()
    assert peer.control(Discharge(txn_id=two, fail=True)) == Accepted()
    wait(peer, LATE_US)
    assert (peer.rig.queue().accepted, peer.rig.queue().acquired_count, peer.rig.queue().available) == (1, 0, 1)


def test_a_late_outcome_ends_its_transaction() -> None:
    """Its commit is refused, and the message stays where it is."""
    peer = Transacting(locked_rig())
    peer.send(1, BODY + b"a")
    (first,) = peer.get(1)
    transaction = peer.declare()
    wait(peer, LOCK_US + LATE_US)
    ((_, _, state),) = answers(peer.retire(transaction, first, settled=False))
    assert condition(state) == "amqp:precondition-failed"
    assert condition(peer.control(Discharge(txn_id=transaction))) == "amqp:transaction:rollback"
    assert peer.rig.queue().available == 1
    other = TransactionalState(txn_id=b"none", outcome=Accepted())
    peer.get(1)
    wait(peer, LOCK_US + LATE_US)
    peer.say(Disposition(role=True, first=first + 1, settled=True, state=other))
    assert peer.gateway.traffic.outcomes_late == 2


def test_a_tag_is_new_after_the_locks_have_ended() -> None:
    """Without locks a message comes again on a link that has not settled an expired delivery of it."""
    peer, said = receiving(1, credit=1)
    wait(peer, LOCK_US + LATE_US)
    peer.rig.do(UpdateQueue("key", "q", lambda _state: {}, {"lock_ms": 0}))
    again = peer.flow(9, count=1)
    assert len({*tags(said), *tags(again)}) == 2
    assert decode_message(*bodies(again)).message_annotations is None


def test_ids_wrap() -> None:
    """Serial numbers: a delivery before the zero has expired, one behind it has not."""
    from ambermq.protocol.amqp10.events import Disposed

    expired = ExpiredDeliveries()
    expired.add([7, 8], 0)
    event = Disposed(None, MASK, [7, 8, 7], None, True)  # type: ignore[arg-type]
    found = [(is_late, part.first_id, list(part.tokens)) for is_late, part in expired.parts(event)]
    assert found == [(True, MASK, [7]), (False, 0, [8, 7])]
