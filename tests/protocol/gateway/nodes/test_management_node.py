"""The management node in memory: a peer of frames, the gateway, and an engine on a simulated disk."""

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachConsumer, AttachProducer, Command
from ambermq.engine.effects import CommandFailed
from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Close,
    Detach,
    Disposition,
    Flow,
    Open,
    Properties,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Described, Map, Symbol, ULong
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.gateway.nodes.management_node import _cut
from ambermq.protocol.resources.resource import Resource
from tests.engine.rig import Rig
from tests.protocol.amqp_messages import messages
from tests.protocol.amqp_values import texts, values
from tests.protocol.authenticators import AnyPeer
from tests.protocol.gateways import gateway_of
from tests.protocol.peers import FIRST_ID, Wire, cut

REQUESTS, REPLIES = 0, 1


class Managing:
    """A peer with a link for requests and one for answers."""

    def __init__(self, *, credit: int = 1000, limits: ConnectionLimits | None = None) -> None:
        self.rig = Rig()
        self.gateway = gateway_of(self.rig.loop)
        connection = Connection(
            ConnectionRole.SERVER, limits or ConnectionLimits(), now_ms=0, container_id="broker", allow_bare=True
        )
        self.peer = ConnectionGateway(self.gateway, connection, AnyPeer())
        self._next_id = FIRST_ID
        self.give(AMQP_HEADER)
        self.say(Open(container_id="wire"), Wire.begin(incoming_window=1 << 20))
        self.attached = self.attach("$management", REQUESTS)
        self.say(
            Attach(
                name="replies",
                handle=REPLIES,
                role=True,
                source=Source(address="$management"),
                target=Target(address="me"),
            )
        )
        self.flow(credit)

    def give(self, data: bytes) -> list[tuple[Composite | None, bytes]]:
        """Send bytes in one read; returns what comes back once all is quiet, as (performative, payload)."""
        self.peer.connection.receive(data, 0)
        self.peer.handle_events()
        self.gateway.carry_out(self.rig.do())
        output = b"".join(map(bytes, self.peer.connection.take_output()))
        return [(performative, payload) for _, performative, payload in cut(output)]

    def say(self, *performatives: Composite) -> list[Composite | None]:
        """Send frames; returns the performatives that come back."""
        return [performative for performative, _ in self.give(b"".join(map(Wire.frame, performatives)))]

    def attach(self, address: str, handle: int, name: str = "") -> Attach:
        """Attach a link to send on."""
        target = Target(address=address)
        attach = Attach(
            name=name or address, handle=handle, role=False, source=Source(), target=target, initial_delivery_count=0
        )
        (answer,) = [said for said in self.say(attach) if isinstance(said, Attach)]
        return answer

    def attach_replies(self, name: str, handle: int, *, second: bool) -> None:
        """Attach a link for answers to a name, which are sent unsettled, and give credit."""
        source, target = Source(address="$management"), Target(address=name)
        modes = {"snd_settle_mode": 0, "rcv_settle_mode": int(second)}
        self.say(Attach(name=name, handle=handle, role=True, source=source, target=target, **modes))
        self.flow(100, handle=handle)

    def flow(self, credit: int, **fields: Any) -> list[tuple[Composite | None, bytes]]:
        """Grant credit for answers."""
        windows = {"next_incoming_id": 0, "incoming_window": 1 << 20, "next_outgoing_id": self._next_id}
        counts = {"delivery_count": 0, "outgoing_window": 1000, "handle": REPLIES, **fields}
        return self.give(Wire.frame(Flow(**windows, link_credit=credit, **counts)))

    def frame(self, payload: bytes, *, handle: int = REQUESTS, settled: bool = False) -> bytes:
        """A message in one frame."""
        delivery_id = self._next_id
        self._next_id = (delivery_id + 1) & 0xFFFFFFFF
        transfer = Transfer(handle=handle, delivery_id=delivery_id, delivery_tag=b"tag", settled=settled)
        return Wire.frame(transfer, payload)

    def ask(self, payload: bytes) -> list[Message]:
        """Send a request; returns the answers that come."""
        return answers(self.give(self.frame(payload)))

    def status(self, **asked: Any) -> int:
        """The status code of the answer to a request."""
        (answer,) = self.ask(request(**asked))
        assert answer.application_properties is not None
        return int(answer.application_properties["statusCode"])


def answers(frames: list[tuple[Composite | None, bytes]]) -> list[Message]:
    """The messages among frames."""
    return [decode_message(payload) for performative, payload in frames if isinstance(performative, Transfer)]


def flows(frames: list[tuple[Composite | None, bytes]], *, handle: int) -> list[Flow]:
    """The flows of a link among frames; the broker's handles are in the order of the attaches, as ours are."""
    return [said for said, _ in frames if isinstance(said, Flow) and said.handle == handle]


