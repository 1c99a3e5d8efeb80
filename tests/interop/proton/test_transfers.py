"""Qpid Proton sends to the broker and receives from it: bodies, bytes, sizes, settle modes."""

import struct
import uuid

import proton
import pytest
from proton import Delivery, Message
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Container

from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect
from tests.interop.proton_peer import ProtonPeer

BODIES = [
    None,
    True,
    0,
    -(2**63),
    proton.ubyte(255),
    proton.ushort(65535),
    proton.uint(2**32 - 1),
    proton.ulong(2**64 - 1),
    proton.byte(-128),
    proton.short(-32768),
    proton.int32(-(2**31)),
    proton.float32(1.5),
    -1e300,
    proton.decimal32(7),
    proton.decimal64(7),
    proton.decimal128(b"0123456789abcdef"),
    proton.char("\N{CAT FACE}"),
    proton.timestamp(1_700_000_000_000),
    uuid.UUID(int=7),
    b"\x00\xff",
    "",
    "g\u00fcnaydin" * 100,
    proton.symbol("sym"),
    [],
    [1, [2, None], {"a": "b"}],
    {"k": {"deep": [1, 2]}, proton.symbol("s"): 1.0},
    proton.Array(proton.UNDESCRIBED, proton.Data.INT, *map(proton.int32, (1, 2, 3))),
    proton.Described(proton.symbol("what"), [1]),
]
ODD = {
    "a string at full width": b"\x00\x53\x77\xb1\x00\x00\x00\x02hi",
    "a section named by its symbol": b"\x00\xa3\x11amqp:amqp-value:*\xa1\x01x",
    "a section named by a full-width ulong": b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x77\x40",
    "properties with a null written out": b"\x00\x53\x73\xd0\x00\x00\x00\x06\x00\x00\x00\x02\x40\x40\x00\x53\x77\x40",
    "several data sections": b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xb0\x00\x00\x00\x01b\x00\x53\x75\xa0\x00",
    "several sequence sections": b"\x00\x53\x76\x45\x00\x53\x76\xc0\x03\x01\x54\x07",
    "a list32 that a list8 could hold": b"\x00\x53\x76\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x41",
    "a footer": b"\x00\x53\x77\x40\x00\x53\x78\xc1\x01\x00",
    "application properties in a map32": b"\x00\x53\x74\xd1\x00\x00\x00\x08\x00\x00\x00\x02\xa1\x01k\x41"
    b"\x00\x53\x77\x40",
}


def test_every_body_comes_as_it_was_sent(peer: ProtonPeer, queue: str) -> None:
    """Every type that proton can write arrives with its type and value."""
    deliveries = peer.sender(queue).send(*[Message(body, durable=True) for body in BODIES])
    assert {int(delivery.remote_state) for delivery in deliveries} == {int(Delivery.ACCEPTED)}
    receiver = peer.receiver(queue, credit=len(BODIES))
    messages = [got.message for got in receiver.wait(len(BODIES))]
    # Proton gives binary as a view.
    bodies = [bytes(message.body) if isinstance(message.body, memoryview) else message.body for message in messages]
    assert [repr(body) for body in bodies] == [repr(body) for body in BODIES]


def test_properties_and_annotations_come_as_they_were_sent(peer: ProtonPeer, queue: str) -> None:
    """Header, annotations, properties and application properties arrive; delivery annotations end at the broker."""
    sent = Message(
        "body",
        id=uuid.UUID(int=9),
        user_id=b"me",
        address="there",
        subject="about",
        reply_to="back",
        correlation_id=proton.ulong(5),
        content_type=proton.symbol("text/plain"),
        content_encoding=proton.symbol("none"),
        expiry_time=4_000_000_000.0,
        creation_time=1_600_000_000.0,
        group_id="group",
        group_sequence=4,
        reply_to_group_id="other",
        properties={"key": 1, "none": None},
        annotations={proton.symbol("x-opt-kept"): "yes"},
        instructions={proton.symbol("x-opt-hop"): "ends"},
        durable=True,
        priority=7,
        ttl=60.0,
    )
    peer.sender(queue).send(sent)
    got = peer.receiver(queue, credit=1).next().message
    names = [name for name in dir(Message) if isinstance(getattr(Message, name), property)]
    names = [name for name in names if name not in {"inferred", "instructions", "ttl"}]
    assert "group_sequence" in names
    assert [getattr(got, name) for name in names] == [getattr(sent, name) for name in names]
    assert not got.instructions
    assert got.delivery_count == 0
    # What is left of it.
    assert 50 < got.ttl <= 60


