"""The budget of memory: the accounts of connections, their sum, and the account that is closed first."""

import pytest

from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.memory_budget import MemoryAccount, MemoryBudget, memory_of
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Flow, Source, Transfer
from ambermq.protocol.amqp10.types.values import Array, Described, Map, Symbol
from tests.protocol.peers import FIRST_ID, Wire

MIB = 1 << 20


def begun(held_bytes: int, budget: MemoryBudget) -> MemoryAccount:
    """Return an account with one unfinished delivery."""
    account = MemoryAccount(budget)
    account.begin_delivery()
    account.change(held_bytes)
    return account


def first(*accounts: MemoryAccount) -> int:
    """Return the index of the account that is closed first."""
    return max(range(len(accounts)), key=lambda index: accounts[index].rank(16 * MIB))


def test_the_sum_is_that_of_the_accounts() -> None:
    """A closed account has given everything back, and counts nothing afterwards; progress is of complete deliveries."""
    budget = MemoryBudget(1000)
    one, two = begun(300, budget), begun(200, budget)
    two.survey(50)
    two.survey(20)
    assert (budget.held_bytes, budget.high_bytes) == (520, 800)
    two.end_delivery(200, is_complete=True)
    assert (budget.held_bytes, budget.completed_bytes) == (320, 200)
    one.close()
    one.change(9)
    one.survey(9)
    one.close()
    assert (budget.held_bytes, budget.completed_bytes) == (20, 200)


def test_the_largest_is_closed_first() -> None:
    """Up to one message all are alike: of those the oldest unfinished delivery is closed first."""
    budget = MemoryBudget(256 * MIB)
    idle = MemoryAccount(budget)
    idle.change(15 * MIB)
    stalled, honest = begun(3 * MIB, budget), begun(15 * MIB, budget)
    assert first(idle, honest, stalled) == 2
    assert first(idle, honest, stalled, begun(17 * MIB, budget), begun(60 * MIB, budget)) == 4


@pytest.mark.parametrize("value", [[[]] * 1000, {Symbol(str(n)): n for n in range(500)}, Map(((1, [2]),) * 300)])
def test_containers_count_with_their_contents(value: object) -> None:
    """Wherever they are in a performative."""
    plain = memory_of(Attach(name="n", handle=0, role=True))
    size = memory_of(value)
    assert size > 4000
    nested = Attach(name="n", handle=0, role=True, source=Source(filter={Symbol("f"): Described(Symbol("f"), value)}))
    assert memory_of(nested) > plain + size
    assert memory_of(Array("list", ([],) * 1000)) > 50_000


def test_every_part_is_counted_and_given_back() -> None:
    """Frames, deliveries and links; a delivery that is aborted or whose link ends is no progress."""
    wire = Wire(ConnectionLimits(frame_bytes_max=100_000))
    memory = wire.server.memory
    opened = memory.held_bytes
    assert opened > 0
    wire.say(wire.attach(role=False, initial_delivery_count=0))
    attached = memory.held_bytes
    assert attached > opened + 4096
    start = Transfer(handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    frame = wire.frame(start, bytes(50_000))
    wire.give(frame[:40_000])
    assert memory.held_bytes == attached + 40_000
    wire.give(frame[40_000:])
    assert 50_000 <= memory.held_bytes - attached < 51_000
    wire.say(Transfer(handle=0, aborted=True))
    assert memory.held_bytes == attached
    wire.say(Transfer(handle=0, delivery_id=1, delivery_tag=b"t", more=True), payload=bytes(50_000))
    wire.say(Detach(handle=0, closed=True))
    assert memory.held_bytes == opened
    wire.server.release()
    assert memory.held_bytes == 0


def test_a_paused_session_stays_open_for_what_has_begun() -> None:
    """An unfinished delivery may be completed however small its frames are; then the window is closed."""
    wire = Wire(ConnectionLimits(window_frames=4))
    wire.say(wire.attach(role=False, initial_delivery_count=0))
    wire.say(Transfer(handle=0, delivery_id=FIRST_ID, delivery_tag=b"t", more=True), payload=b"x")
    wire.session().pause()
    wire.read()
    for _ in range(20):
        flows = [each for each in wire.say(Transfer(handle=0, more=True), payload=b"x") if isinstance(each, Flow)]
        assert all(flow.incoming_window for flow in flows)
    assert wire.error() is None
    (flow,) = [each for each in wire.say(Transfer(handle=0), payload=b"x") if isinstance(each, Flow)]
    assert flow.incoming_window == 0
    wire.session().resume()
    (flow,) = [performative for _, performative, _ in wire.read() if isinstance(performative, Flow)]
    assert flow.incoming_window == 4
