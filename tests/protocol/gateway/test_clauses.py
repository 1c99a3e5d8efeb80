"""Clauses of part 3 of the specification and of the OASIS documents beside it, by frames before the gateway."""

from typing import Any

import pytest

from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Close,
    Detach,
    Disposition,
    Error,
    Flow,
    Header,
    Modified,
    Open,
    Properties,
    Received,
    Rejected,
    Released,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Described, Symbol, ULong
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.protocol.gateway.opening.container_ids import SOLE_CONNECTION
from tests.engine.rig import Rig
from tests.protocol.gateway.nodes.test_management_node import Managing, request
from tests.protocol.gateway.test_specification import attached, nodes, source_of
from tests.protocol.peers import Wire, conditions
from tests.protocol.watching import Watching

SQL_CODE, PROPERTIES_CODE, APPLICATION_CODE = 0x120, 0x173, 0x174
"""The descriptors of the filters of AMQP Filter Expressions."""


def sent(peer: Watching, *payloads: bytes, handle: int = 7, target: str | None = "q") -> list[Composite | None]:
    """Attach a sender and send messages; returns what comes back."""
    attached(peer, sends=True, name=f"up{handle}", handle=handle, target=Target(address=target), source=Source())
    frames = [
        Wire.frame(Transfer(handle=handle, delivery_id=number, delivery_tag=b"t%d" % number), payload)
        for number, payload in enumerate(payloads)
    ]
    return [said for said, _ in peer.give(b"".join(frames))]


def got(peer: Watching, credit: int = 10) -> list[bytes]:
    """Grant credit on handle 0; returns the messages that come."""
    return [payload for said, payload in peer.flow(credit) if isinstance(said, Transfer)]


def settled(peer: Watching, state: Any, delivery_id: int = 0) -> list[bytes]:
    """Settle a delivery; returns the messages that come then."""
    frame = Wire.frame(Disposition(role=True, first=delivery_id, settled=True, state=state))
    return [payload for said, payload in peer.give(frame) if isinstance(said, Transfer)]


def first_attach(said: list[Composite | None]) -> Attach:
    """Return the broker's attach."""
    return next(each for each in said if isinstance(each, Attach))


# Part 3: messages

WHOLE = Message(
    header=Header(durable=True, priority=7, ttl=60_000),
    message_annotations={"x-opt-mine": 1, "of-no-meaning-here": [1, "two"]},
    properties=Properties(message_id=ULong(5), user_id=b"me", subject="s", absolute_expiry_time=1 << 45),
    application_properties={"a": 1, "b": None},
    body=(AmqpValue({"x": [1, 2]}),),
    footer={"x-opt-sum": b"123"},
)


@pytest.mark.parametrize(
    "body",
    [
        (Data(b""),),
        (Data(b"a"), Data(b""), Data(b"b" * 300)),
        (AmqpSequence([]),),
        (AmqpSequence([1, "a"]), AmqpSequence([None])),
        (AmqpValue(None),),
        (AmqpValue(Described(Symbol("x"), [1])),),
    ],
)
def test_a_body_is_delivered_as_it_was_sent(body: Any) -> None:
    """Data sections, sequences, or one value, each byte for byte (3.2.6 to 3.2.8)."""
    peer, payload = Watching(), Message(properties=Properties(message_id="m"), body=body).encode()
    sent(peer, payload)
    attached(peer, sends=False)
    assert got(peer) == [payload]


def test_the_bare_message_is_delivered_as_it_was_sent() -> None:
    """The sections from the properties on stay, and so do annotations that the broker does not know (3.2)."""
    peer, payload = Watching(), WHOLE.encode()
    assert [each.state for each in sent(peer, payload) if isinstance(each, Disposition)] == [Accepted()]
    attached(peer, sends=False)
    assert got(peer) == [payload]
    (again,) = settled(peer, Modified(delivery_failed=True))
    bare = Message(properties=WHOLE.properties, application_properties={"a": 1, "b": None}, body=WHOLE.body)
    bare.footer = WHOLE.footer
    assert again.endswith(bare.encode())
    assert decode_message(again).message_annotations == WHOLE.message_annotations


