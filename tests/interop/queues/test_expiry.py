"""The expiry of messages by their property absolute-expiry-time, with proton over TCP."""

import time

import pytest
from proton import Delivery, Message

from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager, ProtonPeer

_HOUR_MS = 3_600_000


def _expiring(body: str | bytes, after_ms: int, **fields: object) -> Message:
    """Return a message that expires a time from now on."""
    return Message(body, durable=True, expiry_time=(int(time.time() * 1000) + after_ms) / 1000, **fields)


def test_a_message_expires_at_its_time(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """It is not there any more; others are, with their property and without a time to live."""
    peer.sender(queue).send(_expiring("gone", 200), _expiring("here", _HOUR_MS), "plain")
    time.sleep(0.4)
    receiver = peer.receiver(queue)
    got = receiver.next()
    assert (got.message.body, got.message.ttl) == ("here", 0)
    assert got.message.expiry_time > time.time()
    got.settle(Delivery.MODIFIED, failed=True)
    again = receiver.next().message
    assert (again.body, again.ttl, again.delivery_count) == ("here", 0, 1)
    assert receiver.next().message.body == "plain"
    assert Manager(connect()).queue(queue)["discarded"] == 1


@pytest.mark.parametrize("size", [10, 3 << 20])
def test_a_time_that_has_passed_is_a_dead_letter(peer: ProtonPeer, connect: Connect, queue: str, size: int) -> None:
    """A receiver that waits for it does not get it: neither a small message nor one that comes in pieces."""
    manager = Manager(connect())
    manager.ask("CREATE", queue, {"dead_letter": f"{queue}-dead"})
    receiver = connect().receiver(queue)
    body = "x" * size
    sender = peer.sender(queue)
    (accepted,) = sender.send(_expiring(body, -1000))
    assert accepted.remote_state == Delivery.ACCEPTED
    sender.send("next")
    assert receiver.next().message.body == "next"
    dead = connect().receiver(f"{queue}-dead").next()
    assert dead.message.body == body
    assert dead.message.annotations["x-opt-dead-letter-reason"] == "expired"
    dead.settle(Delivery.ACCEPTED)


def test_a_time_to_live_has_precedence(peer: ProtonPeer, queue: str) -> None:
    """Clients of JMS set both, the property by a clock that may be wrong."""
    peer.sender(queue).send(_expiring("here", -_HOUR_MS, ttl=60.0))
    assert peer.receiver(queue).next().message.body == "here"
