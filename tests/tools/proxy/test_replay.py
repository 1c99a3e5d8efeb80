"""`ambermq proxy replay`: the client of a recording against another broker, up to the first difference."""

from collections.abc import Callable
from pathlib import Path

import pytest
from proton import Message

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, encode_frame
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Begin,
    Close,
    Disposition,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
)
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.proxy.broker_facts import DynamicAddresses
from ambermq.tools.proxy.client_frames import FrameMapping
from ambermq.tools.proxy.connection_model import ConnectionModel
from ambermq.tools.proxy.frame_stream import FramePart
from ambermq.tools.proxy.recording import Kind, Record, encode_header, encode_record
from tests.interop.conftest import StartBroker
from tests.interop.conftest import start_broker as start_broker  # noqa: PLC0414  # a fixture
from tests.interop.proton_peer import Manager, ProtonPeer
from tests.tools.conftest import Run
from tests.tools.proxy.conftest import StartProxy

Session = Callable[[str], None]


def exchange(url: str) -> None:
    """Send, receive with every outcome, drain, and ask the management node."""
    peer = ProtonPeer(url)
    peer.sender("orders").send(*[f"order {number}" for number in range(6)])
    receiver = peer.receiver("orders", credit=3)
    for got, outcome in zip(receiver.wait(3), (0x24, 0x25, 0x26), strict=True):
        got.settle(outcome)
    receiver.link.flow(4)
    for got in receiver.wait(4):
        got.settle(0x24)
    receiver.drain(10)
    receiver.close()
    Manager(peer).queue("orders")
    peer.blocking.close()


def requests(url: str) -> None:
    """Answer requests on a temporary queue, by the anonymous terminus of another connection."""
    server, client = ProtonPeer(url), ProtonPeer(url)
    incoming = server.receiver("questions", credit=1)
    answers = client.receiver(None, dynamic=True, credit=1)
    address = answers.link.remote_source.address
    client.sender("questions").send(Message("question", reply_to=address))
    (got,) = incoming.wait(1)
    server.sender(None).send(Message("answer", address=got.message.reply_to))
    got.settle(0x24)
    answers.wait(1)[0].settle(0x24)
    client.blocking.close()
    server.blocking.close()


def large(url: str) -> None:
    """Send and receive a message in many frames."""
    peer = ProtonPeer(url, max_frame_size=4096)
    peer.sender("large").send("x" * 100_000)
    peer.receiver("large", credit=1).wait(1)[0].settle(0x24)
    peer.blocking.close()


def lost(url: str) -> None:
    """Lose a receiver that holds messages, and receive them again."""
    peer = ProtonPeer(url)
    peer.sender("lost").send("one", "two")
    peer.receiver("lost", credit=2).wait(2)
    peer.drop()
    again = ProtonPeer(url)
    for got in again.receiver("lost", credit=2).wait(2):
        got.settle(0x24)
    again.blocking.close()


@pytest.fixture
def record(start_proxy: StartProxy, start_broker: StartBroker) -> Callable[[Session], Path]:
    """Record a session with a broker of its own: what is left of another one would be received."""

    def run(session: Session) -> Path:
        proxy = start_proxy(target=start_broker().url)
        session(proxy.url)
        assert proxy.end()[0] == 0
        return proxy.path

    return run


@pytest.mark.parametrize("session", [exchange, requests, large, lost])
def test_a_new_broker_has_no_difference(
    record: Callable[[Session], Path], run: Run, fresh_broker: ChildBroker, session: Session
) -> None:
    """Ids, tags, addresses and times of the two brokers differ, and what they do is the same."""
    result = run("proxy", "replay", record(session), "--to", fresh_broker.url)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("no difference: ")


def test_a_message_too_many_is_a_difference(
    record: Callable[[Session], Path], run: Run, fresh_broker: ChildBroker
) -> None:
    """The broker has a message before the first one of the recording."""
    path = record(large)
    assert run("send", "large", "early", "--url", fresh_broker.url).exit_code == 0
    result = run("proxy", "replay", path, "--to", fresh_broker.url)
    assert result.exit_code == 1
    assert "the broker differs from the recording: expected a message on link" in result.stderr
    assert "found a message on link" in result.stderr
    assert "early" in result.stderr


def test_a_refused_attach_is_a_difference(
    record: Callable[[Session], Path], run: Run, start_broker: StartBroker
) -> None:
    """The first difference is in the answer to the attach."""
    broker = start_broker("--no-auto-create")
    result = run("proxy", "replay", record(exchange), "--to", broker.url)
    assert result.exit_code == 1
    assert "connection 1: the broker differs from the recording: expected attach of link" in result.stderr
    assert "'target': None" in result.stderr


