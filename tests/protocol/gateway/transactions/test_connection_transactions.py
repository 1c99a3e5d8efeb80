"""Transactions of a connection, by frames (part 4)."""

from typing import Any

import pytest

from ambermq.engine.config import EngineConfig
from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Coordinator,
    Declare,
    Declared,
    Detach,
    Discharge,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Rejected,
    Released,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.transactions.connection_transactions import CAPABILITIES
from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import Watching

BODY = b"\x00\x53\x77\xa1\x01"


class Transacting(Watching):
    """A peer with a link to the coordinator (0), one that sends (1) and one that receives (2), all at `q`."""

    def __init__(self, rig: Rig | None = None, *, outcomes: tuple[str, ...] = (), **fields: Any) -> None:
        super().__init__(rig, **fields)
        self._next_id = FIRST_ID
        source = Source(outcomes=tuple(map(Symbol, outcomes)))
        said = self.say(
            Attach(name="c", handle=0, role=False, source=source, target=Coordinator(), initial_delivery_count=0),
            Attach(
                name="s", handle=1, role=False, source=Source(), target=Target(address="q"), initial_delivery_count=0
            ),
            Attach(name="r", handle=2, role=True, source=Source(address="q"), target=Target()),
        )
        self.answer = next(each for each in said if isinstance(each, Attach) and each.name == "c")

    def frame(self, handle: int, payload: bytes, **fields: Any) -> bytes:
        """Return the first frame of a message."""
        transfer = Transfer(handle=handle, delivery_id=self._next_id, delivery_tag=b"t", **fields)
        self._next_id = (self._next_id + 1) & 0xFFFFFFFF
        return Wire.frame(transfer, payload)

    def send(self, handle: int, payload: bytes, **fields: Any) -> list[Composite | None]:
        """Send one message; returns what comes back."""
        return [said for said, _ in self.give(self.frame(handle, payload, **fields))]

    def control(self, value: Composite) -> Any:
        """Send a declare or discharge; returns the state that answers it, or the error of the detach."""
        said = self.send(0, Message(body=(AmqpValue(value),)).encode())
        answers = [each for each in said if isinstance(each, Disposition | Detach)]
        (answer,) = [each for each in answers if isinstance(each, Detach) or each.role]
        return answer.state if isinstance(answer, Disposition) else answer.error

    def declare(self) -> bytes:
        """Declare a transaction; returns its id."""
        state = self.control(Declare())
        assert isinstance(state, Declared)
        return bytes(state.txn_id)

    def post(self, transaction: bytes, text: bytes, **fields: Any) -> list[Composite | None]:
        """Send a message in a transaction."""
        return self.send(1, BODY + text, state=TransactionalState(txn_id=transaction), **fields)

    def get(self, count: int) -> dict[int, tuple[bytes, int]]:
        """Grant credit; returns the messages by delivery-id, with their delivery-counts."""
        flow = Flow(
            next_incoming_id=0, incoming_window=1000, next_outgoing_id=0, outgoing_window=1000,
            handle=2, delivery_count=self._received, link_credit=count,
        )  # fmt: skip
        got = {}
        for each, payload in self.give(Wire.frame(flow)):
            if isinstance(each, Transfer):
                header = decode_message(payload).header
                assert each.delivery_id is not None
                got[each.delivery_id] = payload[-1:], (header.delivery_count or 0) if header else 0
        self._received += len(got)
        return got

    _received = 0

    def retire(
        self, transaction: bytes, delivery: int, *, settled: bool, outcome: Any = None
    ) -> list[Composite | None]:
        """Send an outcome in a transaction."""
        state = TransactionalState(txn_id=transaction, outcome=outcome or Accepted())
        return self.say(Disposition(role=True, first=delivery, settled=settled, state=state))

    @property
    def depth(self) -> int:
        """The messages of the queue."""
        return self.rig.queue().depth


def condition(state: Any) -> str:
    """The condition of a rejection."""
    assert isinstance(state, Rejected)
    assert state.error is not None
    return str(state.error.condition)


def test_the_coordinator_says_what_it_offers() -> None:
    """Local transactions, several in a session, and several sessions in one."""
    peer = Transacting()
    assert isinstance(peer.answer.target, Coordinator)
    assert peer.answer.target.capabilities == CAPABILITIES


