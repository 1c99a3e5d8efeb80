"""The turns of a read with many messages: their number is limited while each message is decoded by itself."""

import pytest

from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Attach, Header, Properties, Source, Target, Transfer
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from tests.engine.rig import Rig
from tests.protocol.gateway.test_rules import User, rule_set
from tests.protocol.gateways import gateway_of
from tests.protocol.peers import FIRST_ID, Wire

_COST_MAX = 256
_COUNT = 900
_HEADER = Header(durable=True)


def turns_of(user: User, sent: Message, *, first: int, count: int = _COUNT) -> list[int]:
    """Read equal messages at once; return how many each turn has taken. The engine decides on none."""
    body = sent.encode()
    ids = [(FIRST_ID + number) & 0xFFFFFFFF for number in range(first, first + count)]
    frames = [Wire.frame(Transfer(handle=0, delivery_id=one, delivery_tag=b"12345678"), body) for one in ids]
    (link,) = user.peer._links.producers.values()
    link.link.credit = 2 * _COUNT
    turns, before, data = list[int](), link.messages, b"".join(frames)
    while data or user.peer.connection.is_resting:
        user.peer.connection.receive(data, 0)
        user.peer.handle_events()
        turns.append(link.messages - before)
        before, data = link.messages, b""
    return turns


@pytest.fixture
def user() -> User:
    """A user with a sender's link, whose turns have a limit; it may send to all queues, and each of them is checked."""
    rig = Rig(fields_of=RoutingFields)
    gateway = gateway_of(rig.loop)
    gateway.set_access(rule_set("grant root administrator", "allow ada send,create /queues/*"))
    user = User("ada", rig, gateway)
    user.peer.connection.turn_cost_max = _COST_MAX
    return user


def attach(user: User, address: str | None) -> None:
    """Attach the sender."""
    attach = Attach(name="s", handle=0, role=False, source=Source(), target=Target(address=address))
    attach.initial_delivery_count = 0
    user.say(attach)


@pytest.mark.parametrize(
    ("address", "sent"),
    [
        ("q", Message(header=_HEADER, delivery_annotations={"x-d": 1}, body=(Data(b"x"),))),
        ("q", Message(header=_HEADER, message_annotations={"x-a": "y" * 600}, body=(Data(b"x"),))),
        (None, Message(header=_HEADER, properties=Properties(to="q"), body=(Data(b"x"),))),
    ],
    ids=["delivery-annotations", "long annotations", "checked"],
)
def test_messages_that_are_never_recognised_come_in_several_turns(
    user: User, address: str | None, sent: Message
) -> None:
    """From the first read on, whatever the size of the read is."""
    attach(user, address)
    for first in (0, _COUNT):
        turns = turns_of(user, sent, first=first)
        assert sum(turns) == _COUNT
        assert max(turns) <= 2 * _COST_MAX


def test_messages_that_are_recognised_come_in_one_turn(user: User) -> None:
    """But for the first ones of their link, of which none is known."""
    attach(user, "q")
    sent = Message(header=_HEADER, body=(Data(b"x"),))
    first, *others = turns_of(user, sent, first=0)
    assert first <= 2 * _COST_MAX
    assert len(others) == 1
    assert turns_of(user, sent, first=_COUNT) == [_COUNT]