def test_the_user_of_the_url_replaces_the_recorded_one(
    record: Callable[[Session], Path], run: Run, start_broker: StartBroker
) -> None:
    """Without one the broker refuses, and the difference is the outcome of SASL."""
    path = record(exchange)
    broker = start_broker(config='[users]\nalice = "secret"\n')
    refused = run("proxy", "replay", path, "--to", broker.url)
    assert refused.exit_code == 1
    assert "expected sasl-outcome with code 0, found sasl-outcome with code 1" in refused.stderr
    named = broker.url.replace("amqp://", "amqp://alice:secret@")
    result = run("proxy", "replay", path, "--to", named)
    assert result.exit_code == 0, result.stderr


def test_smaller_frames(record: Callable[[Session], Path], run: Run, start_broker: StartBroker) -> None:
    """A transfer is split if the broker's max-frame-size is smaller than the recorded one."""
    broker = start_broker(config="[connection]\nframe_bytes_max = 2048\n")
    result = run("proxy", "replay", record(large), "--to", broker.url)
    assert result.exit_code == 0, result.stderr


def test_speed_keeps_the_pauses(run: Run, tmp_path: Path, fresh_broker: ChildBroker) -> None:
    """Twice as fast takes half of the time."""
    path = tmp_path / "slow.rec"
    times = [Record(0, 1, Kind.OPENED, b""), Record(1_000_000, 1, Kind.CLIENT, AMQP_HEADER)]
    path.write_bytes(encode_header(0) + b"".join(map(encode_record, times)))
    result = run("proxy", "replay", path, "--to", fresh_broker.url, "--speed", 2, "--output", "json")
    assert result.exit_code == 0, result.stderr
    assert 0.5 <= float(result.stdout.partition('"seconds":')[2].rstrip("}\n")) < 1.0


def test_an_empty_choice_and_no_broker(record: Callable[[Session], Path], run: Run, tmp_path: Path) -> None:
    """Errors name what is wrong."""
    path = record(exchange)
    assert run("proxy", "replay", path, "--to", "amqp://127.0.0.1:1").exit_code == 4
    missing = run("proxy", "replay", path, "--to", "amqp://127.0.0.1:1", "--connection", 9)
    assert (missing.exit_code, "no connection to replay" in missing.stderr) == (6, True)
    assert run("proxy", "replay", tmp_path / "none.rec", "--to", "amqp://127.0.0.1:1").exit_code == 6


def part(performative: Composite, payload: bytes = b"", channel: int = 0) -> FramePart:
    return FramePart(encode_frame(channel, performative, payload), channel, False, performative, payload)


def observed(first_id: int, ids: list[int], count: int, *, broker_channel: int, handle: int) -> ConnectionModel:
    """Return the model of a receiver that holds two deliveries with these ids of its broker."""
    model = ConnectionModel(1, DynamicAddresses())
    window = {"incoming_window": 10, "outgoing_window": 10}
    model.sent(part(Open(container_id="c")))
    model.sent(part(Begin(next_outgoing_id=0, **window), channel=2))
    model.sent(part(Attach(name="l", handle=5, role=True, source=Source(address="q"), target=Target()), channel=2))
    begin = Begin(remote_channel=2, next_outgoing_id=first_id, **window)
    attach = Attach(name="l", handle=handle, role=False, source=Source(), target=Target(), initial_delivery_count=count)
    transfers = [Transfer(handle=handle, delivery_id=one, delivery_tag=bytes([one % 256])) for one in ids]
    for each in (begin, attach, *transfers):
        list(model.facts(part(each, b"\x00\x53\x75\xa0\x01x" if each in transfers else b"", broker_channel)))
    return model


def test_ids_counts_and_ranges_are_mapped() -> None:
    """A disposition names the same deliveries, a flow grants the same credit, whatever the broker counts from."""
    recorded = observed(0, [0, 1], 0, broker_channel=0, handle=0)
    live = observed(100, [0xFFFFFFFF, 7], 50, broker_channel=9, handle=3)
    mapping = FrameMapping(recorded, live)
    disposition = part(Disposition(role=True, first=0, last=1, settled=True), channel=2)
    found = [(each.performative.first, each.performative.last) for each in mapping.mapped(disposition)]  # type: ignore[union-attr]
    assert sorted(found) == [(7, 7), (0xFFFFFFFF, 0xFFFFFFFF)]
    flow = Flow(
        next_incoming_id=2, incoming_window=10, next_outgoing_id=0, outgoing_window=10, handle=5, delivery_count=2
    )
    (mapped,) = mapping.mapped(part(flow, channel=2))
    assert isinstance(mapped.performative, Flow)
    assert (mapped.performative.next_incoming_id, mapped.performative.delivery_count) == (102, 52)
    close = part(Close())
    assert mapping.mapped(close) == [close]