def test_delivery_annotations_end_at_the_broker() -> None:
    """They are from one peer to the next one (3.2.2)."""
    peer = Watching()
    sent(peer, Message(delivery_annotations={"x-opt-hop": 1}, body=(Data(b"x"),)).encode())
    attached(peer, sends=False)
    assert got(peer) == [Message(body=(Data(b"x"),)).encode()]


@pytest.mark.parametrize("body", [(Data(b"x"), AmqpValue(1)), (AmqpValue(1), AmqpValue(2))])
def test_two_kinds_of_body_are_rejected(body: Any) -> None:
    """A message has sections of data, or sequences, or one value (3.2)."""
    payload = b"".join(Message(body=(one,)).encode() for one in body)
    (said,) = [each for each in sent(Watching(), payload) if isinstance(each, Disposition)]
    assert isinstance(said.state, Rejected)
    assert said.state.error is not None
    assert said.state.error.condition == "amqp:decode-error"


def test_who_acquires_it_again_is_not_the_first() -> None:
    """A first-acquirer of true is false at the next delivery, if the last one failed (3.2.1)."""
    peer = Watching()
    sent(peer, Message(header=Header(first_acquirer=True), body=(Data(b"x"),)).encode())
    attached(peer, sends=False)
    assert decode_message(got(peer)[0]).header == Header(first_acquirer=True)
    (again,) = settled(peer, Modified(delivery_failed=True))
    assert decode_message(again).header == Header(first_acquirer=False, delivery_count=1)


@pytest.mark.parametrize("header", [None, Header(durable=True), Header(first_acquirer=False)])
def test_a_released_message_is_unchanged(header: Header | None) -> None:
    """Its delivery-count does not rise, and it has the bytes that were published (3.4.4)."""
    peer, payload = Watching(), Message(header=header, body=(Data(b"x"),)).encode()
    sent(peer, payload)
    attached(peer, sends=False)
    assert got(peer) == [payload]
    assert settled(peer, Released()) == [payload]


@pytest.mark.parametrize("outcome", [Released(), Modified()])
@pytest.mark.parametrize("annotations", [None, {"x-opt-mine": 1}])
def test_a_released_message_was_acquired_before(
    outcome: Released | Modified, annotations: dict[str, int] | None
) -> None:
    """A first-acquirer of true is false at each later delivery, and nothing else says something new (3.2.1)."""
    peer, header = Watching(), Header(durable=True, priority=7, ttl=60_000, first_acquirer=True)
    message = Message(header=header, message_annotations=annotations, body=(Data(b"x"),))
    sent(peer, message.encode())
    attached(peer, sends=False)
    assert [decode_message(one).header.first_acquirer for one in got(peer)] == [True]  # type: ignore[union-attr]
    for delivery_id in range(3):
        (again,) = settled(peer, outcome, delivery_id)
        known = decode_message(again)
        assert known.header is not None
        assert 0 < (known.header.ttl or 0) <= 60_000
        known.header.ttl = 60_000
        expected = Header(durable=True, priority=7, ttl=60_000, first_acquirer=False, delivery_count=0)
        assert known == Message(header=expected, message_annotations=annotations, body=(Data(b"x"),))


def test_a_delivery_count_of_the_sender_stays_until_a_delivery_fails() -> None:
    """The broker passes a header on as it was published; then it has the broker's own count (3.2.1)."""
    peer, payload = Watching(), Message(header=Header(delivery_count=5), body=(Data(b"x"),)).encode()
    sent(peer, payload)
    attached(peer, sends=False)
    assert got(peer) == [payload]
    (again,) = settled(peer, Modified(delivery_failed=True))
    assert decode_message(again).header == Header(delivery_count=1)


def test_annotations_of_an_outcome_replace_those_of_the_message() -> None:
    """A key of both has the value of the outcome, other keys stay (3.4.5)."""
    peer = Watching()
    sent(peer, Message(message_annotations={"a": 1, "b": 2}, body=(Data(b"x"),)).encode())
    attached(peer, sends=False)
    got(peer)
    (again,) = settled(peer, Modified(message_annotations={"b": 3, "c": 4}))
    message = decode_message(again)
    assert message.message_annotations == {"a": 1, "b": 3, "c": 4}
    assert (message.header or Header()).delivery_count in (None, 0)


