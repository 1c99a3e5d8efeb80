"""The known faults of brokers of this class: the peer's connection ends, memory stays flat, others are served."""

import struct
from collections.abc import Iterator

import psutil
import pytest

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.performatives.classes import Close, Detach, Open, SaslInit, SaslMechanisms, Transfer
from ambermq.tools.broker.child_broker import ChildBroker
from tests.protocol.peers import Wire
from tests.protocol.server.checks import MIB, goodbye, still_serves
from tests.protocol.tcp import TcpWire, deadline

_SENDER = False
_GROWTH_BYTES_MAX = 48 * MIB


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No input holds the broker: the whole test has a minute."""
    with deadline(60):
        yield


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    child = ChildBroker(tmp_path_factory.mktemp("broker") / "data")
    child.start()
    yield child
    child.kill()


@pytest.fixture
def broker(running: ChildBroker) -> Iterator[ChildBroker]:
    """A broker that has grown by less than the bound when the test ends, and still serves."""
    process = psutil.Process(running.pid)
    before = process.memory_info().rss
    yield running
    still_serves(running)
    assert process.memory_info().rss - before < _GROWTH_BYTES_MAX


def _array(count: int, constructor: bytes) -> bytes:
    """An array32 of elements whose encoding has no bytes."""
    return b"\xf0" + struct.pack(">II", 4 + len(constructor), count) + constructor


def _annotated(value: bytes, times: int = 1) -> bytes:
    """A message whose annotations have a value several times, and an empty body."""
    pairs = b"".join(b"\xa3\x04k%03d" % number + value for number in range(times))
    return b"\x00\x53\x72\xd1" + struct.pack(">II", len(pairs) + 4, 2 * times) + pairs + b"\x00\x53\x75\xa0\x00"


@pytest.mark.parametrize("constructor", [b"\x40", b"\x41", b"\x43", b"\x44", b"\x45"])
def test_zero_width_array_bomb(broker: ChildBroker, constructor: bytes) -> None:
    """Four billion elements in ten bytes."""
    with TcpWire.begun(broker.url) as wire:
        wire.attach("q", role=_SENDER)
        for number in range(20):
            wire.send(number, _annotated(_array(0xFFFFFFFF, constructor)), settled=False)
        wire.say(Detach(handle=0, closed=True))
        assert wire.expect(Detach).handle == 0


def test_many_zero_width_arrays_in_one_frame(broker: ChildBroker) -> None:
    """Each array is within the limit of one, and all together are not."""
    with TcpWire.begun(broker.url) as wire:
        wire.attach("q", role=_SENDER)
        for number in range(4):
            wire.send(number, _annotated(_array(65_536, b"\x45"), 400))
        wire.say(Detach(handle=0, closed=True))
        assert wire.expect(Detach).handle == 0


def test_many_zero_width_arrays_in_the_properties_of_an_open(broker: ChildBroker) -> None:
    """A peer that has not authenticated sends them."""
    pairs = b"".join(b"\xa3\x04k%03d" % number + _array(65_536, b"\x45") for number in range(400))
    properties = b"\xd1" + struct.pack(">II", len(pairs) + 4, 800) + pairs
    fields = b"\xa1\x01c" + b"\x40" * 8 + properties
    body = b"\x00\x53\x10\xd0" + struct.pack(">II", len(fields) + 4, 10) + fields
    with TcpWire(broker.url) as wire:
        wire.give(AMQP_HEADER + struct.pack(">IBBH", 8 + len(body), 2, 0, 0) + body)
        assert wire.expect(Close).error is not None


@pytest.mark.parametrize(
    "descriptor",
    [
        b"\xa3\x0famqp:open:listX",
        b"\xa3\x09amqp:open",
        b"\x80\x00\x00\x00\x01\x00\x00\x00\x10",
        b"\x80\x10\x00\x00\x00\x00\x00\x00\x00",
        b"\xa1\x0eamqp:open:list",
    ],
)
def test_descriptor_prefix_confusion(broker: ChildBroker, descriptor: bytes) -> None:
    """A descriptor is compared whole, and with its type: none of these is an open."""
    body = b"\x00" + descriptor + b"\xc0\x05\x01\xa1\x02id"
    with TcpWire(broker.url) as wire:
        wire.give(AMQP_HEADER + struct.pack(">IBBH", 8 + len(body), 2, 0, 0) + body)
        error = wire.expect(Close).error
        assert error is not None
        assert error.condition == "amqp:decode-error"


def test_accumulated_size_is_checked(broker: ChildBroker) -> None:
    """Each frame is small, and the delivery never ends."""
    with TcpWire.begun(broker.url) as wire:
        wire.attach("q", role=_SENDER)
        piece = bytes(60_000)
        for number in range(320):
            first = {"delivery_id": 0, "delivery_tag": b"t"} if number == 0 else {}
            wire.say(Transfer(handle=0, more=True, **first), payload=piece)
        error = wire.expect(Detach).error
        assert error is not None
        assert error.condition == "amqp:link:message-size-exceeded"


@pytest.mark.parametrize("size", [0xFFFFFFFF, 64 * MIB, 2 * MIB])
def test_the_limit_of_frames_holds_before_authentication(broker: ChildBroker, size: int) -> None:
    """A SASL frame has the limit of a frame, too: its claimed length reserves no memory."""
    with TcpWire(broker.url) as wire:
        wire.give(SASL_HEADER + struct.pack(">IBBH", size, 2, SASL_FRAME, 0) + bytes(1000))
        wire.expect(SaslMechanisms)
        assert wire.rest() == []


def test_an_amqp_frame_that_is_typed_as_sasl(broker: ChildBroker) -> None:
    """An open in a SASL frame skips no authentication."""
    with TcpWire(broker.url) as wire:
        wire.give(SASL_HEADER + encode_frame(0, Open(container_id="x"), frame_type=SASL_FRAME))
        wire.expect(SaslMechanisms)
        assert wire.rest() == []
    with TcpWire.begun(broker.url) as wire:
        wire.give(encode_frame(0, SaslInit(mechanism="ANONYMOUS"), frame_type=SASL_FRAME))
        assert goodbye(wire) == ("close", "amqp:connection:framing-error")


@pytest.mark.parametrize("size", [0, 1, 7, 511])
def test_frames_that_have_room_for_nothing(broker: ChildBroker, size: int) -> None:
    """A max-frame-size below 512 is a fault of the open (2.7.1), not a division by nothing later."""
    with TcpWire(broker.url) as wire:
        wire.give(AMQP_HEADER)
        wire.say(Open(container_id="small", max_frame_size=size), Wire.begin())
        error = wire.expect(Close).error
        assert error is not None
        assert error.condition == "amqp:invalid-field"


def test_no_memory_is_reserved_for_a_claimed_length(broker: ChildBroker) -> None:
    """A binary, a string, a list and a map that claim gigabytes in a frame of some bytes."""
    for constructor in (b"\xb0", b"\xb1", b"\xb3", b"\xd0", b"\xd1", b"\xf0"):
        with TcpWire.begun(broker.url) as wire:
            wire.attach("q", role=_SENDER)
            for number in range(20):
                wire.send(number, b"\x00\x53\x77" + constructor + struct.pack(">II", 0xFFFFFFF0, 0x7FFFFFFF))
            wire.say(Detach(handle=0, closed=True))
            assert wire.expect(Detach).handle == 0
