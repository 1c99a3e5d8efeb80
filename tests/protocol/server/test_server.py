"""The real server against bad peers: the right scope ends, others are served, memory stays flat."""

import os
import random
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

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
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
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
from tests.protocol.tcp import TcpWire, deadline

RECEIVER = True
MIB = 1024 * 1024
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

StartBroker = Callable[..., ChildBroker]


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


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Start a broker with a configuration of its own."""
    started: list[ChildBroker] = []

    def start(config: str, *arguments: str) -> ChildBroker:
        path = tmp_path / "broker.toml"
        path.write_text(config)
        child = ChildBroker(tmp_path / "data", arguments=[*arguments, "--config", str(path)])
        started.append(child)
        child.start()
        return child

    yield start
    for child in started:
        child.kill()


def frame(body: bytes, *, kind: int = AMQP_FRAME, channel: int = 0, offset: int = 2, size: int = 0) -> bytes:
    """A frame around any bytes, with any header."""
    return struct.pack(">IBBH", size or 8 + len(body), offset, kind, channel) + body


def still_serves(broker: ChildBroker) -> None:
    """Another client sends a message and gets it back."""
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
    """The scope and condition of the first goodbye that carries an error; the silent end of a socket is `hung up`."""
    while (read := wire.next()) is not None:
        performative = read[0]
        if isinstance(performative, Close | End | Detach) and performative.error is not None:
            return performative.NAME.split(":")[1], str(performative.error.condition)
    return "hung up", ""


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
    """Before the open, closing suffices; a header that we do not speak is answered by one that we do."""
    with TcpWire(broker.url) as wire:
        wire.give(BEFORE_OPEN[what])
        answers = wire.rest()
        assert not any(isinstance(answer, Begin | Attach) for answer in answers)
        for answer in answers:
            assert isinstance(answer, Open | Close | SaslMechanisms) or answer.NAME == "amqp:sasl-outcome:list"
    still_serves(broker)


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


def test_who_never_opens_is_dropped(start_broker: StartBroker) -> None:
    """The handshake has a deadline: silent, half a header, half an open, SASL without an init."""
    broker = start_broker("[server]\nhandshake_ms = 2000\n")
    starts = [b"", AMQP_HEADER[:5], AMQP_HEADER, AMQP_HEADER + Wire.frame(Open(container_id="x"))[:9], SASL_HEADER]
    wires = [TcpWire(broker.url) for _ in starts]
    for wire, start in zip(wires, starts, strict=True):
        wire.give(start)
    with TcpWire.begun(broker.url) as good:
        for wire in wires:
            assert not any(isinstance(answer, Open) for answer in wire.rest())
            wire.close()
        good.attach("q", role=RECEIVER)
    still_serves(broker)


def test_one_connection_too_many_is_closed_at_once(start_broker: StartBroker) -> None:
    """The server holds to connections_max; the end of a connection makes room for another."""
    broker = start_broker("[server]\nconnections_max = 3\n")
    wires = [TcpWire.begun(broker.url) for _ in range(3)]
    for _ in range(20):
        with TcpWire(broker.url) as fourth:
            assert fourth.rest() == []
    wires[0].say(Close())
    assert [type(answer) for answer in wires[0].rest()] == [Close]
    still_serves(broker)
    for wire in wires:
        wire.close()


def fill(url: str, address: str, *, count: int, size: int) -> None:
    """Put messages on a queue."""
    body = b"\x00\x53\x75\xb0" + struct.pack(">I", size) + bytes(size)
    with TcpWire.begun(url) as wire:
        wire.attach(address, role=not RECEIVER)
        for number in range(count):
            wire.send(number, body)
        while True:
            said = wire.expect(Disposition)
            if (said.first if said.last is None else said.last) == count - 1:
                return


def test_a_slow_reader_costs_no_more_than_its_output(start_broker: StartBroker) -> None:
    """A receiver that never reads: the broker holds little for it, and the others get theirs."""
    broker = start_broker("[server]\noutput_high_bytes = 262144\noutput_max_bytes = 1048576\ngrant_bytes = 1048576\n")
    fill(broker.url, "big", count=400, size=100_000)
    process = psutil.Process(broker.pid)
    still_serves(broker)
    before = process.memory_info().rss
    with TcpWire.begun(broker.url, begin={"incoming_window": 100_000}) as slow:
        slow.attach("big", role=RECEIVER)
        slow.flow(handle=0, delivery_count=0, link_credit=100_000, incoming_window=100_000)
        for _ in range(20):
            still_serves(broker)
        assert process.memory_info().rss - before < 24 * MIB
        for _ in range(400):
            slow.expect(Transfer)


def is_stuck(wire: TcpWire, data: bytes, times: int) -> bool:
    """Send the same again and again; tell whether the broker stopped reading."""
    try:
        for _ in range(times):
            wire.give(data)
    except TimeoutError:
        return True
    return False


def test_who_asks_and_never_reads_is_not_read_either(start_broker: StartBroker) -> None:
    """Endless echoes without reading: the broker stops reading rather than collect answers."""
    broker = start_broker("[server]\noutput_high_bytes = 262144\noutput_max_bytes = 1048576\n")
    process = psutil.Process(broker.pid)
    with TcpWire.begun(broker.url) as wire:
        before = process.memory_info().rss
        windows = {"next_incoming_id": 0, "incoming_window": 9, "next_outgoing_id": 0xFFFFFFFD, "outgoing_window": 9}
        echoes = Wire.frame(Flow(**windows, echo=True)) * 4000
        wire.socket.settimeout(1)
        assert is_stuck(wire, echoes, 2000)
        assert process.memory_info().rss - before < 32 * MIB
        still_serves(broker)


def test_a_stop_under_load_loses_nothing_accepted(start_broker: StartBroker) -> None:
    """A sender that never pauses gets the close too; all that was accepted is there after the restart."""
    broker = start_broker("")
    with TcpWire.begun(broker.url) as wire:
        wire.attach("q", role=not RECEIVER)
        sent = accepted = limit = 0
        is_told = False
        while (read := wire.next()) is not None and not isinstance(read[0], Close):
            said = read[0]
            if isinstance(said, Flow) and said.link_credit is not None:
                limit = (said.delivery_count or 0) + said.link_credit
            elif isinstance(said, Disposition):
                accepted = (said.first if said.last is None else said.last) + 1
            while sent < limit:
                wire.send(sent, b"\x00\x53\x77\xa1\x04load")
                sent += 1
            if accepted > 2000 and not is_told:
                os.kill(broker.pid, signal.SIGTERM)
                is_told = True
        assert read is not None
        assert broker.stop() == 0
    broker.start()
    with TcpWire.begun(broker.url, begin={"incoming_window": 1 << 30}) as wire:
        wire.attach("q", role=RECEIVER)
        wire.flow(handle=0, delivery_count=0, link_credit=1 << 20, drain=True, incoming_window=1 << 30)
        received = 0
        while not isinstance(said := wire.next()[0], Flow):  # type: ignore[index]
            received += isinstance(said, Transfer)
    assert accepted <= received <= sent


def test_a_stop_closes_every_connection(start_broker: StartBroker) -> None:
    """SIGTERM: close(amqp:connection:forced) to all, whatever they do; exit code 0."""
    broker = start_broker("")
    wires = [TcpWire.begun(broker.url) for _ in range(3)]
    wires[1].attach("q", role=not RECEIVER)
    wires[1].send(0, b"\x00\x53\x77\x40")
    silent = TcpWire(broker.url)
    os.kill(broker.pid, signal.SIGTERM)
    for wire in wires:
        assert goodbye(wire) == ("close", "amqp:connection:forced")
    assert silent.rest() == []
    assert broker.stop() == 0


def test_a_stop_puts_off_nothing(start_broker: StartBroker) -> None:
    """A settlement that could wait for hours is on disk before the end, which does not wait for its time."""
    broker = start_broker(
        "[engine]\nlazy_write_ms = 3600000\nlazy_sync_ms = 3600000\n[server]\nshutdown_ms = 3600000\n"
    )
    still_serves(broker)
    assert broker.stop() == 0
    broker.start()
    with TcpWire.begun(broker.url) as wire:
        wire.attach("good", role=RECEIVER)
        wire.flow(handle=0, delivery_count=0, link_credit=1, drain=True)
        said = wire.next()
        assert said is not None
        assert isinstance(said[0], Flow), said


def test_a_receiver_that_settles_nothing_is_drained_at_the_bound(start_broker: StartBroker) -> None:
    """What cannot be sent until something is settled does not keep a drain waiting."""
    broker = start_broker("[connection]\nunsettled_max = 10\n")
    with TcpWire.begun(broker.url) as sender, TcpWire.begun(broker.url) as receiver:
        sender.attach("q", role=not RECEIVER)
        for number in range(10):
            sender.send(number, b"\x00\x53\x77\xa1\x04load")
        accepted = 0
        while accepted < 10:
            accepted = max(accepted, _accepted(sender))
        for number in range(10, 20):
            sender.send(number, b"\x00\x53\x77\xa1\x04load")
        while accepted < 20:
            accepted = max(accepted, _accepted(sender))
        receiver.attach("q", role=RECEIVER)
        receiver.flow(handle=0, delivery_count=0, link_credit=100, drain=True)
        received = 0
        while not isinstance(said := receiver.next()[0], Flow):  # type: ignore[index]
            received += isinstance(said, Transfer)
        assert (received, said.link_credit, said.drain, said.delivery_count) == (10, 0, True, 100)


def _accepted(wire: TcpWire) -> int:
    said = wire.next()[0]  # type: ignore[index]
    last = getattr(said, "last", None)
    return (getattr(said, "first", -1) if last is None else last) + 1


def place(url: str) -> TcpWire:
    """Connect, again and again until there is a place for one connection more."""
    while True:
        with suppress(ConnectionError, AssertionError):
            return TcpWire.begun(url, begin={"incoming_window": 100_000})
        time.sleep(0.05)


def test_nobody_was_silent_while_the_broker_stood_still(start_broker: StartBroker) -> None:
    """A machine that is stopped and goes on has lost no peer; who is silent from then on is dropped as ever."""
    broker = start_broker("[connection]\nidle_timeout_ms = 3000\n")
    with TcpWire.begun(broker.url) as wire:
        os.kill(broker.pid, signal.SIGSTOP)
        time.sleep(5)
        os.kill(broker.pid, signal.SIGCONT)
        time.sleep(0.2)
        went_silent = time.monotonic()
        wire.attach("kept", role=RECEIVER)
        goodbye = wire.expect(Close)
        assert goodbye.error is not None
        assert goodbye.error.condition == "amqp:resource-limit-exceeded"
        assert time.monotonic() - went_silent >= 3


def test_a_place_is_free_again_when_a_peer_that_never_reads_has_gone_silent(start_broker: StartBroker) -> None:
    """What it was sent and never took is thrown away, once it is closed and takes no more of it."""
    # Who fills the queue waits for its outcomes in silence, for as long as the disk takes.
    filled = start_broker("")
    fill(filled.url, "big", count=40, size=500_000)
    assert filled.stop() == 0
    broker = start_broker("[server]\nconnections_max = 1\n[connection]\nidle_timeout_ms = 1000\nclose_ms = 300\n")
    with place(broker.url) as slow:
        slow.attach("big", role=RECEIVER)
        slow.flow(handle=0, delivery_count=0, link_credit=100_000, incoming_window=100_000)
        place(broker.url).close()
