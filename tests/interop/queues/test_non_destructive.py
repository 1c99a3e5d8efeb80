"""Non-destructive queues with proton over TCP."""

import pytest
from proton import Delivery, Message
from proton.reactor import Selector

from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager


@pytest.fixture
def lasting(connect: Connect, queue: str) -> str:
    """Return the name of a queue that keeps the last price of each symbol for every reader."""
    name = f"{queue}-prices"
    Manager(connect()).ask("CREATE", name, {"last_value": "symbol", "non_destructive": True})
    return name


def _prices(*pairs: tuple[str, int]) -> list[Message]:
    return [Message(price, properties={"symbol": symbol}, durable=True) for symbol, price in pairs]


def test_each_reader_gets_all_and_then_what_is_new(connect: Connect, lasting: str) -> None:
    """Once each, whatever the outcomes are; a newer price takes the place of the older one."""
    sender = connect().sender(lasting)
    sender.send(*_prices(("a", 1), ("b", 2), ("a", 3)))
    readers = [connect().receiver(lasting) for _ in range(2)]
    for reader in readers:
        for price in (2, 3):
            one = reader.next()
            assert one.message.body == price
            one.settle(Delivery.RELEASED if price == 2 else Delivery.ACCEPTED)
    sender.send(*_prices(("b", 4)))
    assert [reader.next().message.body for reader in readers] == [4, 4]
    row = Manager(connect()).queue(lasting)
    assert (row["available"], row["acquired"], row["discarded"], row["consumers"]) == (2, 0, 2, 2)
    late = connect().receiver(lasting)
    assert [late.next().message.body for _ in range(2)] == [3, 4]


def test_a_selector_and_little_credit(connect: Connect, lasting: str) -> None:
    """The reader gets what it selects, one message for each credit."""
    connect().sender(lasting).send(*_prices(*[(f"s{price}", price) for price in range(10)]))
    reader = connect().receiver(lasting, options=Selector("symbol = 's3' OR symbol = 's8'"), credit=1)
    for price in (3, 8):
        one = reader.next()
        assert one.message.body == price
        one.settle(Delivery.ACCEPTED)


def test_the_last_value_for_one_consumer(connect: Connect, queue: str) -> None:
    """On a queue that gives its messages away, also by a field of the properties."""
    name = f"{queue}-subjects"
    Manager(connect()).ask("CREATE", name, {"last_value": "properties.subject"})
    sender = connect().sender(name)
    sender.send(*[Message(turn, subject=subject, durable=True) for turn, subject in enumerate(("x", "y", "x"))])
    receiver = connect().receiver(name, credit=1)
    first = receiver.next()
    assert first.message.body == 1
    sender.send(Message(9, subject="y", durable=True))
    first.settle(Delivery.RELEASED)
    assert receiver.next().message.body == 2
