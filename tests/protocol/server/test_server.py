"""The real server: its limits on connections and memory, slow and silent peers, and its stop."""

import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_HEADER
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Close,
    Detach,
    Disposition,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
)
from ambermq.tools.broker.child_broker import ChildBroker
from tests.protocol.peers import Wire
from tests.protocol.server.checks import MIB, RECEIVER, goodbye, still_serves
from tests.protocol.tcp import TcpWire, deadline

StartBroker = Callable[..., ChildBroker]
_CLOSE = Wire.frame(Close())


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


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


def test_a_connection_without_an_open_is_dropped(start_broker: StartBroker) -> None:
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
    """Send the same bytes repeatedly; return whether the broker stopped reading."""
    try:
        for _ in range(times):
            wire.give(data)
    except TimeoutError:
        return True
    return False


def test_a_peer_that_never_reads_its_answers_is_not_read(start_broker: StartBroker) -> None:
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
    """On SIGTERM the broker closes each connection with amqp:connection:forced and exits 0."""
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
        accepted = 0
        # Half of the incoming window at a time: the broker may have read a part of them when it renews the window.
        for first in range(0, 20, 5):
            for number in range(first, first + 5):
                sender.send(number, b"\x00\x53\x77\xa1\x04load")
            while accepted < first + 5:
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
    """Return a connection; try again until the broker has room for it."""
    while True:
        with suppress(ConnectionError, AssertionError):
            return TcpWire.begun(url, begin={"incoming_window": 100_000})
        time.sleep(0.05)


def test_a_pause_of_the_broker_is_no_silence_of_its_peers(start_broker: StartBroker) -> None:
    """A stopped machine that continues keeps its peers; the idle timeout of a silent one starts anew."""
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
    """The broker closes it, and discards the output that it does not take."""
    # The sender of `fill` is silent while it waits for its outcomes, so its broker has no short timeout.
    filled = start_broker("")
    fill(filled.url, "big", count=40, size=500_000)
    assert filled.stop() == 0
    broker = start_broker("[server]\nconnections_max = 1\n[connection]\nidle_timeout_ms = 1000\nclose_ms = 300\n")
    with place(broker.url) as slow:
        slow.attach("big", role=RECEIVER)
        slow.flow(handle=0, delivery_count=0, link_credit=100_000, incoming_window=100_000)
        place(broker.url).close()


def test_a_write_of_many_attaches_alternates_with_other_connections(start_broker: StartBroker) -> None:
    """Each attach is answered, also with a close in the same write; meanwhile a neighbour's messages are settled."""
    broker = start_broker("")
    names = [f"link-{number}" for number in range(1000)]
    frames = [
        Wire.frame(Attach(name=name, handle=handle, role=True, source=Source(address=name), target=Target()))
        for handle, name in enumerate(names)
    ]
    with TcpWire.begun(broker.url) as crowd, TcpWire.begun(broker.url, container="neighbour") as neighbour:
        neighbour.attach("mine", role=not RECEIVER)
        crowd.give(b"".join(frames))
        for number in range(20):
            neighbour.send(number, b"\x00\x53\x77\xa1\x01x")
            neighbour.expect(Disposition)
        assert [crowd.expect(Attach).name for _ in names] == names
        crowd.give(b"".join(Wire.frame(Detach(handle=handle, closed=True)) for handle in range(1000)) + _CLOSE)
        said = crowd.rest()
        assert len([each for each in said if isinstance(each, Detach)]) == 1000
        assert isinstance(said[-1], Close)
    still_serves(broker)
