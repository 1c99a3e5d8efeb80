"""Checks of a running broker by a raw client."""

from ambermq.protocol.amqp10.performatives.classes import Accepted, Close, Detach, Disposition, End, Transfer
from ambermq.tools.broker.child_broker import ChildBroker
from tests.protocol.tcp import TcpWire

RECEIVER = True
MIB = 1024 * 1024


def still_serves(broker: ChildBroker) -> None:
    """Check that another client can send a message and receive it."""
    with TcpWire.begun(broker.url, container="good") as wire:
        wire.attach("good", role=not RECEIVER, name="up")
        wire.send(0, b"\x00\x53\x77\xa1\x04good")
        assert isinstance(wire.expect(Disposition).state, Accepted)
        wire.attach("good", role=RECEIVER, handle=1, name="down")
        wire.flow(handle=1, delivery_count=0, link_credit=1)
        got, payload = wire.expect_frame(Transfer)
        assert payload == b"\x00\x53\x77\xa1\x04good"
        wire.say(Disposition(role=RECEIVER, first=got.delivery_id, settled=True, state=Accepted()), Close())
        wire.expect(Close)


def goodbye(wire: TcpWire) -> tuple[str, str]:
    """Return scope and condition of the first close, end or detach with an error; `hung up` if the socket ends."""
    while (read := wire.next()) is not None:
        performative = read[0]
        if isinstance(performative, Close | End | Detach) and performative.error is not None:
            return performative.NAME.split(":")[1], str(performative.error.condition)
    return "hung up", ""


ARRAY_OF_4_GIB = b"\x00\x53\x10\xc0\x0b\x01\xf0\xff\xff\xff\xf8\xff\xff\xff\xff\x40"
