"""Transactions that cannot be committed any more, and what is kept of the outcomes in an open one."""

from typing import Any

from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Begin,
    Discharge,
    Disposition,
    End,
    Error,
    Modified,
    Rejected,
    Released,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Symbol
from tests.protocol.gateway.transactions.test_connection_transactions import BODY, Transacting, condition
from tests.protocol.peers import FIRST_ID, Wire


def on_channel_1(performative: Composite, payload: bytes = b"") -> bytes:
    """Return a frame for the second session of a connection."""
    frame = bytearray(Wire.frame(performative, payload))
    frame[6:8] = (1).to_bytes(2, "big")
    return bytes(frame)


def test_a_session_that_a_fault_ends_spoils_the_transaction_of_its_posts() -> None:
    """What follows the fault is ignored, so a commit would have a part of the posts alone."""
    peer = Transacting()
    peer.give(on_channel_1(Begin(next_outgoing_id=FIRST_ID, incoming_window=100, outgoing_window=100)))
    target = Target(address="q")
    peer.give(
        on_channel_1(Attach(name="s2", handle=0, role=False, source=Source(), target=target, initial_delivery_count=0))
    )
    transaction = peer.declare()
    posts = []
    for number in range(2):
        state = TransactionalState(txn_id=transaction)
        post = Transfer(handle=0, delivery_id=FIRST_ID + number, delivery_tag=b"%d" % number, settled=True, state=state)
        posts.append(on_channel_1(post, BODY + b"%d" % number))
    properties = {Symbol(f"k{number}"): "x" * 1000 for number in range(100)}
    fault = on_channel_1(
        Attach(name="long", handle=7, role=True, source=Source(), target=target, properties=properties)
    )
    said = [one for one, _ in peer.give(posts[0] + fault + posts[1])]
    assert [one.error.condition for one in said if isinstance(one, End) and one.error] == [
        "amqp:resource-limit-exceeded"
    ]
    assert condition(peer.control(Discharge(txn_id=transaction))) == "amqp:transaction:rollback"
    assert peer.depth == 0


def unsettled(peer: Transacting) -> dict[Any, Any]:
    """Return what the broker keeps to answer the outcomes of the open transaction."""
    (known,) = peer.peer._transactions._open.values()
    return known.unsettled


def test_what_is_kept_of_an_unsettled_outcome_is_small() -> None:
    """Neither the error of a rejection nor annotations: the receiver has said them."""
    peer = Transacting()
    for number in range(2):
        peer.send(1, BODY + b"%d" % number, settled=True)
    first, second = peer.get(2)
    transaction = peer.declare()
    error = Error(condition=Symbol("a:b"), info={Symbol("k"): "x" * 1000})
    peer.retire(transaction, first, settled=False, outcome=Rejected(error=error))
    annotated = Modified(delivery_failed=True, message_annotations={Symbol("x-a"): "y" * 1000})
    peer.retire(transaction, second, settled=False, outcome=annotated)
    assert [*unsettled(peer).values()] == [Rejected(), Modified(delivery_failed=True)]
    assert peer.control(Discharge(txn_id=transaction)) == Accepted()


def test_a_transaction_that_is_refused_keeps_no_more_outcomes() -> None:
    """A delivery that gets another outcome outside of it refuses the commit, and comes again and again."""
    peer = Transacting()
    peer.send(1, BODY + b"a", settled=True)
    transaction = peer.declare()
    for _ in range(5):
        (delivery,) = peer.get(1)
        peer.retire(transaction, delivery, settled=False)
        peer.say(Disposition(role=True, first=delivery, settled=True, state=Released()))
    assert len(unsettled(peer)) == 1
    assert condition(peer.control(Discharge(txn_id=transaction))) == "amqp:transaction:rollback"
    assert peer.depth == 1
