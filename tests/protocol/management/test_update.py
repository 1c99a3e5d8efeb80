"""UPDATE over the management node, in memory: what changes, what does not, and what is refused."""

from typing import Any

import pytest

from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.types.values import Symbol, Timestamp, ULong
from ambermq.protocol.management.access.users import USER_TYPE
from ambermq.protocol.management.operations import KINDS, NODE_TYPE, operation_of
from tests.protocol.gateway.nodes.test_management_node import Managing, request
from tests.protocol.management.test_wiring import MUXER, ask, wired

QUEUE = "org.ambermq.queue"
REPLACEMENTS = {name: kind.replacement for name, kind in KINDS.items() if kind.replacement}


@pytest.mark.parametrize(
    ("kind", "name", "body", "changed"),
    [
        (QUEUE, "q", {"messages_max": 9}, {"messages_max": 9}),
        (QUEUE, "/queues/q", {"messages_max": ULong(9), "template": "normal"}, {"messages_max": 9}),
        (MUXER, "lossy", {"probability": 0.25}, {"probability": 0.25}),
        (MUXER, "lossy", {"probability": 1}, {"probability": 1.0}),
        (MUXER, "lossy", {"seed": -3}, {"seed": -3}),
        (MUXER, "lossy", {"class": Symbol("lossy"), "probability": 0, "seed": 3}, {"probability": 0.0, "seed": 3}),
    ],
)
def test_an_update_is_answered_as_a_read(kind: str, name: str, body: dict[str, Any], changed: dict[str, Any]) -> None:
    """200, all attributes as they are now, and that it was one; READ says the same, the rest is what it was."""
    managing = wired()
    before = ask(managing, "READ", type=kind, name=name)[2]
    told = ask(managing, "UPDATE", type=kind, name=name, body=body)
    assert told == (200, "OK", before | changed | {"updated": True})
    assert ask(managing, "READ", type=kind, name=name)[2] == before | changed


@pytest.mark.parametrize(
    ("kind", "name", "body"),
    [
        (QUEUE, "q", {}),
        (QUEUE, "q", {"messages_max": 0, "template": "normal"}),
        (QUEUE, "q", {"messages_max": None, "template": None}),
        (MUXER, "lossy", {"probability": 0.5, "seed": 7, "class": "lossy", "separator": None}),
        (MUXER, "lossy", {"probability": None, "seed": None}),
        (MUXER, "wild-destination", {"separator": "."}),
        (MUXER, "simple", {"class": "simple", "probability": None, "seed": None}),
        (MUXER, "TOPIC", {}),
    ],
)
def test_what_changes_nothing_is_said_not_to_and_not_written(kind: str, name: str, body: dict[str, Any]) -> None:
    """Null is as left out."""
    managing = wired()
    status, description, attributes = ask(managing, "READ", type=kind, name=name)
    end = managing.rig.loop.log.draft.next_offset
    told = ask(managing, "UPDATE", type=kind, name=name, body=body)
    assert told == (status, description, attributes | {"updated": False})
    assert managing.rig.loop.log.draft.next_offset == end


