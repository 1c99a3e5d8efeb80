"""Large messages with proton over TCP, which streams them in small frames; brokers are killed in the middle."""

import random
from pathlib import Path

import proton
import pytest
from proton import Delivery, Message
from proton.reactor import Selector

from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import ProtonPeer, Sending

MIB = 1 << 20


def large(number: int, size: int) -> bytes:
    return bytes(Message(random.Random(number).randbytes(size), durable=True, inferred=True).encode())


def put_part(peer: ProtonPeer, link: proton.Sender, data: bytes) -> None:
    """Stream a part of a delivery, as fast as proton's output takes it."""
    for start in range(0, len(data), 64 << 10):
        link.stream(data[start : start + (64 << 10)])
        peer.wait(lambda: link.session.outgoing_bytes < MIB, "the output of a part")


def test_a_stream_in_small_frames_is_delivered_byte_for_byte(connect: Connect, queue: str) -> None:
    """Beside it, on another link of the same connection, small messages are accepted at once."""
    peer = connect(max_frame_size=4096)
    body = large(1, 5 * MIB + 123)
    sending, small = peer.sender(queue), peer.sender(f"{queue}-small")
    delivery = sending.link.delivery("large")
    put_part(peer, sending.link, body[: 3 * MIB])
    (accepted,) = small.send(Message("small", durable=True))
    assert accepted.remote_state == Delivery.ACCEPTED
    assert not delivery.settled
    put_part(peer, sending.link, body[3 * MIB :])
    sending.link.advance()
    peer.wait(lambda: delivery.settled, "its outcome")
    assert delivery.remote_state == Delivery.ACCEPTED
    got = connect(max_frame_size=4096).receiver(queue).next()
    assert got.data == body
    got.settle(Delivery.ACCEPTED)


def test_a_redelivery_has_its_count_and_the_same_body(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """Only the sections before the body are rebuilt."""
    body = random.Random(2).randbytes(3 * MIB)
    peer.sender(queue).send(Message(body, durable=True, inferred=True, properties={"region": "eu"}))
    first = connect().receiver(queue, credit=1)
    first.next().settle(Delivery.MODIFIED, failed=True)
    first.close()
    again = connect().receiver(queue, options=Selector("region = 'eu'")).next()
    assert again.delivery_count == 1
    assert again.message.body == body


def test_an_abort_leaves_nothing(peer: ProtonPeer, queue: str, connect: Connect) -> None:
    """The link takes the next message."""
    sending = peer.sender(queue)
    delivery = sending.link.delivery("aborted")
    put_part(peer, sending.link, large(3, 3 * MIB))
    delivery.abort()
    sending.send("after")
    receiver = connect().receiver(queue)
    assert receiver.next().message.body == "after"
    receiver.drain(1)
    assert not receiver.got


def test_a_kill_in_the_middle_of_an_upload_leaves_nothing(tmp_path: Path) -> None:
    """And what was accepted before is there, whole."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    try:
        peer = ProtonPeer(broker.url)
        whole = large(4, 3 * MIB)
        sending = peer.sender("q")
        sending.send(whole)
        sending.link.delivery("cut")
        put_part(peer, sending.link, large(5, 4 * MIB))
        broker.kill()
        broker.start()
        again = ProtonPeer(broker.url)
        receiver = again.receiver("q")
        assert receiver.next().data == whole
        receiver.drain(1)
        assert not receiver.got
        again.drop()
    finally:
        broker.kill()


def test_a_kill_in_the_middle_of_a_download_returns_the_message(tmp_path: Path) -> None:
    """The next receiver gets it whole."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    try:
        peer = ProtonPeer(broker.url)
        body = random.Random(6).randbytes(12 * MIB)
        peer.sender("q").send(Message(body, durable=True, inferred=True))
        receiving = peer.receiver("q", credit=1)
        peer.wait(lambda: receiving.link.current is not None, "the first frame")
        broker.kill()
        broker.start()
        got = ProtonPeer(broker.url).receiver("q").next()
        assert got.message.body == body
    finally:
        broker.kill()


def test_a_slow_receiver_delays_no_other_link(connect: Connect, queue: str) -> None:
    """A receiver that takes nothing of a large message, and another one of small messages on the same broker."""
    peer = connect()
    peer.sender(queue).send(large(7, 10 * MIB))
    slow = connect()
    stuck = slow.receiver(queue, credit=1)
    slow.wait(lambda: stuck.link.current is not None, "the first frame")
    peer.sender(f"{queue}-small").send(*[f"{number}" for number in range(50)])
    receiver = connect().receiver(f"{queue}-small", credit=50)
    assert [got.message.body for got in receiver.wait(50)] == [f"{number}" for number in range(50)]


@pytest.mark.parametrize("limit", ["upload_ahead_bytes", "upload_waiting_bytes"])
def test_an_upload_that_outruns_a_narrow_limit_goes_on(start_broker: StartBroker, queue: str, limit: str) -> None:
    """The window closes again and again, or the socket is not read: small messages of another session are accepted."""
    peer = ProtonPeer(start_broker("--set", f"server.{limit}=65536").url, max_frame_size=16384)
    body = large(8, 12 * MIB)
    sending = peer.sender(queue)
    session = peer.connection.session()
    session.open()
    link = session.sender("small")
    link.target.address = f"{queue}-small"
    link.open()
    small = Sending(peer, link)
    delivery = sending.link.delivery("large")
    for start in range(0, len(body), 2 * MIB):
        put_part(peer, sending.link, body[start : start + 2 * MIB])
        (accepted,) = small.send(f"after {start}")
        assert accepted.remote_state == Delivery.ACCEPTED
    sending.link.advance()
    peer.wait(lambda: delivery.settled, "its outcome")
    assert delivery.remote_state == Delivery.ACCEPTED
    assert peer.receiver(queue).next().data == body
    assert len(peer.receiver(f"{queue}-small", credit=10).wait(6)) == 6
    peer.drop()
