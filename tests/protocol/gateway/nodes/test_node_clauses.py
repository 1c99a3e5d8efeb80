"""Clauses of AMQP Management and of claims-based security, by frames before the gateway."""

from ambermq.protocol.amqp10.message.message import AmqpValue, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Disposition,
    Properties,
    Target,
)
from ambermq.protocol.amqp10.types.values import Int, Symbol, ULong
from ambermq.protocol.gateway.nodes.management_node import ADDRESS
from tests.protocol.gateway.nodes.test_cbs_node import Claiming
from tests.protocol.gateway.nodes.test_management_node import Managing, answers, request
from tests.protocol.gateway.test_clauses import first_attach
from tests.protocol.gateway.test_specification import attached
from tests.protocol.watching import Watching


def test_a_correlation_id_goes_before_a_message_id() -> None:
    """The answer's correlation-id is the request's, or its message-id; its `to` is the reply-to (management)."""
    managing = Managing()
    for correlation_id, expected in ((None, "id"), (ULong(7), 7), (b"x", b"x")):
        message = decode_message(request("GET-TYPES"))
        assert message.properties is not None
        message.properties.correlation_id = correlation_id
        (answer,) = managing.ask(message.encode())
        assert answer.properties is not None
        assert (answer.properties.correlation_id, answer.properties.to) == (expected, "me")


def test_a_status_is_an_int_and_a_text() -> None:
    """statusCode is an int, statusDescription a string, errorCondition a symbol (management)."""
    managing = Managing()
    for operation, status in (("GET-TYPES", 200), ("DANCE", 501)):
        (answer,) = managing.ask(request(operation))
        told = answer.application_properties
        assert told is not None
        assert (type(told["statusCode"]), told["statusCode"]) == (Int, status)
        assert type(told["statusDescription"]) is str
        assert isinstance(told.get("errorCondition", Symbol("")), Symbol)


def test_a_request_without_an_operation_is_refused() -> None:
    """`operation` is mandatory: without it 501, and an unknown type is 400 (management)."""
    managing = Managing()
    assert managing.status(operation="", name="q") == 501
    assert managing.status(operation="READ", type="org.none", name="q") == 400


def test_operations_of_other_nodes_are_not_implemented() -> None:
    """There are no other nodes to register (management)."""
    managing = Managing()
    for operation in ("REGISTER", "DEREGISTER", "GET-MGMT-NODES", "GET-ANNOTATIONS"):
        assert managing.status(operation=operation, address="amqp://other/$management") == 501


def test_locales_are_ignored() -> None:
    """A request for another language gets the same text (management)."""
    managing = Managing()
    told = [managing.ask(request("DANCE", **asked))[0].application_properties for asked in ({}, {"locales": "de-DE"})]
    assert told[0] == told[1]


def test_an_answer_with_nowhere_to_go_is_dropped() -> None:
    """A request without a reply-to is carried out and accepted; no link gets its answer (management)."""
    managing = Managing()
    said = managing.give(managing.frame(request("CREATE", reply_to=None, name="quiet")))
    assert answers(said) == []
    assert [each.state for each, _ in said if isinstance(each, Disposition)] == [Accepted()]
    assert managing.rig.loop.state.queue_named("quiet") is not None


def test_a_query_is_answered_by_names_and_rows() -> None:
    """attributeNames and results, one row an object, each in the order of the names (management)."""
    managing = Managing()
    assert managing.status(operation="CREATE", name="q") == 201
    body = {"attributeNames": ["name", "available"]}
    (answer,) = managing.ask(request("QUERY", entityType="org.ambermq.queue", body=body))
    told = answer.body[0].value
    assert told["attributeNames"] == ["name", "available"]
    assert ["q", 0] in told["results"]


def test_a_query_without_a_type_is_about_queues() -> None:
    """The types have different attributes, so a table of all objects has no meaning (management)."""
    managing = Managing()
    assert managing.status(operation="CREATE", name="q") == 201
    (plain,), (typed,) = (
        managing.ask(request("QUERY", **asked)) for asked in ({}, {"entityType": "org.ambermq.queue"})
    )
    assert plain.body == typed.body
    assert "identity" not in plain.body[0].value["attributeNames"]


def test_the_node_of_management_takes_what_is_sent_to_it() -> None:
    """The answers to attaches have its address, and credit follows (management)."""
    managing = Managing()
    assert isinstance(managing.attached.target, Target)
    assert managing.attached.target.address == ADDRESS


def test_a_status_of_claims_is_an_int() -> None:
    """status-code is an int and status-description a string, for every operation (cbs)."""
    claiming = Claiming()
    for operation in ("put-token", "set-token", "delete-token"):
        payload = Message(
            properties=Properties(message_id="id"),
            application_properties={"operation": operation},
            body=(AmqpValue("t"),),
        ).encode()
        (answer,) = answers(claiming.put(payload))
        told = answer.application_properties
        assert told is not None
        assert (type(told["status-code"]), type(told["status-description"])) == (Int, str)
        assert (told["status-code"] == 202) is (operation == "put-token")
        assert answer.properties is not None
        assert answer.properties.correlation_id == "id"


def test_links_need_no_token() -> None:
    """The broker grants what SASL grants, before any token (cbs)."""
    peer = Watching()
    assert first_attach(attached(peer, sends=True)).target is not None