def request(
    operation: str = "READ", *, body: Any = None, message_id: Any = "id", reply_to: Any = "me", **asked: Any
) -> bytes:
    """A request's bytes."""
    return Message(
        properties=Properties(message_id=message_id, reply_to=reply_to),
        application_properties={"operation": operation, **asked},
        body=(AmqpValue(body),),
    ).encode()


def test_what_a_forgotten_producer_sends_is_no_request() -> None:
    """A link that was detached for a settled malformed message brings nothing more, though it names an operation."""
    managing = Managing()
    managing.attach("q", 2)
    bad = managing.frame(b"\xff", handle=2, settled=True)
    said = managing.give(bad + managing.frame(request("CREATE", name="sneaked in"), handle=2, settled=True))
    assert [performative.handle for performative, _ in said if isinstance(performative, Detach)] == [2]
    assert managing.rig.loop.state.queue_named("sneaked in") is None


def test_requests_are_heard_while_little_disk_is_left() -> None:
    """Sessions are closed to transfers then, but for those with a link for requests, whenever that was attached."""
    managing = Managing()
    managing.give(Wire.frame(Wire.begin(), channel=1))
    managed, other = managing.peer.connection.sessions()
    managing.gateway.set_low(Resource.DISK, is_low=True)
    assert (managed.windows.is_paused, other.windows.is_paused) == (False, True)
    assert managing.status(operation="CREATE", name="q") == 201
    attach = Attach(
        name="late",
        handle=0,
        role=False,
        source=Source(),
        target=Target(address="$management"),
        initial_delivery_count=0,
    )
    managing.give(Wire.frame(attach, channel=1))
    assert not other.windows.is_paused
    managing.gateway.set_low(Resource.DISK, is_low=False)
    assert not managed.windows.is_paused


@pytest.mark.parametrize("key", [ULong(1), Described(Symbol("x"), 1), ["list"]])
def test_maps_that_are_no_dict_are_answered_400(key: object) -> None:
    """Application properties or a body that decode to a Map are a bad request."""
    managing = Managing()
    pairs = (("operation", "CREATE"), ("name", "n"), (key, 1), (True, 1), (1, 1))
    told = Message(properties=Properties(reply_to="me"), body=(AmqpValue(None),))
    told.application_properties = Map(pairs)  # type: ignore[assignment]  # what no client should send
    (answer,) = managing.ask(told.encode())
    assert answer.application_properties is not None
    assert answer.application_properties["statusCode"] == 400
    assert managing.status(operation="CREATE", name="n", body=Map(pairs)) == 400
    assert managing.rig.loop.state.queue_named("n") is None


@pytest.mark.parametrize("section", [Data(b'{"messages_max": 5}'), AmqpSequence([{"messages_max": 5}]), AmqpValue("x")])
def test_a_body_that_is_no_map_is_answered_400(section: AmqpSequence | AmqpValue | Data) -> None:
    """It would be taken for done, though nothing of it was."""
    managing = Managing()
    asked = {"operation": "CREATE", "name": "n"}
    told = Message(properties=Properties(reply_to="me"), application_properties=asked, body=(section,))
    (answer,) = managing.ask(told.encode())
    assert answer.application_properties is not None
    assert answer.application_properties["statusCode"] == 400
    assert "must be an amqp-value with a map" in answer.application_properties["statusDescription"]
    assert managing.rig.loop.state.queue_named("n") is None


@pytest.mark.parametrize("body", [(), (AmqpValue(None),), (AmqpValue(""),), (Data(b""),), (AmqpSequence([]),)])
def test_an_empty_body_of_any_kind_is_none(body: tuple[Any, ...]) -> None:
    """Some clients cannot send a message without one."""
    managing = Managing()
    asked = {"operation": "CREATE", "name": "n"}
    managing.ask(Message(properties=Properties(reply_to="me"), application_properties=asked, body=body).encode())
    assert managing.rig.loop.state.queue_named("n") is not None


def _requests() -> st.SearchStrategy[bytes]:
    operations = st.sampled_from(["CREATE", "READ", "DELETE", "PURGE", "QUERY"]) | values
    keys = st.sampled_from(["type", "entityType", "name", "offset", "count", "if-empty"])
    ids = st.none() | texts | st.binary(max_size=40) | st.uuids() | st.integers(0, 2**64 - 1).map(ULong)
    asked = st.dictionaries(keys, values, max_size=4)
    made = st.builds(
        lambda operation, others, extra, ids, body: Message(
            properties=Properties(message_id=ids[0], correlation_id=ids[1], reply_to=ids[2]),
            application_properties=Map((("operation", operation), *others.items(), *extra))
            if extra
            else {**others, "operation": operation},  # type: ignore[arg-type]
            body=(AmqpValue(body),),
        ).encode(),
        operations,
        asked,
        st.sampled_from([(), ((True, 1), (1, 1))]),
        st.tuples(ids, ids, st.just("me") | texts),
        st.dictionaries(st.just("messages_max"), values) | values,
    )
    return made | messages.map(Message.encode)


