"""FIND, MOVE, COPY, REDRIVE and REMOVE over the management node, in memory."""

from typing import Any

import pytest

from ambermq.protocol.amqp10.types.values import Timestamp, ULong
from tests.protocol.gateway.nodes.test_management_node import request
from tests.protocol.management.test_wiring import ask, wired

QUEUE = "org.ambermq.queue"


def told(operation: str, body: dict[str, Any], name: str = "q") -> tuple[int, str]:
    """Return status and description of an answer."""
    managing = wired()
    (answer,) = managing.ask(request(operation, type=QUEUE, name=name, body=body))
    properties = answer.application_properties
    assert properties is not None
    return properties["statusCode"], properties["statusDescription"]


@pytest.mark.parametrize(
    ("operation", "body", "words"),
    [
        ("FIND", {"colour": "red"}, "no attribute colour"),
        ("FIND", {"reason": "bored"}, "'reason' must be one of length, delivery-count, expired, rejected"),
        ("FIND", {"reason": 1}, "'reason' must be a text"),
        ("FIND", {"since": 1}, "'since' must be a timestamp"),
        ("FIND", {"selector": "a ="}, "the selector 'a ='"),
        ("FIND", {"after": -1}, "'after' must be a number from 0"),
        ("FIND", {"read": 1}, "'read' must be true or false"),
        ("MOVE", {"offsets": [1]}, "'to' must be the address of a queue"),
        ("COPY", {"offsets": [1]}, "'to' must be the address of a queue"),
        ("MOVE", {"to": "r"}, "'offsets' must be a list of offsets"),
        ("MOVE", {"to": "r", "offsets": ["1"]}, "'offsets' must be a list of offsets"),
        ("MOVE", {"to": "r", "offsets": [True]}, "'offsets' must be a list of offsets"),
        ("MOVE", {"to": "r", "offsets": [-1]}, "'offsets' must be a list of offsets"),
        ("MOVE", {"to": "r", "offsets": list(range(1001))}, "at most 1000 messages, found 1001"),
        ("MOVE", {"offsets": [], "to": "r", "dry_run": 1}, "'dry_run' must be true or false"),
        ("MOVE", {"offsets": [], "to": "r", "taken": b"x"}, "'taken' goes with 'dry_run' = true alone"),
        ("MOVE", {"offsets": [], "to": "r", "dry_run": True, "taken": "x"}, "'taken' must be a binary value"),
        ("MOVE", {"offsets": [], "to": "r", "dry_run": True, "taken": b"x"}, "no answer of a dry run: it has 1 bytes"),
        ("MOVE", {"offsets": [], "to": "r", "dry_run": True, "taken": bytes(24024)}, "no answer of a dry run"),
        ("REMOVE", {"offsets": [1], "to": "r"}, "no attribute to"),
        ("REDRIVE", {"offsets": [Timestamp(1)]}, "'offsets' must be a list of offsets"),
        ("MOVE", {"offsets": [], "to": "x", "edit": {}}, "no attribute edit"),
        ("REDRIVE", {"offsets": [], "edit": 1}, "'edit' must be a map"),
        ("REDRIVE", {"offsets": [], "edit": {"set": 1}}, "'set' must be a map"),
        ("REDRIVE", {"offsets": [], "edit": {"unset": ["a", 1]}}, "'unset' must be a list of fields"),
        ("REDRIVE", {"offsets": [], "edit": {"set": {"a": "b"}}}, "'id_prefix', or 'keep_id'"),
        ("REDRIVE", {"offsets": [], "edit": {"keep_id": True, "id_prefix": "p"}}, "'id_prefix', or 'keep_id'"),
        ("REDRIVE", {"offsets": [], "edit": {"keep_id": True, "set": {"header.ttl": 1}}}, "cannot be edited"),
        ("REDRIVE", {"offsets": [], "edit": {"colour": 1}}, "no attribute colour"),
    ],
)
def test_a_bad_request_is_refused_in_one_sentence(operation: str, body: dict[str, Any], words: str) -> None:
    """With 400, and what was expected."""
    if operation == "MOVE" and body.get("to") == "r":
        body = {**body, "to": "q2"}
        managing = wired()
        ask(managing, "CREATE", type=QUEUE, name="q2")
        (answer,) = managing.ask(request(operation, type=QUEUE, name="q", body=body))
        properties = answer.application_properties
        assert properties is not None
        assert (properties["statusCode"], words in properties["statusDescription"]) == (400, True), properties
        return
    status, description = told(operation, body)
    assert (status, words in description) == (400, True), description


def test_an_unknown_queue_is_not_found() -> None:
    """With 404, as everywhere."""
    for operation, body in (("FIND", {}), ("REMOVE", {"offsets": []}), ("MOVE", {"offsets": [], "to": "q"})):
        assert told(operation, body, "none")[0] == 404


def test_an_empty_queue_has_an_end() -> None:
    """Nothing is found, and nothing moves."""
    managing = wired()
    status, _, page = ask(managing, "FIND", type=QUEUE, name="q", body={"count": ULong(5), "read": True})
    assert (status, page["messages"], page["is_end"], page["is_reading"]) == (200, [], True, False)
    assert ask(managing, "REMOVE", type=QUEUE, name="q", body={"offsets": [ULong(7)]})[2] == {
        "removed": 0,
        "acquired": 0,
        "gone": 1,
    }
