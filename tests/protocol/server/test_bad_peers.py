"""The real server against peers that send nonsense: the right scope ends, others are served, memory stays flat."""

import random
import struct
import time
from collections.abc import Iterator

import psutil
import pytest

from ambermq.protocol.amqp10.framing.frames import (
    AMQP_FRAME,
    AMQP_HEADER,
    SASL_FRAME,
    SASL_HEADER,
    TLS_HEADER,
    encode_frame,
)
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Begin,
    Close,
    Disposition,
    End,
    Flow,
    Open,
    SaslInit,
    SaslMechanisms,
    Source,
    Target,
    Transfer,
)
from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.proton_peer import Manager, ProtonPeer
from tests.protocol.peers import Wire
from tests.protocol.server.checks import MIB, RECEIVER, goodbye, still_serves
from tests.protocol.tcp import TcpWire, deadline

DEEP = 100_000
GOODBYES = {
    "amqp:decode-error",
    "amqp:connection:framing-error",
    "amqp:invalid-field",
    "amqp:resource-limit-exceeded",
    "amqp:not-allowed",
    "amqp:not-implemented",
    "amqp:not-found",
    "amqp:session:unattached-handle",
    "amqp:session:handle-in-use",
    "amqp:session:window-violation",
    "amqp:session:errant-link",
    "amqp:link:transfer-limit-exceeded",
    "amqp:link:stolen",
    "amqp:link:message-size-exceeded",
}


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A running broker for the whole module."""
    child = ChildBroker(tmp_path_factory.mktemp("broker") / "data")
    child.start()
    yield child
    child.kill()


def frame(body: bytes, *, kind: int = AMQP_FRAME, channel: int = 0, offset: int = 2, size: int = 0) -> bytes:
    """A frame around any bytes, with any header."""
    return struct.pack(">IBBH", size or 8 + len(body), offset, kind, channel) + body


ARRAY_OF_4_GIB = b"\x00\x53\x10\xc0\x0b\x01\xf0\xff\xff\xff\xf8\xff\xff\xff\xff\x40"
BAD_FRAMES = {
    "an array that claims 4 GiB in 20 bytes": (frame(ARRAY_OF_4_GIB), "amqp:decode-error"),
    "lists nested 100,000 deep": (
        frame(
            b"\x00\x53\x11\xd0" + struct.pack(">II", 9 * DEEP + 4, 1) + b"\xd0\x00\x08\x00\x00\x00\x00\x00\x01" * DEEP
        ),
        "amqp:decode-error",
    ),
    "descriptors nested 100,000 deep": (frame(b"\x00" * DEEP), "amqp:decode-error"),
    "an unknown performative": (frame(b"\x00\x53\x7f\x45"), "amqp:decode-error"),
    "a body that is no performative": (frame(b"\x40"), "amqp:decode-error"),
    "an open again": (encode_frame(0, Open(container_id="again")), "amqp:connection:framing-error"),
    "a mandatory field that is null": (frame(b"\x00\x53\x11\xc0\x04\x04\x40\x40\x40\x40"), "amqp:decode-error"),
    "a field of the wrong type": (frame(b"\x00\x53\x14\xc0\x03\x01\xa1\x00"), "amqp:decode-error"),
    "bytes behind a performative": (frame(b"\x00\x53\x18\x45\x00"), "amqp:decode-error"),
    "a frame over the limit": (frame(b"\x00\x53\x14", size=MIB + 1), "amqp:connection:framing-error"),
    "a frame that claims 4 GiB": (frame(b"", size=0xFFFFFFFF), "amqp:connection:framing-error"),
    "a frame smaller than its header": (frame(b"", size=7), "amqp:connection:framing-error"),
    "a data offset within the header": (frame(b"", offset=1), "amqp:connection:framing-error"),
    "a data offset behind the end": (frame(b"", offset=9), "amqp:connection:framing-error"),
    "a frame of an unknown type": (frame(b"\x45", kind=7), "amqp:connection:framing-error"),
    "a SASL frame": (
        encode_frame(0, SaslInit(mechanism="PLAIN"), frame_type=SASL_FRAME),
        "amqp:connection:framing-error",
    ),
    "a channel over channel-max": (encode_frame(256, Wire.begin()), "amqp:connection:framing-error"),
    "a session's frame without a session": (encode_frame(3, End()), "amqp:connection:framing-error"),
    "a handle over handle-max": (
        encode_frame(0, Wire.attach(role=RECEIVER, handle=1024)),
        "amqp:connection:framing-error",
    ),
    "random bytes": (random.Random(7).randbytes(300), "amqp:connection:framing-error"),
}


@pytest.mark.parametrize("what", BAD_FRAMES)
def test_a_bad_frame_closes_the_connection(broker: ChildBroker, what: str) -> None:
    """Behind the open: close with the condition, then the socket ends; other clients do not notice."""
    data, condition = BAD_FRAMES[what]
    with TcpWire.begun(broker.url) as wire:
        wire.give(data)
        assert goodbye(wire) == ("close", condition)
        assert wire.rest() == []
    still_serves(broker)


def test_the_close_arrives_though_more_was_sent(broker: ChildBroker) -> None:
    """A peer that goes on sending megabytes behind a bad frame still reads the close."""
    with TcpWire.begun(broker.url) as wire:
        wire.give(BAD_FRAMES["a frame over the limit"][0] + bytes(MIB))
        time.sleep(0.1)
        assert goodbye(wire) == ("close", "amqp:connection:framing-error")


BEFORE_OPEN = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "the AMQP header of TLS": TLS_HEADER,
    "AMQP 0-9-1": b"AMQP\x00\x00\x09\x01",
    "random bytes": random.Random(8).randbytes(500),
    "one wrong byte": b"X",
    "a frame without a header": Wire.frame(Open(container_id="eager")),
    "begin before open": AMQP_HEADER + Wire.frame(Wire.begin()),
    "an open without container-id": AMQP_HEADER + frame(b"\x00\x53\x10\x45"),
    "a max-frame-size below 512": AMQP_HEADER + Wire.frame(Open(container_id="small", max_frame_size=511)),
    "AMQP frames before SASL is done": SASL_HEADER + Wire.frame(Open(container_id="eager")),
    "the AMQP header before SASL is done": SASL_HEADER + AMQP_HEADER + Wire.frame(Open(container_id="eager")),
    "an array that claims 4 GiB before the open": AMQP_HEADER + frame(ARRAY_OF_4_GIB),
    "a SASL frame over the limit": SASL_HEADER + frame(b"", kind=SASL_FRAME, size=8193),
    "a mechanism that is not offered": SASL_HEADER
    + encode_frame(0, SaslInit(mechanism="GSSAPI"), frame_type=SASL_FRAME),
}


@pytest.mark.parametrize("what", BEFORE_OPEN)
def test_nonsense_before_the_open_ends_the_connection(broker: ChildBroker, what: str) -> None:
    """No session begins; a header that we do not speak is answered by one that we do."""
    with TcpWire(broker.url) as wire:
        wire.give(BEFORE_OPEN[what])
        answers = wire.rest()
        assert not any(isinstance(answer, Begin | Attach) for answer in answers)
        for answer in answers:
            assert isinstance(answer, Open | Close | SaslMechanisms) or answer.NAME == "amqp:sasl-outcome:list"
    still_serves(broker)


def send_on(wire: TcpWire, *, seconds: int) -> None:
    """Send a little ten times a second."""
    for _ in range(10 * seconds):
        wire.give(bytes(1000))
        time.sleep(0.1)


CLOSED_BEFORE_OPEN = {
    "an open without fields": (frame(b"\x00\x53\x10\x45"), "amqp:decode-error"),
    "an open whose container-id is null": (frame(b"\x00\x53\x10\xc0\x02\x01\x40"), "amqp:decode-error"),
    "an open on another channel": (encode_frame(1, Open(container_id="c")), "amqp:connection:framing-error"),
    "a max-frame-size below 512": (Wire.frame(Open(container_id="c", max_frame_size=511)), "amqp:invalid-field"),
    "a begin before the open": (Wire.frame(Wire.begin()), "amqp:connection:framing-error"),
    "a close before the open": (Wire.frame(Close()), "amqp:connection:framing-error"),
    "an array that claims 4 GiB": (frame(ARRAY_OF_4_GIB), "amqp:decode-error"),
    "a SASL frame": (frame(b"\x00\x53\x41\x45", kind=SASL_FRAME), "amqp:connection:framing-error"),
}


@pytest.mark.parametrize("what", CLOSED_BEFORE_OPEN)
def test_a_fault_before_our_open_is_told_by_open_and_close(broker: ChildBroker, what: str) -> None:
    """If a close is needed before an open was sent, the open is sent first (transport, 2.4.3)."""
    data, condition = CLOSED_BEFORE_OPEN[what]
    with TcpWire(broker.url) as wire:
        wire.give(AMQP_HEADER + data)
        opened, closed = wire.rest()
    assert isinstance(opened, Open)
    assert (opened.properties or {})["amqp:connection-establishment-failed"] is True
    assert isinstance(closed, Close)
    assert closed.error is not None
    assert closed.error.condition == condition


def test_the_close_arrives_though_more_is_sent_later(broker: ChildBroker) -> None:
    """The socket is shut down, not closed: what a peer sends behind the close does not reset its connection."""
    with TcpWire.begun(broker.url) as wire:
        wire.give(BAD_FRAMES["a frame over the limit"][0])
        for _ in range(5):
            time.sleep(0.05)
            wire.give(bytes(MIB))
        assert goodbye(wire) == ("close", "amqp:connection:framing-error")


def test_a_peer_that_never_closes_its_end_is_dropped(broker: ChildBroker) -> None:
    """After a fault the broker waits close_ms for the peer's end, and drops it then."""
    with TcpWire.begun(broker.url) as wire:
        wire.give(BAD_FRAMES["an unknown performative"][0])
        assert goodbye(wire) == ("close", "amqp:decode-error")
        started = time.monotonic()
        with pytest.raises(OSError, match=r"(?i)reset|pipe"):
            send_on(wire, seconds=30)
        assert time.monotonic() - started < ConnectionLimits().close_ms / 1000 + 5


