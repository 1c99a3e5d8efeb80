"""Suspended links in the memory budget: they are one holder, and its largest links end first."""

from collections.abc import Iterable

from ambermq.engine.commands import AttachConsumer, DetachConsumer, EndSuspended, Suspension
from ambermq.engine.dispatch.demand import Want
from ambermq.engine.effects import ConsumerReady
from ambermq.engine.model.state import State
from ambermq.engine.model.suspended_link import Keeping
from ambermq.protocol.amqp10.memory_budget import MemoryAccount, suspended_bytes
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.gateway.recovery.suspended_memory import SuspendedMemory
from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.server.connections.memory_guard import MemoryGuard
from tests.engine.world import World

KEEPING = Keeping(2, 300_000)


class Host:
    """A virtual host whose engine decides at once."""

    def __init__(self, *held: int) -> None:
        self.world = World()
        self.ended: list[int] = []
        self.ticks = 0
        self.links = [self.suspended(f"l{number}", count) for number, count in enumerate(held)]

    @property
    def engine(self) -> "Host":
        return self

    @property
    def state(self) -> State:
        return self.world.state

    def submit(self, command: EndSuspended) -> None:
        self.ended.append(command.link)
        self.world.do(command)

    def tick_soon(self) -> None:
        self.ticks += 1

    def suspended(self, name: str, count: int) -> int:
        """Suspend a link that holds so many deliveries; return its number."""
        world = self.world
        (ready,) = [
            one
            for one in world.do(AttachConsumer("key", "q", "c", name, keeping=KEEPING))
            if isinstance(one, ConsumerReady)
        ]
        world.demand.add(Want(ready.consumer, world.queue().id, "link"))
        world.set_credit(ready.consumer, count)
        world.publish(world.producer(), *[10] * count)
        world.dealt()
        world.demand.remove(ready.consumer)
        world.do(DetachConsumer(ready.consumer, suspension=Suspension.OVER))
        return ready.consumer


class Socket:
    """A connection that holds memory until it is closed."""

    def __init__(self, guard: MemoryGuard, size: int) -> None:
        self.memory = MemoryAccount(guard.budget)
        self.memory.change(size)
        self.is_ending = False

    def survey(self) -> None:
        """Nothing has changed."""

    def end_overdrawn(self, _error: Error) -> None:
        self.is_ending = True
        self.memory.close()


class Server:
    """A server with a few connections."""

    def __init__(self) -> None:
        self.sockets: list[Socket] = []

    def guarded(self) -> Iterable[Socket]:
        return self.sockets

    def set_low(self, resource: Resource, *, is_low: bool) -> None:
        assert resource is Resource.MEMORY

    def call_later(self, delay_ms: int, callback: object) -> None:
        """Nothing waits."""

    def now_ms(self) -> int:
        return 0


def guarded(bytes_max: int, *hosts: Host, connection_bytes: int = 0) -> tuple[MemoryGuard, Server]:
    """Return a guard of a budget, after a survey."""
    server = Server()
    suspended = SuspendedMemory({str(number): host for number, host in enumerate(hosts)})
    guard = MemoryGuard(server, suspended, bytes_max=bytes_max, message_bytes_max=1 << 20, stall_ms=1000)
    if connection_bytes:
        server.sockets.append(Socket(guard, connection_bytes))
    guard.survey_soon()
    guard.check()
    return guard, server


def test_a_survey_counts_suspended_links() -> None:
    """Of all virtual hosts: each, and what it keeps."""
    hosts = Host(3, 2), Host(1)
    guard, _ = guarded(1 << 20, *hosts)
    assert guard.budget.held_bytes == suspended_bytes(3, 6) == 3 * 1024 + 6 * 64
    hosts[0].submit(EndSuspended(hosts[0].links[0], is_forced=True))
    guard.survey_soon()
    assert guard.budget.held_bytes == suspended_bytes(2, 3)


def test_the_largest_of_them_end_first() -> None:
    """Until the budget is low again. What they kept is available, and the others are as they were."""
    host = Host(1, 100, 2)
    guard, server = guarded(suspended_bytes(3, 103), host, connection_bytes=100)
    assert host.ended == [host.links[1]]
    assert (host.world.queue().available, host.world.queue().acquired_count) == (100, 3)
    assert not server.sockets[0].is_ending
    assert guard.budget.held_bytes < guard.budget.bytes_max
    assert (guard.closed_count, host.ticks) == (0, 1)


def test_a_connection_that_holds_more_is_closed_before_them() -> None:
    """Suspended links do not pay for it."""
    host = Host(10)
    guard, server = guarded(1 << 14, host, connection_bytes=1 << 14)
    assert server.sockets[0].is_ending
    assert (host.ended, guard.closed_count) == ([], 1)


def test_all_of_them_may_end() -> None:
    """And the guard stops then, though nothing else is left to close."""
    host = Host(10, 10)
    guard, _ = guarded(1000, host)
    assert sorted(host.ended) == host.links
    assert guard.budget.held_bytes == 0