def test_posts_are_there_with_the_commit() -> None:
    """Each is answered by its transaction and its outcome, before the commit (4.4.1)."""
    peer = Transacting()
    transaction = peer.declare()
    (said,) = [each for each in peer.post(transaction, b"a") if isinstance(each, Disposition)]
    assert said.settled
    assert isinstance(said.state, TransactionalState)
    assert (bytes(said.state.txn_id), said.state.outcome) == (transaction, Accepted())
    assert peer.depth == 0
    assert peer.control(Discharge(txn_id=transaction)) == Accepted()
    assert [text for text, _ in peer.get(5).values()] == [b"a"]
    assert peer.gateway.traffic.transactions_committed == 1


def test_a_rollback_returns_settled_deliveries_with_a_count() -> None:
    """JMSXDeliveryCount is 2 then; the others stay with their receiver."""
    peer = Transacting()
    for text in (b"a", b"b"):
        peer.send(1, BODY + text)
    first, second = peer.get(2)
    transaction = peer.declare()
    peer.post(transaction, b"c")
    peer.retire(transaction, first, settled=True)
    peer.retire(transaction, second, settled=False)
    assert peer.control(Discharge(txn_id=transaction, fail=True)) == Accepted()
    assert peer.rig.queue().acquired_count == 1
    assert list(peer.get(5).values()) == [(b"a", 1)]
    # The outcome that was said in the transaction is void, and another one may follow.
    transaction = peer.declare()
    peer.retire(transaction, second, settled=True)
    assert peer.control(Discharge(txn_id=transaction)) == Accepted()
    assert peer.rig.queue().accepted == 1
    assert peer.gateway.traffic.transactions_rolled_back == 1


def test_a_commit_settles_what_its_receiver_has_not() -> None:
    """With the outcome of the transaction."""
    peer = Transacting()
    peer.send(1, BODY + b"a")
    (delivery,) = peer.get(1)
    transaction = peer.declare()
    assert peer.retire(transaction, delivery, settled=False, outcome=Modified(delivery_failed=True)) == []
    said = peer.send(0, Message(body=(AmqpValue(Discharge(txn_id=transaction)),)).encode())
    states = [(each.role, each.state, each.settled) for each in said if isinstance(each, Disposition)]
    assert (False, Modified(delivery_failed=True), True) in states
    assert (True, Accepted(), True) in states
    assert list(peer.get(1).values()) == [(b"a", 1)]


def test_several_transactions_are_open_at_once() -> None:
    """Each has its own end."""
    peer = Transacting()
    one, other = peer.declare(), peer.declare()
    assert one != other
    peer.post(one, b"a")
    peer.post(other, b"b")
    assert peer.control(Discharge(txn_id=other)) == Accepted()
    assert peer.control(Discharge(txn_id=one, fail=True)) == Accepted()
    assert [text for text, _ in peer.get(5).values()] == [b"b"]


@pytest.mark.parametrize("ends", ["detach", "session", "connection"])
def test_the_end_of_the_coordinators_link_rolls_back(ends: str) -> None:
    """By a detach, with its session, or with its connection."""
    rig = Rig()
    peer = Transacting(rig)
    peer.post(peer.declare(), b"a")
    if ends == "detach":
        peer.say(Detach(handle=0, closed=True))
    elif ends == "session":
        peer.say(End())
    else:
        peer.peer.release()
        peer.settle()
    assert rig.loop.transactions.count == 0
    assert rig.queue().depth == 0


def test_a_transaction_that_is_not_open_is_unknown() -> None:
    """To a discharge it is a rejection; a message or an outcome in it ends its link."""
    peer = Transacting()
    assert condition(peer.control(Discharge(txn_id=b"no"))) == "amqp:transaction:unknown-id"
    (detach,) = [each for each in peer.post(b"no", b"a") if isinstance(each, Detach)]
    assert detach.error is not None
    assert detach.error.condition == "amqp:transaction:unknown-id"
    producer = peer.rig.producer()
    peer.rig.do(peer.rig.publish(producer, BODY + b"b"))
    (delivery,) = peer.get(1)
    (detach,) = [each for each in peer.retire(b"no", delivery, settled=True) if isinstance(each, Detach)]
    assert detach.error is not None
    assert detach.error.condition == "amqp:transaction:unknown-id"
    # Its consumer has ended, so the message is there for another one.
    assert peer.rig.queue().available == 1