def conversation() -> bytes:
    """A legal conversation, with all kinds of frames."""
    body = b"\x00\x53\x77\xa1\x04good"
    transfers = [
        Wire.frame(Transfer(handle=0, delivery_id=(0xFFFFFFFD + number) & 0xFFFFFFFF, delivery_tag=b"tag"), body)
        for number in range(5)
    ]
    said = (
        Open(container_id="mutant", hostname="localhost", properties={"product": "mutant"}),
        Wire.begin(),
        Attach(name="u", handle=0, role=False, source=Source(), target=Target(address="m"), initial_delivery_count=0),
        Attach(name="d", handle=1, role=RECEIVER, source=Source(address="m"), target=Target()),
        Flow(
            next_incoming_id=0,
            incoming_window=50,
            next_outgoing_id=0xFFFFFFFD,
            outgoing_window=50,
            handle=1,
            delivery_count=0,
            link_credit=3,
        ),
    )
    settled = Disposition(role=RECEIVER, first=0, last=2, settled=True, state=Accepted())
    return AMQP_HEADER + b"".join(map(Wire.frame, said)) + b"".join(transfers) + Wire.frame(settled)


def mutated(source: random.Random, data: bytes) -> bytes:
    """The same bytes with some changed, cut, doubled or cut off."""
    changed = bytearray(data)
    for _ in range(source.randint(1, 4)):
        position = source.randrange(8, len(changed))
        match source.randrange(4):
            case 0:
                changed[position] = source.randrange(256)
            case 1:
                del changed[position : position + source.randint(1, 20)]
            case 2:
                changed[position:position] = changed[position : position + source.randint(1, 20)]
            case 3:
                changed[position] ^= 1 << source.randrange(8)
        if len(changed) < 16:
            break
    return bytes(changed[: source.randint(9, len(changed))] if source.random() < 0.3 else changed)


