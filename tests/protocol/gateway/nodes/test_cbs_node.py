"""The node `$cbs` in memory: tokens are taken, answered, and mean nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.message.message import AmqpValue, Message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Close,
    Detach,
    Disposition,
    Flow,
    Properties,
    Source,
    Target,
)
from ambermq.protocol.amqp10.spec import ReceiverSettleMode, SenderSettleMode
from ambermq.protocol.resources.resource import Resource
from tests.protocol.amqp_messages import messages
from tests.protocol.gateway.nodes.test_management_node import Managing, answers
from tests.protocol.peers import Wire

TOKENS, ANSWERS = 2, 3


class Claiming(Managing):
    """A peer that has the links of a client of Azure besides those for management."""

    def __init__(
        self, *, mode: int = SenderSettleMode.UNSETTLED, target: str | None = "$cbs", credit: int = 1000
    ) -> None:
        super().__init__()
        self.tokens = self.attach("$cbs", TOKENS)
        attach = Attach(
            name="answers",
            handle=ANSWERS,
            role=True,
            snd_settle_mode=mode,
            source=Source(address="$cbs"),
            target=Target(address=target),
        )
        (self.answering,) = [said for said in self.say(attach) if isinstance(said, Attach)]
        self.credit(credit)

    def credit(self, credit: int) -> list[tuple[Composite | None, bytes]]:
        """Grant credit for answers to tokens."""
        flow = Flow(
            next_incoming_id=0,
            incoming_window=1 << 20,
            next_outgoing_id=self._next_id,
            outgoing_window=1000,
            handle=ANSWERS,
            delivery_count=0,
            link_credit=credit,
        )
        return self.give(Wire.frame(flow))

    def put(self, payload: bytes) -> list[tuple[Composite | None, bytes]]:
        """Send what should be a token."""
        return self.give(self.frame(payload, handle=TOKENS))


def token(operation: Any = "put-token", *, reply_to: str | None = None, message_id: Any = "id") -> bytes:
    """A request's bytes."""
    return Message(
        properties=Properties(message_id=message_id, reply_to=reply_to),
        application_properties={"operation": operation, "type": "servicebus.windows.net:sastoken", "name": "sb://x/q"},
        body=(AmqpValue("SharedAccessSignature"),),
    ).encode()


@pytest.mark.parametrize("mode", [SenderSettleMode.UNSETTLED, SenderSettleMode.SETTLED, SenderSettleMode.MIXED])
def test_a_token_is_accepted_and_answered(mode: int) -> None:
    """202, with the message-id as correlation-id, on the link that bears the node's name, settled as that link asks."""
    said = Claiming(mode=mode).put(token())
    (answer,) = answers(said)
    assert answer.properties is not None
    assert answer.properties.correlation_id == "id"
    assert answer.application_properties == {"status-code": 202, "status-description": "Accepted"}
    (settled,) = [bool(getattr(performative, "settled", None)) for performative, payload in said if payload]
    assert settled is (mode != SenderSettleMode.UNSETTLED)
    states = [performative.state for performative, _ in said if isinstance(performative, Disposition)]
    assert states == [Accepted()]


def test_what_is_told_of_the_links() -> None:
    """Both have the node's address; tokens are settled by the broker alone, whatever is asked for."""
    claiming = Claiming(target="mine")
    assert isinstance(claiming.tokens.target, Target)
    assert claiming.tokens.target.address == "$cbs"
    assert claiming.tokens.rcv_settle_mode == ReceiverSettleMode.FIRST
    assert claiming.answering.source is not None
    assert claiming.answering.source.address == "$cbs"
    assert claiming.answering.target == Target(address="mine")


def test_an_answer_goes_where_it_is_asked_for() -> None:
    """By reply-to to the link whose target address that is; where there is none the answer is dropped."""
    claiming = Claiming(target="mine")
    assert len(answers(claiming.put(token(reply_to="mine")))) == 1
    assert answers(claiming.put(token(reply_to="another"))) == []
    assert answers(claiming.put(token())) == []


@pytest.mark.parametrize("reply_to", [None, "$cbs", "answers"])
def test_without_a_target_address_a_link_is_found_by_its_name(reply_to: str | None) -> None:
    """As the Service Bus SDK for Node.js replies to; the node's own name is good for such a link too."""
    claiming = Claiming(target=None)
    assert len(answers(claiming.put(token(reply_to=reply_to)))) == 1
    assert answers(claiming.put(token(reply_to="another"))) == []
    claiming.say(Detach(handle=ANSWERS, closed=True))
    assert answers(claiming.put(token(reply_to=reply_to))) == []


def test_a_link_with_a_target_address_is_not_found_by_its_name() -> None:
    """A name that a client gave is the only one then: links for different answers are never confused."""
    assert answers(Claiming(target="mine").put(token(reply_to="answers"))) == []


@pytest.mark.parametrize("operation", ["delete-token", None, 1])
def test_nothing_but_tokens_can_be_put(operation: object) -> None:
    """Other operations are answered with 400."""
    (answer,) = answers(Claiming().put(token(operation)))
    assert answer.application_properties == {
        "status-code": 400,
        "status-description": "the only operation is put-token",
    }


def test_an_answer_waits_for_credit() -> None:
    """It leaves with the flow that has room for it, and tokens get credit again then."""
    claiming = Claiming(credit=0)
    for _ in range(8):
        assert answers(claiming.put(token())) == []
    said = claiming.credit(100)
    assert len(answers(said)) == 8
    assert [flow.link_credit for flow, _ in said if isinstance(flow, Flow) and flow.handle == TOKENS] == [10]


def test_an_outcome_of_an_answer_is_settled() -> None:
    """A receiver that waits for the broker's settlement gets it (receiver-settle-mode second)."""
    claiming = Claiming()
    claiming.put(token())
    (settlement,) = claiming.say(Disposition(role=True, first=0, settled=False, state=Accepted()))
    assert isinstance(settlement, Disposition)
    assert (settlement.role, settlement.settled, settlement.state) == (False, True, Accepted())


def test_a_token_that_is_too_long_ends_its_link() -> None:
    """More than 64 KiB: the link ends, the connection stays."""
    claiming = Claiming()
    said = claiming.put(token(message_id="x" * 65536))
    assert [performative.handle for performative, _ in said if isinstance(performative, Detach)] == [TOKENS]
    assert claiming.status(operation="CREATE", name="q") == 201


def test_tokens_are_heard_while_little_disk_is_left() -> None:
    """A session with a link for tokens stays open to transfers: a receiver must put a token first."""
    claiming = Claiming()
    claiming.gateway.set_low(Resource.DISK, is_low=True)
    assert len(answers(claiming.put(token()))) == 1


@given(payload=st.one_of(st.binary(max_size=100), messages.map(lambda message: message.encode())))
def test_whatever_comes_the_connection_stays(payload: bytes) -> None:
    """Bytes that are no message, and messages that are no token: accepted, at most answered, and a token goes on."""
    claiming = Claiming()
    said = claiming.put(payload)
    assert not any(isinstance(performative, Close | Detach) for performative, _ in said)
    assert len(answers(claiming.put(token()))) == 1


def test_only_outcomes_of_answers_are_settled() -> None:
    """The broker says nothing of deliveries on a link that has ended: what the peer says of them has no effect."""
    claiming = Claiming()
    claiming.put(token())
    assert claiming.say(Detach(handle=ANSWERS, closed=True)) == [Detach(handle=ANSWERS, closed=True)]
    assert claiming.say(Disposition(role=True, first=0, settled=False, state=Accepted())) == []
