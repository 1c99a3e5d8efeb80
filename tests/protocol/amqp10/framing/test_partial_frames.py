"""A frame that comes in many reads is counted whole in the account of its connection, and named as incomplete."""

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.memory_budget import MemoryBudget


def test_the_parts_of_a_frame_are_counted() -> None:
    """Each read adds its bytes: none are forgotten with the second one."""
    budget = MemoryBudget(1 << 30)
    connection = Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0, budget=budget)
    connection.receive(AMQP_HEADER + b"\x00\x01\x00\x00\x02\x00\x00\x00", 0)
    before = connection.memory.held_bytes
    for count in range(1, 5):
        connection.receive(bytes(1000), count)
        assert connection.memory.held_bytes == before + count * 1000
        assert connection.incomplete_bytes == 8 + count * 1000
