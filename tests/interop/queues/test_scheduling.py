"""Scheduled delivery and redelivery delays with proton over TCP."""

import time

import pytest
from proton import Delivery, Message, symbol, timestamp

from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager, ProtonPeer

_DELAY_S = 1.5
_EARLY_S = 0.05
"""The clock of the test and that of the broker round differently."""


def _annotated(body: str, **annotations: object) -> Message:
    names = {symbol(f"x-opt-{name.replace('_', '-')}"): value for name, value in annotations.items()}
    return Message(body, id=body, durable=True, annotations=names)


@pytest.mark.parametrize("kind", ["delay", "time", "enqueue"])
def test_a_message_comes_at_its_time(peer: ProtonPeer, connect: Connect, queue: str, kind: str) -> None:
    """Behind one that was sent later, with its annotations as they were sent."""
    began, now_ms = time.monotonic(), int(time.time() * 1000)
    due_ms = now_ms + int(1000 * _DELAY_S)
    message = {
        "delay": _annotated("late", delivery_delay=int(1000 * _DELAY_S)),
        "time": _annotated("late", delivery_time=due_ms, delivery_delay=1),
        "enqueue": _annotated("late", scheduled_enqueue_time=timestamp(due_ms)),
    }[kind]
    peer.sender(queue).send(message, "at once")
    state = Manager(connect()).queue(queue)
    # On a busy machine the answer may come after the time.
    assert (state["scheduled"], state["available"]) == (1, 1) or time.monotonic() - began > _DELAY_S - _EARLY_S
    receiver = peer.receiver(queue)
    receiver.next().settle(Delivery.ACCEPTED)
    late = receiver.next()
    assert time.monotonic() - began >= _DELAY_S - _EARLY_S
    assert late.message.body == "late"
    assert late.message.annotations == message.annotations
    late.settle(Delivery.ACCEPTED)


def test_messages_that_are_sent_together_have_times_of_their_own(peer: ProtonPeer, queue: str) -> None:
    """They come in the order of their times, and each not before its own."""
    now_ms = int(time.time() * 1000)
    delays_ms = {"third": 2000, "first": 1000, "second": 1500, "fourth": 2000}
    peer.sender(queue).send(*[_annotated(body, delivery_time=now_ms + ms) for body, ms in delays_ms.items()])
    receiver = peer.receiver(queue)
    for body in ("first", "second", "third", "fourth"):
        found = receiver.next()
        assert found.message.body == body
        assert time.time() * 1000 >= now_ms + delays_ms[body]
        found.settle(Delivery.ACCEPTED)


def test_the_past_is_now(peer: ProtonPeer, queue: str) -> None:
    """A time has precedence over a delay."""
    peer.sender(queue).send(_annotated("past", delivery_time=1, delivery_delay=3_600_000))
    assert peer.receiver(queue).next().message.body == "past"


def test_a_cancelled_message_does_not_come(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """By management: found with its time and its message-id, cancelled by its offset."""
    peer.sender(queue).send(_annotated("a", delivery_delay=60_000), _annotated("b", delivery_delay=2000))
    manager = Manager(connect())
    found = manager.ask("FIND", queue, {"scheduled": True, "read": True}).body
    rows = {row["message_id"]: row for row in found["messages"]}
    assert set(rows) == {"a", "b"}
    assert rows["a"]["due"] > int(time.time() * 1000) - 60_000
    done = manager.ask("CANCEL", queue, {"offsets": [rows["a"]["offset"]]}).body
    assert (done["removed"], done["gone"]) == (1, 0)
    assert peer.receiver(queue).next().message.body == "b"
    assert manager.queue(queue)["discarded"] == 1


def test_a_failed_delivery_waits(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """In its old place, with its delivery-count; released messages come at once."""
    manager = Manager(connect())
    settings = {"redelivery_delay_ms": int(1000 * _DELAY_S)}
    manager.ask("CREATE", queue, settings)
    peer.sender(queue).send("first", "second")
    receiver = peer.receiver(queue)
    receiver.next().settle(Delivery.RELEASED)
    again = receiver.next()
    assert again.message.body == "first"
    began = time.monotonic()
    again.settle(Delivery.MODIFIED, failed=True)
    assert receiver.next().message.body == "second"
    late = receiver.next()
    assert time.monotonic() - began >= _DELAY_S - _EARLY_S
    assert (late.message.body, late.delivery_count) == ("first", 1)


def test_the_capability_is_offered(peer: ProtonPeer) -> None:
    """In the open frame; the answer to a sender that desires it has it too."""
    offered = peer.connection.remote_offered_capabilities
    assert "DELAYED_DELIVERY" in [str(one) for one in offered]