def bad_connection(source: random.Random, url: str) -> None:
    """Connect, send something bad in pieces, and look at what is answered."""
    with TcpWire(url) as wire:
        kind = source.randrange(5)
        if kind == 0:
            data = source.randbytes(source.randint(1, 500))
        elif kind == 1:
            data = AMQP_HEADER + frame(source.randbytes(source.randint(1, 300)))
        elif kind == 2:
            data = AMQP_HEADER + Wire.frame(Open(container_id="b")) + source.choice(list(BAD_FRAMES.values()))[0][:2000]
        else:
            data = mutated(source, conversation())
        cut = source.randint(0, len(data))
        try:
            wire.give(data[:cut])
            wire.give(data[cut:])
            wire.socket.shutdown(1)
        except OSError:
            return
        for answer in wire.rest():
            error = getattr(answer, "error", None)
            assert error is None or error.condition in GOODBYES, answer


def test_memory_stays_flat_and_others_are_served(broker: ChildBroker) -> None:
    """2,000 bad connections leave nothing behind: no memory, no queue's state, at most a line each in the log."""
    process = psutil.Process(broker.pid)
    source = random.Random(20)
    for _ in range(200):
        bad_connection(source, broker.url)
    still_serves(broker)
    before, lines = process.memory_info().rss, len(broker.stderr_path.read_text().splitlines())
    for number in range(2000):
        bad_connection(source, broker.url)
        if number % 500 == 0:
            still_serves(broker)
    still_serves(broker)
    assert process.memory_info().rss - before < 20 * MIB
    log = broker.stderr_path.read_text()
    assert "Traceback" not in log
    assert len(log.splitlines()) - lines <= 2000
    assert process.num_fds() < 100
    left = Manager(ProtonPeer(broker.url)).queue("m")
    assert (left["consumers"], left["acquired"]) == (0, 0)
