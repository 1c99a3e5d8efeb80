"""What outlives a connection, and who gets one: restarts, idle timeouts, logins, little disk, with proton."""

import os
import signal
import time
from pathlib import Path

import pytest
from proton import ConnectionException, Delivery, Message
from proton.utils import LinkDetached

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_HEADER
from ambermq.protocol.amqp10.performatives.classes import Begin, Close, Flow, Open
from tests.interop.conftest import Connect, StartBroker
from tests.protocol.peers import Wire
from tests.protocol.tcp import TcpWire


def test_accepted_messages_outlive_a_kill(start_broker: StartBroker, connect: Connect) -> None:
    """SIGKILL, restart: every accepted message is there, in order, uncounted; the queue is there too."""
    broker = start_broker()
    deliveries = connect(broker.url).sender("kept").send(*map(str, range(500)))
    assert {int(delivery.remote_state) for delivery in deliveries} == {int(Delivery.ACCEPTED)}
    broker.kill()
    broker.start()
    receiver = connect(broker.url).receiver("kept", credit=500)
    got = receiver.wait(500)
    assert [each.message.body for each in got] == [str(number) for number in range(500)]
    assert {each.delivery_count for each in got} == {0}


def test_large_messages_outlive_a_kill(start_broker: StartBroker, connect: Connect) -> None:
    """Messages of many chunks are read back whole from the disk, between small ones."""
    broker = start_broker()
    bodies = [bytes([number]) * size for number, size in enumerate((10, 3 << 20, 10, 1 << 20, 5 << 20, 10))]
    connect(broker.url).sender("q").send(*[Message(body, durable=True) for body in bodies])
    broker.kill()
    broker.start()
    receiver = connect(broker.url).receiver("q", credit=10)
    # Proton gives binary as a view of its message.
    messages = [got.message for got in receiver.wait(len(bodies))]
    assert [bytes(message.body) for message in messages] == bodies


def test_counts_outlive_a_kill(start_broker: StartBroker, connect: Connect) -> None:
    """Failed once, released, then out when the broker dies: counted 1, 1, 2; annotations stay."""
    broker = start_broker()
    peer = connect(broker.url)
    peer.sender("q").send("x", "y")
    receiver = peer.receiver("q")
    receiver.next().settle(Delivery.MODIFIED, failed=True, annotations={"x-opt-seen": "yes"})
    again = receiver.next()
    assert again.delivery_count == 1
    again.settle(Delivery.RELEASED)
    assert receiver.next().delivery_count == 1
    # An acquisition rides along with the next sync; this makes one.
    peer.sender("other").send("z")
    broker.kill()
    broker.start()
    first, second = connect(broker.url).receiver("q", credit=2).wait(2)
    assert (first.message.body, first.delivery_count, first.message.annotations) == ("x", 2, {"x-opt-seen": "yes"})
    assert (second.message.body, second.delivery_count) == ("y", 0)


def test_settlements_outlive_a_kill(start_broker: StartBroker, connect: Connect) -> None:
    """What was accepted and had time to be written does not come again."""
    broker = start_broker()
    peer = connect(broker.url)
    peer.sender("q").send("gone", "left")
    receiver = peer.receiver("q")
    receiver.next().settle(Delivery.ACCEPTED)
    # The tick of a durable message takes the settlement along.
    peer.sender("other").send("z")
    broker.kill()
    broker.start()
    receiver = connect(broker.url).receiver("q")
    receiver.drain(10)
    assert [got.message.body for got in receiver.got] == ["left"]


def test_a_stop_is_told_and_ends_with_0(start_broker: StartBroker, connect: Connect) -> None:
    """SIGTERM: close(amqp:connection:forced), exit code 0, and everything accepted is there again."""
    broker = start_broker()
    peer = connect(broker.url)
    peer.sender("q").send("x")
    os.kill(broker.pid, signal.SIGTERM)
    with pytest.raises(ConnectionException, match="amqp:connection:forced"):
        peer.wait(lambda: False, "the close")
    assert broker.stop() == 0
    broker.start()
    assert connect(broker.url).receiver("q").next().delivery_count == 0


def test_heartbeats_both_ways(start_broker: StartBroker, connect: Connect) -> None:
    """With an idle timeout each way, the connection stays open while both sides send heartbeats."""
    broker = start_broker(config="[connection]\nidle_timeout_ms = 2000\n")
    peer = connect(broker.url, heartbeat=1.5)
    sender = peer.sender("q")
    until = time.monotonic() + 4.5
    peer.blocking.container.schedule(4.5, None)
    peer.wait(lambda: time.monotonic() > until, "time to pass")
    assert peer.connection.transport.remote_idle_timeout == pytest.approx(1.0)
    assert sender.send("x")[0].remote_state == Delivery.ACCEPTED