def test_a_discharged_transaction_is_not_open() -> None:
    """A second discharge finds none."""
    peer = Transacting()
    transaction = peer.declare()
    assert peer.control(Discharge(txn_id=transaction)) == Accepted()
    assert condition(peer.control(Discharge(txn_id=transaction))) == "amqp:transaction:unknown-id"


def test_a_source_without_rejected_is_detached() -> None:
    """The error of the detach says what a rejection would (4.3)."""
    peer = Transacting(outcomes=("amqp:accepted:list",))
    error = peer.control(Discharge(txn_id=b"no"))
    assert error.condition == "amqp:transaction:unknown-id"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(Declare(global_id=b"x"), "amqp:not-implemented"), (Accepted(), "amqp:decode-error")],
)
def test_another_message_to_the_coordinator_is_rejected(value: Composite, expected: str) -> None:
    """A global transaction is not offered; anything else is no message for it."""
    assert condition(Transacting().control(value)) == expected


def test_bytes_to_the_coordinator_are_rejected() -> None:
    """Whatever they are, the link goes on."""
    peer = Transacting()
    for payload in (b"", b"\x00", b"\xff" * 40, BODY + b"a", b"\x00\x53\x75\xa0\x01a"):
        (said,) = [each for each in peer.send(0, payload) if isinstance(each, Disposition)]
        assert condition(said.state) == "amqp:decode-error"
    assert peer.declare()


def test_a_connection_has_a_limit_of_transactions() -> None:
    """An end makes room."""
    peer = Transacting(limits=ServerLimits(connection_transactions_max=2))
    one, _ = peer.declare(), peer.declare()
    assert condition(peer.control(Declare())) == "amqp:resource-limit-exceeded"
    peer.control(Discharge(txn_id=one, fail=True))
    assert peer.declare()


def test_a_discharge_that_waits_for_a_large_message_counts_for_the_limit() -> None:
    """Its transaction is open until all pieces of the message are durable."""
    limits = ServerLimits(connection_transactions_max=2, uploads_unsynced_bytes=1000)
    peer = Transacting(Rig(config=EngineConfig(chunk_bytes=1000)), limits=limits)
    transaction = peer.declare()
    body = Message(body=(Data(bytes(2500)),)).encode()
    state = TransactionalState(txn_id=transaction)
    post = peer.frame(1, body[:2300], state=state, more=True) + Wire.frame(Transfer(handle=1), body[2300:])
    controls = [Discharge(txn_id=transaction), Declare(), Declare()]
    data = post + b"".join(peer.frame(0, Message(body=(AmqpValue(one),)).encode()) for one in controls)
    states = [each.state for each, _ in peer.give(data) if isinstance(each, Disposition)]
    (refused,) = [state for state in states if isinstance(state, Rejected)]
    assert condition(refused) == "amqp:resource-limit-exceeded"
    assert [type(state) for state in states].count(Declared) == 1
    assert Accepted() in states
    assert peer.depth == 1
    assert peer.declare()


def test_a_refused_post_is_told_in_its_transaction() -> None:
    """The commit of the others goes on; a settled one that is refused makes a rollback."""
    peer = Transacting(Rig(config=EngineConfig(transaction_messages_max=1)))
    transaction = peer.declare()
    peer.post(transaction, b"a")
    (said,) = [each for each in peer.post(transaction, b"b") if isinstance(each, Disposition)]
    assert isinstance(said.state, TransactionalState)
    assert condition(said.state.outcome) == "amqp:resource-limit-exceeded"
    assert peer.control(Discharge(txn_id=transaction)) == Accepted()
    transaction = peer.declare()
    peer.post(transaction, b"c", settled=True)
    assert peer.post(transaction, b"d", settled=True) == []
    assert condition(peer.control(Discharge(txn_id=transaction))) == "amqp:transaction:rollback"
    assert peer.depth == 1


def test_a_late_transaction_says_so() -> None:
    """Its discharge is rejected; what is settled in it returns."""
    peer = Transacting(Rig(config=EngineConfig(transaction_ms_max=10)))
    peer.send(1, BODY + b"a")
    (delivery,) = peer.get(1)
    transaction = peer.declare()
    peer.rig.now_us += 10_000
    peer.gateway.carry_out(peer.rig.step())
    peer.retire(transaction, delivery, settled=True)
    assert peer.rig.queue().available == 1
    assert condition(peer.control(Discharge(txn_id=transaction))) == "amqp:transaction:timeout"