@pytest.mark.parametrize("what", ODD)
def test_the_bare_message_is_byte_identical(peer: ProtonPeer, queue: str, what: str) -> None:
    """Encodings that we would not choose are passed on as they are, with a header before them or without."""
    bare = ODD[what]
    header = b"\x00\x53\x70\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x41"
    sender = peer.sender(queue)
    assert [int(each.remote_state) for each in sender.send(bare, header + bare)] == [int(Delivery.ACCEPTED)] * 2
    receiver = peer.receiver(queue, credit=2)
    assert [got.data for got in receiver.wait(2)] == [bare, header + bare]


def test_a_redelivered_message_keeps_its_bare_bytes(peer: ProtonPeer, queue: str) -> None:
    """Only header and message annotations change when a message comes again."""
    bare = b"".join((ODD["properties with a null written out"], ODD["a footer"][3 + 1 :]))
    peer.sender(queue).send(bare)
    receiver = peer.receiver(queue, credit=1)
    receiver.next().settle(Delivery.MODIFIED, failed=True, annotations={proton.symbol("x-opt-why"): "again"})
    again = receiver.next()
    assert again.data.endswith(bare)
    assert (again.delivery_count, again.message.annotations) == (1, {"x-opt-why": "again"})


def test_a_new_header_keeps_the_old_fields(peer: ProtonPeer, queue: str) -> None:
    """Counting a delivery leaves durable, priority and the annotations of the sender as they were; time has passed."""
    sent = Message("x", durable=True, priority=7, ttl=60.0, annotations={proton.symbol("x-opt-mine"): 1})
    peer.sender(queue).send(sent)
    receiver = peer.receiver(queue)
    receiver.next().settle(Delivery.MODIFIED, failed=True)
    again = receiver.next().message
    assert (again.durable, again.priority, again.delivery_count) == (True, 7, 1)
    assert 50 < again.ttl <= 60
    assert again.annotations == {"x-opt-mine": 1}


def test_a_message_without_header_is_not_durable(peer: ProtonPeer, queue: str) -> None:
    """header.durable absent means false, priority absent 4; neither is invented, also when it comes again."""
    peer.sender(queue).send(b"\x00\x53\x77\xa1\x01x")
    receiver = peer.receiver(queue)
    for _ in range(2):
        got = receiver.next()
        assert (got.message.durable, got.message.priority) == (False, 4)
        got.settle(Delivery.MODIFIED, failed=True)


def test_multi_frame_messages(connect: Connect, queue: str) -> None:
    """A message of 3 MiB crosses small frames both ways, whole, and others on the link follow it in order."""
    peer = connect(max_frame_size=16_384)
    body = bytes(range(256)) * (3 * 4096)
    peer.sender(queue).send(Message(body, durable=True), "after")
    receiver = peer.receiver(queue, credit=2)
    large, after = (got.message for got in receiver.wait(2))
    assert large.body == body
    assert after.body == "after"


def test_a_message_over_the_limit_ends_its_link_only(peer: ProtonPeer, queue: str) -> None:
    """Beyond max-message-size: detach with amqp:link:message-size-exceeded; the connection goes on."""
    sender = peer.sender(queue)
    limit = sender.link.remote_max_message_size
    assert limit == 16 * 1024 * 1024
    with pytest.raises(proton.utils.LinkDetached) as caught:
        sender.send(b"\x00\x53\x75\xb0" + struct.pack(">I", limit) + bytes(limit))
    assert caught.value.condition == "amqp:link:message-size-exceeded"
    other = peer.sender(queue)
    assert other.send("goes on")[0].remote_state == Delivery.ACCEPTED
    assert peer.receiver(queue).next().message.body == "goes on"


@pytest.mark.parametrize("bad", [b"\x00\x53\x70\xc0\xff\x01", b"", b"\x00\x53\x75\xa0\x00more", b"\x00\x53\x75\x45"])
def test_a_malformed_message_is_rejected(peer: ProtonPeer, queue: str, bad: bytes) -> None:
    """Its outcome is rejected with amqp:decode-error; the link goes on, and the messages around it are there."""
    sender = peer.sender(queue)
    first, refused, last = sender.send("good", bad, "too")
    assert (first.remote_state, last.remote_state) == (Delivery.ACCEPTED, Delivery.ACCEPTED)
    assert refused.remote_state == Delivery.REJECTED
    assert refused.remote.condition.name == "amqp:decode-error"
    receiver = peer.receiver(queue)
    assert [receiver.next().message.body for _ in range(2)] == ["good", "too"]


