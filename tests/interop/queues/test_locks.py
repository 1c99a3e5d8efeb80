"""Locks of deliveries with proton: what is not settled in time comes again, and what is said later changes nothing."""

import time
from typing import Any

from proton import Delivery, Message, symbol
from proton.reactor import LinkOption

from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import Got, Manager, ProtonPeer

_LOCK_S = 0.5
_LATE_S = 20
"""How late a lock may end on a machine that does much else."""


class Second(LinkOption):
    """A receiver that settles after the broker."""

    def apply(self, link: Any) -> None:
        link.rcv_settle_mode = 1


def declare(connect: Connect, queue: str, lock_s: float = _LOCK_S, url: str = "") -> Manager:
    """Return a manager of a queue with locks."""
    manager = Manager(connect(url))
    manager.ask("CREATE", queue, {"lock_ms": int(1000 * lock_s)})
    return manager


def until_s(got: Got) -> float:
    """Return when the lock of a delivery ends, as the delivery says."""
    return float(got.message.annotations[symbol("x-opt-locked-until")]) / 1000


def test_a_delivery_comes_again_on_the_same_link(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """With another tag and one more failed delivery; an outcome of the first one is refused, not one of the second."""
    manager = declare(connect, queue)
    peer.sender(queue).send("one", "two")
    receiver = peer.receiver(queue, credit=3, options=Second())
    began_s = time.time()
    first, second = receiver.wait(2)
    assert began_s - 1 + _LOCK_S < until_s(first) < time.time() + _LOCK_S
    second.delivery.update(Delivery.ACCEPTED)
    peer.wait(lambda: second.delivery.settled, "the answer to an outcome in time")
    again = receiver.next()
    assert time.time() >= until_s(first)
    assert (again.message.body, again.delivery_count) == ("one", 1)
    assert again.delivery.tag != first.delivery.tag
    first.delivery.update(Delivery.ACCEPTED)
    peer.wait(lambda: first.delivery.settled, "the answer to a late outcome")
    assert first.delivery.remote_state == Delivery.REJECTED
    assert first.delivery.remote.condition.name == "amqp:precondition-failed"
    assert manager.queue(queue)["acquired"] == 1
    again.delivery.update(Delivery.ACCEPTED)
    peer.wait(lambda: again.delivery.settled, "the answer to an outcome of the second delivery")
    assert again.delivery.remote_state == Delivery.ACCEPTED
    found = manager.queue(queue)
    assert (found["acquired"], found["available"], found["accepted"], found["failed"]) == (0, 0, 2, 1)


def test_another_link_gets_it(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """The late settlement of the first one is counted, and changes nothing; its link and its credit stay."""
    manager = declare(connect, queue, lock_s=2)
    sender = peer.sender(queue)
    sender.send("one")
    first = peer.receiver(queue, credit=2)
    held = first.wait(1)[0]
    first.link.drain(0)
    peer.wait(lambda: not first.link.draining(), "the end of the drain")
    other = connect().receiver(queue, credit=1)
    again = other.wait(1)[0]
    held.settle(Delivery.ACCEPTED)
    assert Manager(peer).queue(queue)["acquired"] == 1
    again.settle(Delivery.ACCEPTED)
    other.close()
    found = manager.queue(queue)
    assert (found["accepted"], found["failed"], found["consumers"]) == (1, 1, 1)
    assert manager.ask("READ", None, type="org.ambermq.broker").body["outcomes_late"] >= 1
    sender.send("two")
    assert first.next().message.body == "two"


def test_a_lock_is_renewed(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """By its delivery-tag; then it ends later, and once it has ended it is refused."""
    manager = declare(connect, queue, lock_s=2)
    peer.sender(queue).send("one")
    receiver = peer.receiver(queue, credit=1)
    held = receiver.wait(1)[0]
    tags = [held.delivery.tag.encode("latin-1") if isinstance(held.delivery.tag, str) else held.delivery.tag]
    time.sleep(0.1)
    answer = manager.ask("RENEW-LOCK", queue, {"delivery_tags": tags})
    assert answer.properties["statusCode"] == 200
    assert float(answer.body["locked_until"]) / 1000 > until_s(held)
    time.sleep(max(0, until_s(held) + 0.05 - time.time()))
    assert manager.queue(queue)["acquired"] == 1
    end_s = time.monotonic() + _LATE_S
    while manager.queue(queue)["acquired"]:
        assert time.monotonic() < end_s
        time.sleep(0.05)
    refusal = manager.ask("RENEW-LOCK", queue, {"delivery_tags": tags})
    assert (refusal.properties["statusCode"], refusal.properties["errorCondition"]) == (409, "amqp:precondition-failed")
    for wrong in ([], [b"short"], "none"):
        assert manager.ask("RENEW-LOCK", queue, {"delivery_tags": wrong}).properties["statusCode"] == 400


def test_locks_do_not_survive_a_kill(connect: Connect, start_broker: StartBroker) -> None:
    """Nothing is lost: what was held comes again, as after any kill."""
    broker: ChildBroker = start_broker()
    declare(connect, "q", url=broker.url)
    peer = connect(broker.url)
    peer.sender("q").send("one", "two")
    held = peer.receiver("q", credit=3)
    first, _ = held.wait(2)
    first.settle(Delivery.ACCEPTED)
    again = held.wait(1)[0]
    assert (again.message.body, again.delivery_count) == ("two", 1)
    broker.kill()
    broker.start()
    peer = connect(broker.url)
    got = peer.receiver("q", credit=2).wait(1)[0]
    assert (got.message.body, got.delivery_count) == ("two", 2)
    assert until_s(got) > time.time() - _LATE_S
    assert Manager(connect(broker.url)).queue("q")["accepted"] == 1
    assert isinstance(got.message, Message)