@st.composite
def _payloads(draw: st.DrawFn) -> bytes:
    """Random bytes, requests with values of any type, and such with a few bytes changed."""
    payload = bytearray(draw(st.binary(max_size=60) | _requests()))
    for position, byte in draw(st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=3)):
        if payload:
            payload[position % len(payload)] = byte
    return bytes(payload)


@settings(max_examples=100, deadline=None)
@given(st.lists(_payloads(), min_size=1, max_size=8))
def test_no_request_raises(payloads: list[bytes]) -> None:
    """Whatever comes on the link for requests, the next good request on it is answered."""
    managing = Managing()
    for payload in payloads:
        managing.give(managing.frame(payload))
    assert managing.status(operation="READ", name="missing") == 404
    assert managing.gateway.mistakes == []


@pytest.mark.parametrize(
    "properties",
    [
        Properties(message_id="x" * 1025, reply_to="me"),
        Properties(correlation_id=b"x" * 1025, message_id="id", reply_to="me"),
        Properties(message_id="id", correlation_id="x" * 1025, reply_to="me"),
    ],
)
def test_a_long_id_is_answered_400_and_not_repeated(properties: Properties) -> None:
    """What an answer repeats has at most 1 KiB; the operation is not done."""
    managing = Managing()
    asked = Message(properties=properties, application_properties={"operation": "CREATE", "name": "n"})
    (answer,) = managing.ask(asked.encode())
    assert answer.application_properties is not None
    assert answer.application_properties["statusCode"] == 400
    assert answer.properties == Properties(to="me")
    assert managing.rig.loop.state.queue_named("n") is None


def test_a_long_reply_to_is_answered_400_and_not_repeated() -> None:
    """The link is found by its long name, which the answer leaves out."""
    managing = Managing()
    name = "x" * 2000
    target = Target(address=name)
    managing.say(Attach(name="long", handle=2, role=True, source=Source(address="$management"), target=target))
    windows = {"next_incoming_id": 0, "incoming_window": 1000, "next_outgoing_id": FIRST_ID, "outgoing_window": 1000}
    managing.say(Flow(**windows, handle=2, delivery_count=0, link_credit=1))
    (answer,) = managing.ask(request("CREATE", name="n", reply_to=name))
    assert answer.application_properties is not None
    assert answer.application_properties["statusCode"] == 400
    assert answer.properties is None or answer.properties.to is None
    assert managing.rig.loop.state.queue_named("n") is None


def test_a_description_is_cut() -> None:
    """What went wrong is told in at most 1 KiB of UTF-8, whole characters only."""
    told = _cut("ä" * 5000)
    assert told == "ä" * 512
    assert _cut("x" + told) == "x" + told[:-1]


@pytest.mark.parametrize("asked", [{"operation": "ä" * 5000}, {"operation": "CREATE", "type": "ä" * 5000}])
def test_a_refusal_repeats_little_of_its_request(asked: dict[str, Any]) -> None:
    """The beginning of an operation or type that there is not, and what there is."""
    (answer,) = Managing().ask(request(**asked))
    assert answer.application_properties is not None
    told = answer.application_properties["statusDescription"]
    assert "ä" * 70 in told
    assert "ä" * 90 not in told
    assert told.endswith(("UPDATE", "org.ambermq.link", "org.ambermq.config"))


def test_requests_are_small() -> None:
    """The attach says 64 KiB; a request of more detaches its link, and what follows on it is dropped."""
    managing = Managing()
    assert managing.attached.max_message_size == 64 * 1024
    big = managing.frame(request("CREATE", name="big", body={"x": bytes(64 * 1024)}))
    said = managing.give(big + managing.frame(request("CREATE", name="next")))
    (detach,) = [performative for performative, _ in said if isinstance(performative, Detach)]
    assert str(detach.error.condition) == "amqp:link:message-size-exceeded"  # type: ignore[union-attr]
    assert managing.rig.loop.state.queue_named("next") is None