def test_a_delivery_without_an_outcome_has_the_default_one() -> None:
    """Where the receiver settles without a state, the default-outcome of its source stands in (3.5.3)."""
    peer = Watching()
    sent(peer, Message(body=(Data(b"x"),)).encode(), Message(body=(Data(b"y"),)).encode())
    attached(peer, sends=False, source=Source(address="q", default_outcome=Modified(delivery_failed=True)))
    got(peer)
    (again,) = settled(peer, None)
    assert decode_message(again).header == Header(delivery_count=1)
    (twice,) = settled(peer, Received(section_number=0, section_offset=0), 1)
    assert decode_message(twice).header == Header(delivery_count=1)


# Part 3: termini


def test_the_answer_has_the_settle_modes_in_use() -> None:
    """Those that the peer asks for, in both directions (transport, 2.7.3)."""
    for sender_mode in (0, 1, 2):
        for receiver_mode in (0, 1):
            modes = {"snd_settle_mode": sender_mode, "rcv_settle_mode": receiver_mode}
            down = first_attach(attached(Watching(), sends=False, **modes))
            assert (down.snd_settle_mode, down.rcv_settle_mode) == (sender_mode, receiver_mode)
            up = first_attach(attached(Watching(), sends=True, **modes))
            assert (up.snd_settle_mode, up.rcv_settle_mode) == (sender_mode, receiver_mode)


def test_a_receiver_with_a_small_maximum_gets_the_message() -> None:
    """The broker sends a message above the max-message-size of a receiver, which ends the link (transport, 2.7.3)."""
    peer = Watching()
    payload = Message(body=(Data(bytes(2000)),)).encode()
    sent(peer, payload)
    attached(peer, sends=False, max_message_size=1000)
    assert got(peer) == [payload]
    peer.say(Detach(handle=0, closed=True, error=Error(condition="amqp:link:message-size-exceeded")))
    attached(peer, sends=False, name="other")
    (again,) = got(peer)
    assert decode_message(again).body == (Data(bytes(2000)),)


def test_a_queue_tells_nothing_of_what_is_available() -> None:
    """`available` is 0 in flows of consumers, whatever waits; a browser's flows have the number (transport, 2.7.4)."""
    peer = Watching()
    sent(peer, *[Message(body=(Data(b"x"),)).encode()] * 3)
    attached(peer, sends=False)
    said = [each for each, _ in peer.flow(0, echo=True) if isinstance(each, Flow)]
    assert [each.available for each in said] == [0]
    peer.say(Detach(handle=0, closed=True))
    peer.attach("q")
    said = [each for each, _ in peer.flow(0, echo=True) if isinstance(each, Flow)]
    assert [each.available for each in said] == [3]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (Source(address="q"), "move"),
        (Source(address="q", distribution_mode="move"), "move"),
        (Source(address="q", distribution_mode="of-no-meaning"), "move"),
        (Source(dynamic=True), "move"),
        (Source(address="/log"), "copy"),
        (Source(address="/topics/t"), None),
        (Source(address="/topics/t", distribution_mode="copy"), "copy"),
        (Source(address="/topics/t", distribution_mode="of-no-meaning"), None),
    ],
)
def test_the_answer_names_the_distribution_mode(source: Source, expected: str | None) -> None:
    """A queue has two modes, so the answer says which one applies; an unknown one is not repeated (3.5.3)."""
    assert source_of(attached(Watching(), sends=False, source=source)).distribution_mode == expected


def test_a_copy_of_a_queue_says_so() -> None:
    """A browser learns that it gets copies (3.5.7)."""
    peer = Watching()
    sent(peer, Message(body=(Data(b"x"),)).encode())
    answer = source_of(attached(peer, sends=False, source=Source(address="q", distribution_mode="copy")))
    assert answer.distribution_mode == "copy"


