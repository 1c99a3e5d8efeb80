"""What connections cost in memory, everything of the state machines included."""

import gc
import tracemalloc
from collections.abc import Callable

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import Accepted, Disposition, Open, Transfer
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow
from tests.protocol.peers import FIRST_ID, Wire

COUNT = 500


def bytes_each(make: Callable[[], object]) -> float:
    """Python memory that one more of something keeps, over 500 of them."""
    kept: list[object] = [make()]
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept += [make() for _ in range(COUNT)]
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / COUNT
    finally:
        tracemalloc.stop()


LIMITS = ConnectionLimits()


def idle() -> Connection:
    """An open connection, as the broker sees it; read buffers are shared and so not its own."""
    wire = Wire(LIMITS, opened=False)
    remote = Open(container_id="client", hostname="localhost", idle_time_out=30_000, properties={"product": "client"})
    wire.give(AMQP_HEADER + wire.frame(remote))
    wire.read()
    return wire.server


def consuming() -> Connection:
    """With a session and a receiver of the peer, after some traffic."""
    wire = Wire(LIMITS)
    wire.say(wire.attach(role=RECEIVER), flow(handle=0, delivery_count=0, link_credit=100, next_incoming_id=FIRST_ID))
    (link,) = wire.session().links()
    link.send_run(range(10), [b"x" * 100] * 10)  # type: ignore[attr-defined]
    wire.read()
    wire.say(Disposition(role=RECEIVER, first=FIRST_ID, last=6, settled=True, state=Accepted()))
    return wire.server


def producing() -> Connection:
    """With a session and a sender of the peer, after some traffic."""
    wire = Wire(LIMITS)
    wire.say(wire.attach(role=SENDER))
    for index in range(20):
        delivery_id = (FIRST_ID + index) & 0xFFFFFFFF
        wire.say(Transfer(handle=0, delivery_id=delivery_id, delivery_tag=b"tag"), payload=b"x" * 100)
    wire.session().settle(FIRST_ID, 20, Accepted())
    wire.read()
    return wire.server


def test_idle_connection() -> None:
    """An idle connection keeps at most 8 KiB."""
    assert bytes_each(idle) <= 8 * 1024


def test_connection_with_a_link() -> None:
    """A session with a link keeps at most 12 KiB more, whichever way it goes."""
    for make in (consuming, producing):
        assert bytes_each(make) <= 20 * 1024