def test_our_heartbeats_come_in_time(start_broker: StartBroker) -> None:
    """Empty frames come within the peer's timeout, and by themselves for a short one too, from the open on."""
    broker = start_broker()
    with TcpWire.begun(broker.url, idle_time_out=4000) as wire, TcpWire.begun(broker.url, idle_time_out=400) as hurried:
        assert [hurried.next() for _ in range(6)] == [(None, b"")] * 6
        wire.socket.settimeout(4)
        assert wire.next() == (None, b"")


def test_a_silent_peer_is_dropped(start_broker: StartBroker) -> None:
    """After the whole timeout, twice what was advertised: close(amqp:resource-limit-exceeded), not before."""
    broker = start_broker(config="[connection]\nidle_timeout_ms = 1000\n")
    with TcpWire(broker.url) as wire:
        began = time.monotonic()
        wire.give(AMQP_HEADER + Wire.frame(Open(container_id="silent")))
        assert wire.expect(Open).idle_time_out == 500
        close = wire.expect(Close)
        assert close.error is not None
        assert close.error.condition == "amqp:resource-limit-exceeded"
        assert time.monotonic() - began >= 0.9
        assert wire.rest() == []


def test_plain_accepts_the_right_password(start_broker: StartBroker, connect: Connect) -> None:
    """PLAIN by name and password; a wrong one, an unknown name and ANONYMOUS are refused."""
    broker = start_broker("--user", "alice:secret")
    plain = {"allowed_mechs": "PLAIN", "sasl_enabled": True}
    peer = connect(broker.url, user="alice", password="secret", **plain)
    assert peer.sender("q").send("x")[0].remote_state == Delivery.ACCEPTED
    for user, password in (("alice", "wrong"), ("bob", "secret")):
        with pytest.raises(ConnectionException):
            connect(broker.url, user=user, password=password, **plain)
    with pytest.raises(ConnectionException):
        connect(broker.url, allowed_mechs="ANONYMOUS")


def test_anonymous_and_bare_on_loopback(start_broker: StartBroker, connect: Connect) -> None:
    """Without users the loopback needs no name: ANONYMOUS, MSSBCBS, or no SASL at all."""
    broker = start_broker()
    assert connect(broker.url).sender("q").send("x")[0].remote_state == Delivery.ACCEPTED
    bare = connect(broker.url, sasl_enabled=False)
    assert bare.sender("q").send("x")[0].remote_state == Delivery.ACCEPTED


def test_a_port_that_requires_sasl_says_so(start_broker: StartBroker) -> None:
    """A bare AMQP header is answered by the SASL header and a close."""
    broker = start_broker("--user", "alice:secret")
    with TcpWire(broker.url) as wire:
        wire.give(AMQP_HEADER)
        received = b""
        while data := wire.socket.recv(100):
            received += data
        assert received == SASL_HEADER


def test_addresses_may_have_to_be_declared(start_broker: StartBroker, connect: Connect) -> None:
    """--no-auto-create: an unknown address refuses the link with amqp:not-found."""
    broker = start_broker("--no-auto-create")
    with pytest.raises(LinkDetached, match="amqp:not-found"):
        connect(broker.url).sender("unknown")


def test_little_disk_closes_windows_not_connections(start_broker: StartBroker, connect: Connect) -> None:
    """Session flow with incoming-window 0 and no credit for senders; receivers get and settle what there is."""
    broker = start_broker()
    connect(broker.url).sender("q").send(*map(str, range(10)))
    broker.stop()
    (config,) = (Path(argument) for argument in broker._arguments if argument.endswith(".toml"))
    config.write_text("[server]\nroom_low_bytes = 1152921504606846976\n")
    broker.start()
    with TcpWire.begun(broker.url) as wire:
        while wire.expect(Flow).incoming_window:
            pass
        peer = connect(broker.url)
        sender = peer.sender("q")
        receiver = peer.receiver("q", credit=10)
        for got in receiver.wait(10):
            got.settle(Delivery.ACCEPTED)
        receiver.drain(5)
        assert receiver.got == []
        assert sender.link.credit == 0
        wire.say(Wire.begin(), channel=1)
        wire.expect(Begin)
        assert wire.expect(Flow).incoming_window == 0