@pytest.mark.parametrize("sends", [True, False])
def test_the_address_of_a_dynamic_terminus_is_ours(*, sends: bool) -> None:
    """A peer must name none there: one that it names is ignored, and the answer has that of the node (3.5.3, 3.5.4)."""
    peer = Watching()
    terms = (
        {"target": Target(address="mine", dynamic=True)} if sends else {"source": Source(address="mine", dynamic=True)}
    )
    attach = first_attach(attached(peer, sends=sends, **terms))
    terminus = attach.target if sends else attach.source
    assert isinstance(terminus, Source | Target)
    assert nodes(peer) == [terminus.address]
    assert peer.rig.loop.state.queue_named("mine") is None


@pytest.mark.parametrize("sends", [True, False])
def test_properties_of_a_node_that_is_not_dynamic_are_not_repeated(*, sends: bool) -> None:
    """dynamic-node-properties are unset where dynamic is false; the timeout of a terminus applies (3.5.3)."""
    fields = {"address": "q", "timeout": 60, "dynamic_node_properties": {Symbol("x"): 1}}
    terms = {"target": Target(**fields)} if sends else {"source": Source(**fields)}
    attach = first_attach(attached(Watching(), sends=sends, **terms))
    terminus = attach.target if sends else attach.source
    assert isinstance(terminus, Source | Target)
    assert (terminus.address, terminus.timeout) == ("q", 60)
    assert not terminus.dynamic_node_properties


def test_a_default_outcome_is_an_outcome() -> None:
    """Another state there cannot be decoded: the connection is closed (3.5.3)."""
    source = Source(address="q")
    body = Attach(name="l", handle=0, role=True, source=source, target=Target()).encode(full_width=True)
    wrong = Received(section_number=0, section_offset=0).encode()
    released = Released().encode()
    with_outcome = Attach(
        name="l", handle=0, role=True, source=Source(address="q", default_outcome=Released()), target=Target()
    ).encode(full_width=True)
    assert len(with_outcome) > len(body)
    assert with_outcome.count(released) == 1
    peer = Watching()
    # The list of the source is short, so only the two sizes around the outcome change.
    broken = _replaced(with_outcome, released, wrong)
    said = [each for each, _ in peer.give((8 + len(broken)).to_bytes(4, "big") + b"\2\0\0\0" + broken)]
    assert conditions(said) == [("close", "amqp:decode-error")]


def _replaced(attach: bytes, old: bytes, new: bytes) -> bytes:
    """Replace a value within the source of an attach whose lists are short."""
    at = attach.index(old)
    source = attach.index(b"\x00\x53\x28")
    grown = bytearray(attach[:at] + new + attach[at + len(old) :])
    assert (grown[3], grown[source + 3]) == (0xC0, 0xC0)
    grown[4] += len(new) - len(old)
    grown[source + 4] += len(new) - len(old)
    return bytes(grown)


FILTERS: dict[str, Any] = {
    "null": None,
    "undescribed": "a = 1",
    "unknown": Described(Symbol("x-unknown"), "a = 1"),
    "sql by name": Described(Symbol("amqp:sql-filter"), "a = 1"),
    "sql by code": Described(ULong(SQL_CODE), "a = 1"),
    "properties": Described(ULong(PROPERTIES_CODE), {Symbol("subject"): "s"}),
    "application properties": Described(Symbol("amqp:application-properties-filter"), {"a": 1}),
    "application properties by code": Described(ULong(APPLICATION_CODE), {"a": 1}),
}


@pytest.mark.parametrize("address", ["q", "/topics/t"])
@pytest.mark.parametrize("kind", FILTERS)
def test_a_filter_that_does_not_apply_is_not_repeated(kind: str, address: str) -> None:
    """The answer has the filters in place alone: a peer that needs the others detaches (3.5.3, 3.5.8; filtex)."""
    selector = Described(Symbol("apache.org:selector-filter:string"), "a = 1")
    source = Source(address=address, filter={Symbol("one"): FILTERS[kind], Symbol("two"): selector})
    answer = source_of(attached(Watching(Rig(fields_of=RoutingFields)), sends=False, source=source))
    assert answer.filter == {Symbol("two"): selector}
    alone = Source(address=address, filter={Symbol("one"): FILTERS[kind]})
    assert source_of(attached(Watching(), sends=False, source=alone)).filter is None