@pytest.mark.parametrize(
    ("kind", "name", "body", "status", "words"),
    [
        (QUEUE, "none", {"messages_max": 9}, 404, "no queue 'none'"),
        (QUEUE, None, {"messages_max": 9}, 400, "must be the name of the queue"),
        (QUEUE, "q", {"messages_max": -1}, 400, "a whole number from 0"),
        (QUEUE, "q", {"messages_max": "9"}, 400, "a whole number from 0"),
        (QUEUE, "q", {"messages_max": Timestamp(9)}, 400, "a whole number from 0"),
        (QUEUE, "q", {"messages_max": True}, 400, "a whole number from 0"),
        (
            QUEUE,
            "q",
            {"available": 0, "id": 1},
            400,
            ", template, found available, id: leave out",
        ),
        (QUEUE, "q", {"name": "q"}, 400, "found name"),
        (QUEUE, "q", {"colour": "red"}, 400, "found colour"),
        (QUEUE, "q", {"template": 1}, 400, "must be the name of a template"),
        (QUEUE, "q", {"template": "temporary", "messages_max": 9}, 409, "created from template 'normal'"),
        (MUXER, "none", {"seed": 1}, 404, "no muxer 'none'"),
        (MUXER, "lossy", {"draws": 0}, 400, "sets class, separator, probability, seed, found draws"),
        (MUXER, "lossy", {"probability": 2}, 400, "from 0 to 1"),
        (MUXER, "lossy", {"probability": "x"}, 400, "'probability' must be a number"),
        (MUXER, "lossy", {"probability": Timestamp(1)}, 400, "'probability' must be a number"),
        (MUXER, "lossy", {"probability": True}, 400, "'probability' must be a number"),
        (MUXER, "lossy", {"seed": 0.5}, 400, "'seed' must be a whole number"),
        (MUXER, "lossy", {"seed": Timestamp(5)}, 400, "'seed' must be a whole number"),
        (MUXER, "lossy", {"seed": False}, 400, "'seed' must be a whole number"),
        (MUXER, "lossy", {"seed": ULong(2**64 - 1)}, 400, "64 bits"),
        (MUXER, "lossy", {"separator": "/"}, 400, "has no separator"),
        (MUXER, "lossy", {"class": "simple", "seed": 1}, 409, "is of class lossy, which does not change"),
        (MUXER, "lossy", {"class": "fast"}, 400, "unknown class 'fast' of muxer"),
        (MUXER, "simple", {"probability": 0.5}, 400, "has no probability and no seed"),
        (MUXER, "wild-property", {"separator": "/"}, 409, "asks for separator '/': declare another muxer"),
        *((kind, "1", {}, 501, why) for kind, why in REPLACEMENTS.items()),
        ("org.none", "q", {}, 400, "unknown type 'org.none'"),
    ],
)
def test_what_cannot_be_is_answered_and_nothing_happens(
    kind: str, name: str | None, body: dict[str, Any], status: int, words: str
) -> None:
    """With a status, the condition that it stands for, and one sentence that says why and what is done instead."""
    managing = wired()
    before = managing.rig.loop.log.draft.next_offset
    asked = {} if name is None else {"name": name}
    (answer,) = managing.ask(request("UPDATE", type=kind, body=body, **asked))
    told = answer.application_properties
    assert told is not None
    assert (told["statusCode"], words in told["statusDescription"]) == (status, True), told
    conditions = {400: "invalid-field", 404: "not-found", 409: "precondition-failed", 501: "not-implemented"}
    assert told["errorCondition"] == f"amqp:{conditions[status]}"
    assert managing.rig.loop.log.draft.next_offset == before


def test_every_type_knows_update_or_what_is_done_instead() -> None:
    """One of both, and GET-OPERATIONS tells."""
    operations = ask(Managing(), "GET-OPERATIONS")[2]
    assert {kind for kind in KINDS if "UPDATE" in operations[kind]} == {QUEUE, MUXER, USER_TYPE}
    assert set(REPLACEMENTS) == set(KINDS) - {QUEUE, MUXER, USER_TYPE}


def test_the_node_itself_knows_no_update() -> None:
    """It is a type that the node tells of, so the operation is what is unknown."""
    with pytest.raises(Refused, match=r"unknown operation 'UPDATE' of the node itself: expected GET-A") as refusal:
        operation_of("UPDATE", NODE_TYPE)
    assert refusal.value.condition == "amqp:not-implemented"


def test_an_answer_waits_for_the_log() -> None:
    """What it says is durable when it leaves: the event stands below the durable end."""
    managing = wired()
    assert managing.status(operation="UPDATE", name="q", body={"messages_max": 5}) == 200
    log = managing.rig.loop.log
    assert log.durable_end == log.draft.next_offset
