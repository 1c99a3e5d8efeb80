"""A returned message comes again to its link after the settlement of the first delivery: they have the same tag."""

import pytest

from ambermq.protocol.amqp10.message.message import AmqpValue, Message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    DeliveryState,
    Discharge,
    Disposition,
    Modified,
    Released,
    TransactionalState,
    Transfer,
)
from tests.protocol.gateway.recovery.resuming import Resuming
from tests.protocol.gateway.transactions.test_connection_transactions import Transacting


def order(said: list[Composite | None]) -> list[type]:
    """The dispositions of the broker as a sender, and its transfers, in the order in which they leave."""
    return [type(one) for one in said if isinstance(one, Transfer) or (isinstance(one, Disposition) and not one.role)]


@pytest.mark.parametrize("state", [Released(), Modified(delivery_failed=True)])
def test_the_settlement_leaves_before_the_message_comes_again(state: DeliveryState) -> None:
    """The receiver settles after the broker, and has credit left."""
    peer = Resuming()
    peer.attach(rcv_settle_mode=1)
    peer.publish(2)
    ((first, _), _) = peer.receive()
    assert order(peer.dispose(first.delivery_id or 0, settled=False, state=state)) == [Disposition, Transfer]


def test_an_acceptance_delays_nothing() -> None:
    """Its message does not come again: new ones wait for no sync of the outcome."""
    peer = Resuming()
    peer.attach(rcv_settle_mode=1)
    peer.publish(2)
    ((first, _), _) = peer.receive()
    assert order(peer.dispose(first.delivery_id or 0, settled=False, state=Accepted())) == [Disposition]


def test_in_a_transaction_the_commit_settles_before() -> None:
    """The receiver has said released, and has not settled."""
    peer = Transacting()
    peer.send(1, b"\x00\x53\x77\xa1\x011", settled=True)
    (delivery_id,) = peer.get(10)
    transaction = peer.declare()
    released = TransactionalState(txn_id=transaction, outcome=Released())
    peer.say(Disposition(role=True, first=delivery_id, settled=False, state=released))
    discharge = Message(body=(AmqpValue(Discharge(txn_id=transaction, fail=False)),))
    said = peer.send(0, discharge.encode())
    assert order(said) == [Disposition, Transfer]