def test_no_credit_for_requests_while_answers_wait() -> None:
    """A client that takes no answers may use its credit; it gets more when the answers have left."""
    managing = Managing(credit=0)
    said = managing.give(b"".join(managing.frame(request(name="q")) for _ in range(100)))
    assert (answers(said), flows(said, handle=REQUESTS)) == ([], [])
    said = managing.flow(99)
    assert (len(answers(said)), flows(said, handle=REQUESTS)) == (99, [])
    said = managing.flow(100)
    assert [flow.link_credit for flow in flows(said, handle=REQUESTS)] == [100]
    assert len(answers(said)) == 1


def test_the_bytes_of_waiting_answers_are_bounded() -> None:
    """A megabyte of answers waits for a connection, and what exceeds it by less than one answer."""
    managing = Managing()
    for number in range(500):
        managing.ask(request("CREATE", name=f"{number:0200}"))
    managing.flow(0, delivery_count=500)
    managing.give(b"".join(managing.frame(request("QUERY")) for _ in range(40)))
    waiting = [payload for said, payload in managing.flow(1000, delivery_count=500) if isinstance(said, Transfer)]
    total, largest = sum(map(len, waiting)), max(map(len, waiting))
    assert 1 << 20 <= total < (1 << 20) + largest


@pytest.mark.parametrize(
    ("makes_room", "second"),
    [
        (Disposition(role=True, first=1, settled=True, state=Accepted()), False),
        (Disposition(role=True, first=1, settled=False, state=Accepted()), True),
        (Detach(handle=2, closed=True), False),
    ],
    ids=["settled", "second", "detached"],
)
def test_answers_have_the_room_that_another_link_of_the_session_leaves(makes_room: Composite, second: bool) -> None:
    """They wait while too much is unsettled, and for no flow when it is less."""
    managing = Managing(limits=ConnectionLimits(unsettled_max=2))
    managing.attach_replies("first", 2, second=second)
    managing.attach_replies("other", 3, second=False)
    for name in ("first", "first"):
        assert len(managing.ask(request(name="q", reply_to=name))) == 1
    assert managing.ask(request(name="q", reply_to="other")) == []
    assert len(answers(managing.give(Wire.frame(makes_room)))) == 1


def test_a_drain_is_answered_where_nothing_is_settled() -> None:
    """Its receiver may settle when it has the flow, and no sooner."""
    managing = Managing(limits=ConnectionLimits(unsettled_max=1))
    managing.attach_replies("first", 2, second=False)
    asked = managing.give(managing.frame(request(name="q", reply_to="first")))
    assert len(answers(asked)) == 1
    assert managing.ask(request(name="q", reply_to="first")) == []
    (flow,) = flows(managing.flow(100, handle=2, delivery_count=1, drain=True), handle=2)
    assert (flow.link_credit, flow.drain) == (0, True)


@pytest.mark.parametrize("number", [sys.maxsize + 1, 2**64 - 1, -1])
@pytest.mark.parametrize("name", ["offset", "count"])
def test_a_page_that_cannot_be_is_answered_400(name: str, number: int) -> None:
    """Offsets and counts are numbers that the machine can count to."""
    assert Managing().status(operation="QUERY", **{name: number}) == 400
    assert Managing().status(operation="QUERY", **{name: sys.maxsize}) == 200


@pytest.mark.parametrize("credit", [1, 2, 5])
def test_a_drain_is_answered_whatever_is_left(credit: int) -> None:
    """A flow ends the drain also when the answers have used the credit up exactly."""
    managing = Managing(credit=0)
    managing.give(managing.frame(request(name="q")) + managing.frame(request(name="q")))
    said = managing.flow(credit, drain=True)
    assert len(answers(said)) == min(credit, 2)
    assert [(flow.link_credit, flow.delivery_count, flow.drain) for flow in flows(said, handle=REPLIES)] == [
        (0, credit, True)
    ]


@pytest.mark.parametrize("kind", [AttachProducer, AttachConsumer])
def test_an_attach_that_fails_in_the_engine_ends_its_connection(kind: type) -> None:
    """The peer of a link whose attach was our mistake is told amqp:internal-error."""
    managing = Managing()
    submitted: list[Command] = []
    managing.rig.loop.submit = submitted.append  # type: ignore[method-assign]  # the engine that fails
    is_receiving = kind is AttachConsumer
    attach = Wire.attach(role=is_receiving, handle=2, **({} if is_receiving else {"initial_delivery_count": 0}))
    managing.say(attach)
    (command,) = submitted
    assert type(command) is kind
    managing.gateway.carry_out([CommandFailed(command, ZeroDivisionError())])
    (close,) = [said for said in managing.say() if isinstance(said, Close)]
    assert str(close.error.condition) == "amqp:internal-error"  # type: ignore[union-attr]


def test_without_other_virtual_hosts_their_type_does_nothing() -> None:
    """A gateway that stands alone knows none."""
    assert Managing().status(operation="QUERY", entityType="org.ambermq.vhost") == 501