def test_a_settled_malformed_message_ends_its_link_only(peer: ProtonPeer, queue: str) -> None:
    """Without an outcome its error is that of the detach; what was before it is there."""
    sender = peer.sender(queue, options=AtMostOnce())
    sender.put(Message("good"), settled=True)
    sender.put(b"\x00\x53\x75\xa0\x00more", settled=True)
    with pytest.raises(proton.utils.LinkDetached) as caught:
        peer.wait(lambda: False, "the detach")
    assert caught.value.condition == "amqp:decode-error"
    assert peer.receiver(queue).next().message.body == "good"


def test_settled_transfers_are_kept(peer: ProtonPeer, queue: str) -> None:
    """A pre-settled message has no outcome, and is there like any other."""
    sender = peer.sender(queue, options=AtMostOnce())
    for number in range(10):
        sender.put(Message(number, durable=True), settled=True)
    receiver = peer.receiver(queue, credit=10)
    assert [got.message.body for got in receiver.wait(10)] == list(range(10))


def test_a_receiver_at_most_once_gets_settled_deliveries(connect: Connect, queue: str) -> None:
    """snd-settle-mode settled: deliveries come settled, and do not come back when the receiver dies."""
    connect().sender(queue).send("once")
    first = connect()
    got = first.receiver(queue, options=AtMostOnce()).next()
    assert got.delivery.settled
    first.drop()
    second = connect().receiver(queue)
    second.drain(1)
    assert second.got == []


def test_a_mixed_sender_settles_some(peer: ProtonPeer, queue: str) -> None:
    """snd-settle-mode mixed: settled and unsettled transfers on one link, in order."""
    sender = peer.sender(queue)
    settled = [number % 3 == 0 for number in range(30)]
    sent = [sender.put(Message(number), settled=flag) for number, flag in enumerate(settled)]
    peer.wait(lambda: all(each.settled for each, flag in zip(sent, settled, strict=True) if not flag), "outcomes")
    receiver = peer.receiver(queue, credit=30)
    assert [got.message.body for got in receiver.wait(30)] == list(range(30))


def test_an_aborted_delivery_leaves_nothing(peer: ProtonPeer, queue: str) -> None:
    """Part of a message, then abort: the queue has only what came whole."""
    sender = peer.sender(queue)
    sender.send("before")
    delivery = sender.link.delivery("aborted")
    sender.link.stream(bytes(100_000))
    peer.wait(lambda: sender.link.session.outgoing_bytes == 0, "the part to leave")
    delivery.abort()
    sender.send("after")
    receiver = peer.receiver(queue, credit=10)
    assert [got.message.body for got in receiver.wait(2)] == ["before", "after"]
    receiver.drain(0)
    assert receiver.got == []


class Relay(MessagingHandler):
    """Proton's own pattern: sends as it gets credit, accepts as it receives."""

    def __init__(self, url: str, address: str, count: int) -> None:
        super().__init__(prefetch=50)
        self.url, self.address, self.count = url, address, count
        self.sent = self.accepted = 0
        self.received: list[object] = []

    def on_start(self, event: proton.Event) -> None:
        connection = event.container.connect(self.url, reconnect=False)
        event.container.create_sender(connection, self.address, options=AtLeastOnce())
        event.container.create_receiver(connection, self.address)

    def on_sendable(self, event: proton.Event) -> None:
        while event.sender.credit and self.sent < self.count:
            event.sender.send(Message(self.sent, durable=self.sent % 2 == 0))
            self.sent += 1

    def on_accepted(self, event: proton.Event) -> None:
        self.accepted += 1
        self._end(event)

    def on_message(self, event: proton.Event) -> None:
        self.received.append(event.message.body)
        self._end(event)

    def _end(self, event: proton.Event) -> None:
        if self.accepted == self.count == len(self.received):
            event.connection.close()


def test_the_reactor_sends_and_receives_in_order(broker: ChildBroker, queue: str) -> None:
    """2,000 messages by MessagingHandler: each accepted once, each received once, in order."""
    relay = Relay(broker.url, queue, 2000)
    Container(relay).run()
    assert relay.accepted == 2000
    assert relay.received == list(range(2000))