def test_a_request_in_a_transaction_ends_its_link() -> None:
    """The node of the broker acts at once."""
    peer = Transacting()
    transaction = peer.declare()
    target = Target(address="$management")
    peer.say(Attach(name="m", handle=3, role=False, source=Source(), target=target, initial_delivery_count=0))
    said = peer.send(3, Message(body=(AmqpValue(None),)).encode(), state=TransactionalState(txn_id=transaction))
    (detach,) = [each for each in said if isinstance(each, Detach)]
    assert detach.error is not None
    assert detach.error.condition == "amqp:not-implemented"


def test_credit_in_a_transaction_ends_its_link() -> None:
    """The broker acquires outside of transactions, and says so (4.4.3)."""
    peer = Transacting()
    transaction = peer.declare()
    flow = Flow(
        next_incoming_id=0, incoming_window=1000, next_outgoing_id=0, outgoing_window=1000,
        handle=2, delivery_count=0, link_credit=5, properties={Symbol("txn-id"): transaction},
    )  # fmt: skip
    (detach,) = [each for each in peer.say(flow) if isinstance(each, Detach)]
    assert detach.error is not None
    assert detach.error.condition == "amqp:not-implemented"


def test_credit_in_a_transaction_ends_a_link_whose_attach_has_no_answer_yet() -> None:
    """A peer that does not wait for the answer gets no message outside of its transaction."""
    peer = Transacting()
    transaction = peer.declare()
    peer.send(1, BODY + b"a")
    assert peer.depth == 1
    attach = Attach(name="r2", handle=3, role=True, source=Source(address="q"), target=Target())
    flow = Flow(
        next_incoming_id=0, incoming_window=1000, next_outgoing_id=0, outgoing_window=1000,
        handle=3, delivery_count=0, link_credit=5, properties={Symbol("txn-id"): transaction},
    )  # fmt: skip
    said = peer.say(attach, flow)
    (detach,) = [each for each in said if isinstance(each, Detach)]
    assert detach.error is not None
    assert detach.error.condition == "amqp:not-implemented"
    assert not any(isinstance(each, Transfer) for each in said)


def test_a_message_of_several_frames_is_posted() -> None:
    """The first one names the transaction."""
    peer = Transacting()
    transaction = peer.declare()
    state = TransactionalState(txn_id=transaction)
    first = Transfer(handle=1, delivery_id=peer._next_id, delivery_tag=b"t", more=True, state=state)
    peer._next_id += 1
    peer.give(Wire.frame(first, BODY[:3]) + Wire.frame(Transfer(handle=1), BODY[3:] + b"a"))
    assert peer.depth == 0
    peer.control(Discharge(txn_id=transaction))
    assert peer.depth == 1


def test_the_messages_of_open_transactions_are_surveyed() -> None:
    """The connection that holds most is closed first if memory is low."""
    peer = Transacting()
    before = peer.peer.surveyed_bytes()
    transaction = peer.declare()
    peer.post(transaction, b"a")
    assert peer.peer.surveyed_bytes() - before == len(BODY) + 1


def test_a_repeated_outcome_costs_nothing() -> None:
    """A hostile receiver says it again and again: the last one counts, and is settled once."""
    peer = Transacting()
    peer.send(1, BODY + b"a")
    (delivery,) = peer.get(1)
    transaction = peer.declare()
    for _ in range(50):
        peer.retire(transaction, delivery, settled=False)
    peer.retire(transaction, delivery, settled=False, outcome=Modified(delivery_failed=True))
    (known,) = peer.peer._transactions._open.values()
    assert (len(known.unsettled), len(known.transaction.retirements)) == (1, 1)
    assert peer.control(Discharge(txn_id=transaction)) == Accepted()
    assert list(peer.get(1).values()) == [(b"a", 1)]


def test_a_transaction_settles_a_limited_number_of_deliveries() -> None:
    """Those beyond it return to the queue, and the commit cannot be."""
    peer = Transacting(Rig(config=EngineConfig(transaction_messages_max=2)))
    for text in (b"a", b"b", b"c"):
        peer.send(1, BODY + text)
    transaction = peer.declare()
    for delivery in peer.get(3):
        peer.retire(transaction, delivery, settled=True)
    peer.settle()
    assert (peer.rig.queue().acquired_count, peer.rig.queue().available) == (2, 1)
    assert condition(peer.control(Discharge(txn_id=transaction))) == "amqp:transaction:rollback"
    assert peer.rig.queue().available == 3