# Documents beside the specification


def opening() -> Open:
    """Return the broker's open."""
    found = Watching().opening[0]
    assert isinstance(found, Open)
    return found


def test_what_is_offered() -> None:
    """The anonymous terminus, shared subscriptions and sole connections; nothing else of the OASIS documents."""
    ours = opening()
    assert ours.offered_capabilities == (
        "ANONYMOUS-RELAY",
        "SHARED-SUBS",
        "DELAYED_DELIVERY",
        "sole-connection-for-container",
    )
    assert ours.desired_capabilities == ()
    assert ours.outgoing_locales == ours.incoming_locales == ()


def test_a_paired_link_is_answered_as_a_single_one() -> None:
    """Without the property in the answer the peer knows that its links are not paired (linkpair)."""
    peer = Watching(Rig(fields_of=RoutingFields))
    paired = {Symbol("paired"): True}
    up = first_attach(attached(peer, sends=True, name="pair", properties=paired))
    down = first_attach(attached(peer, sends=False, name="pair", handle=1, properties=paired))
    for answer in (up, down):
        assert "paired" not in (answer.properties or {})


def test_answers_come_to_the_link_that_a_request_names() -> None:
    """A client of paired links names the target of its receiver `$me`, and gets the answers there (linkpair)."""
    managing = Managing()
    managing.attach_replies("$me", 2, second=False)
    (answer,) = managing.ask(request("GET-TYPES", reply_to="$me"))
    assert answer.properties is not None
    assert answer.properties.to == "$me"


@pytest.mark.parametrize("to", [None, ""])
def test_a_message_without_an_address_is_rejected_on_the_anonymous_terminus(to: str | None) -> None:
    """The error is that of an attach without an address (anonterm, 2.2.2)."""
    peer = Watching(Rig(fields_of=RoutingFields))
    payloads = [
        Message(properties=Properties(to=to), body=(Data(b"x"),)).encode(),
        Message(body=(Data(b"x"),)).encode(),
    ]
    said = [each for each in sent(peer, *payloads, target=None) if isinstance(each, Disposition | Detach)]
    states = [each.state for each in said if isinstance(each, Disposition)]
    errors = [state.error for state in states if isinstance(state, Rejected)]
    assert len(errors) == len(states) == len(said)
    assert {str(error.condition) for error in errors if error is not None} == {"amqp:invalid-field"}


@pytest.mark.parametrize("to", ["/muxers/none", "/queues/" + "x" * 2000, "$temporary.5", "/log"])
def test_the_error_of_a_message_is_that_of_an_attach(to: str) -> None:
    """`rejected` has the condition with which a link to the address is refused (anonterm, 2.2.2)."""
    peer = Watching(Rig(fields_of=RoutingFields))
    ((_, refused),) = conditions(attached(peer, sends=True, name="direct", handle=3, target=Target(address=to)))
    payload = Message(properties=Properties(to=to), body=(Data(b"x"),)).encode()
    (said,) = [each for each in sent(peer, payload, target=None) if isinstance(each, Disposition)]
    assert isinstance(said.state, Rejected)
    assert said.state.error is not None
    assert said.state.error.condition == refused


def test_a_refused_sole_connection_failed_to_be_established() -> None:
    """The open that precedes the close says so, and has the property that Qpid JMS reads (soleconn, 3.2.1)."""
    first = Watching(container="me")
    second = Watching(first.rig, gateway=first.gateway, container=None)
    ours, close, *_ = second.say(Open(container_id="me", desired_capabilities=(SOLE_CONNECTION,)))
    assert isinstance(ours, Open)
    assert (ours.properties or {})["amqp:connection-establishment-failed"] is True
    assert isinstance(close, Close)


def test_a_connection_that_does_not_ask_is_not_compared() -> None:
    """Weak detection: several connections of a container, unless the newest desires to be the only one (soleconn)."""
    first = Watching(container="me")
    second = Watching(first.rig, gateway=first.gateway, container="me")
    assert not any(isinstance(said, Close) for said in second.opening)
    assert first.settle() == []