def test_the_texts_of_its_outcomes_are_limited() -> None:
    """Those beyond the limit are not kept, and the commit cannot be; a later outcome takes the place of the first."""
    peer = Transacting(Rig(config=EngineConfig(transaction_bytes_max=1000)))
    for text in (b"a", b"b"):
        peer.send(1, BODY + text)
    transaction = peer.declare()
    first, second = peer.get(2)
    error = Rejected(error=Error(condition=Symbol("app:bad"), description="x" * 700))
    before = peer.peer.surveyed_bytes()
    peer.retire(transaction, first, settled=False, outcome=error)
    (known,) = peer.rig.loop.transactions.begun
    assert (known.outcome_bytes, peer.peer.surveyed_bytes() - before) == (707, 707)
    peer.retire(transaction, first, settled=False)
    assert known.outcome_bytes == 0
    peer.retire(transaction, first, settled=False, outcome=error)
    peer.retire(transaction, second, settled=False, outcome=error)
    assert known.outcome_bytes == 707
    assert condition(peer.control(Discharge(txn_id=transaction))) == "amqp:transaction:rollback"
    assert peer.depth == 2


def test_commits_are_taken_while_room_is_low() -> None:
    """What a receiver has taken in a transaction leaves the queue, and so makes room."""
    peer = Transacting()
    peer.send(1, BODY + b"a")
    (delivery,) = peer.get(1)
    peer.gateway.set_low(Resource.DISK, is_low=True)
    transaction = peer.declare()
    peer.retire(transaction, delivery, settled=True)
    assert peer.control(Discharge(txn_id=transaction)) == Accepted()
    assert peer.depth == 0


def test_a_malformed_post_makes_a_rollback() -> None:
    """A settled one ends its link, so what came with it on the link may be lost too."""
    peer = Transacting()
    transaction = peer.declare()
    peer.post(transaction, b"a", settled=True)
    peer.send(1, b"\xff", state=TransactionalState(txn_id=transaction), settled=True)
    assert condition(peer.control(Discharge(txn_id=transaction))) == "amqp:transaction:rollback"
    assert peer.depth == 0


def test_an_unsettled_state_without_an_outcome_is_none() -> None:
    """It says nothing yet (4.5.8)."""
    peer = Transacting()
    peer.send(1, BODY + b"a")
    (delivery,) = peer.get(1)
    transaction = peer.declare()
    state = TransactionalState(txn_id=transaction)
    peer.say(Disposition(role=True, first=delivery, settled=False, state=state))
    assert peer.control(Discharge(txn_id=transaction)) == Accepted()
    assert peer.rig.queue().acquired_count == 1


@pytest.mark.parametrize("settled", [True, False])
def test_an_outcome_outside_of_a_transaction_makes_a_rollback(settled: bool) -> None:
    """The message has come again under the same tag: a commit would settle a delivery that it is not about."""
    peer = Transacting()
    peer.send(1, BODY + b"a")
    peer.get(2)
    transaction = peer.declare()
    peer.retire(transaction, 0, settled=False)
    said = peer.say(Disposition(role=True, first=0, settled=settled, state=Released()))
    assert [each.delivery_id for each in said if isinstance(each, Transfer)] == [1]
    assert condition(peer.control(Discharge(txn_id=transaction, fail=False))) == "amqp:transaction:rollback"
    peer.say(Disposition(role=True, first=1, settled=True, state=Accepted()))
    assert peer.rig.queue().accepted == 1


def test_a_delivery_has_an_outcome_in_one_transaction() -> None:
    """The second one cannot be committed. One that is discharged leaves the delivery to the next."""
    peer = Transacting()
    peer.send(1, BODY + b"a")
    peer.get(2)
    first, second, third = peer.declare(), peer.declare(), peer.declare()
    peer.retire(first, 0, settled=False, outcome=Released())
    peer.retire(second, 0, settled=True)
    peer.control(Discharge(txn_id=first, fail=True))
    assert condition(peer.control(Discharge(txn_id=second, fail=False))) == "amqp:transaction:rollback"
    peer.retire(third, 1, settled=False)
    assert isinstance(peer.control(Discharge(txn_id=third, fail=False)), Accepted)
    assert peer.rig.queue().accepted == 1
