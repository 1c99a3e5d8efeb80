"""Snapshots over the management node: in memory, a peer of frames before an engine on a simulated disk."""

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.management.snapshots import SNAPSHOT_OPERATIONS, SNAPSHOT_TYPE
from tests.protocol.amqp_values import values
from tests.protocol.gateway.nodes.test_management_node import Managing, answers, request


class Snapping(Managing):
    """A peer that asks about snapshots, and waits for lanes that hand over to each other."""

    def asked(self, operation: str, body: Any = None, **asked: Any) -> tuple[int, dict[str, Any]]:
        """Status code and body of the answer; those to requests before it may come with it."""
        message_id = str(uuid4())
        kind = "entityType" if operation == "QUERY" else "type"
        found = self.ask(request(operation, body=body, message_id=message_id, **{kind: SNAPSHOT_TYPE}, **asked))
        for _ in range(5):
            self.gateway.carry_out(self.rig.completed())
            found += answers(self.give(b""))
        (answer,) = [each for each in found if each.properties and each.properties.correlation_id == message_id]
        return _status(answer), answer.body[0].value  # type: ignore[return-value]


def _status(answer: Message) -> int:
    assert answer.application_properties is not None
    return int(answer.application_properties["statusCode"])


def test_one_is_created_read_listed_and_deleted() -> None:
    """CREATE answers 201 when it is there, READ and QUERY tell the same of it, DELETE answers 204."""
    snapping = Snapping()
    status, created = snapping.asked("CREATE", name="nightly")
    assert (status, created["name"], created["is_automatic"]) == (201, "nightly", False)
    assert created.pop("room") > 0
    assert [one.name for one in snapping.rig.loop.log.manifest.snapshots] == ["nightly"]
    assert snapping.asked("READ", name="nightly") == (200, created)
    status, page = snapping.asked("QUERY")
    assert (status, page["total"]) == (200, 1)
    assert dict(zip(page["attributeNames"], page["results"][0], strict=True)) == created
    assert snapping.asked("QUERY", offset=1) == (200, {**page, "results": []})
    assert snapping.asked("DELETE", name="nightly") == (204, created)
    assert snapping.asked("READ", name="nightly")[0] == 404


def test_a_name_is_found_where_none_is_given_and_refused_where_it_is_had() -> None:
    """A duplicate is 409, an empty or missing one where it is needed 400, an unknown one 404."""
    snapping = Snapping()
    assert snapping.asked("CREATE")[0] == 201
    assert snapping.asked("CREATE", name="x")[0] == 201
    assert snapping.asked("CREATE", name="x")[0] == 409
    assert snapping.asked("CREATE", name="")[0] == 400
    assert snapping.asked("READ")[0] == 400
    assert snapping.asked("DELETE", name="y")[0] == 404


def test_a_request_without_a_wait_is_answered_at_once() -> None:
    """`wait` false: the answer leaves before the file is there."""
    snapping = Snapping()
    (answer,) = snapping.ask(request("CREATE", body={"wait": False}, type=SNAPSHOT_TYPE, name="x"))
    assert _status(answer) == 201
    assert snapping.rig.loop.log.manifest.snapshots == ()


@pytest.mark.parametrize("body", [{"wait": 1}, {"colour": "red"}])
def test_what_is_not_understood_is_400(body: dict[str, Any]) -> None:
    """Nothing is ignored."""
    assert Snapping().asked("CREATE", body=body, name="x")[0] == 400


def test_what_queues_alone_can_do_is_501() -> None:
    """A snapshot cannot be purged."""
    assert Snapping().asked("PURGE", name="x")[0] == 501


def test_a_connection_that_is_gone_gets_no_answer_and_costs_nothing() -> None:
    """The snapshot is taken all the same."""
    snapping = Snapping()
    snapping.give(snapping.frame(request("CREATE", type=SNAPSHOT_TYPE, name="x")))
    snapping.peer.lost()
    for _ in range(5):
        snapping.gateway.carry_out(snapping.rig.completed())
    assert [one.name for one in snapping.rig.loop.log.manifest.snapshots] == ["x"]
    assert snapping.gateway.mistakes == []


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(SNAPSHOT_OPERATIONS)),
    st.dictionaries(st.sampled_from(["name", "offset", "count"]), values, max_size=3),
    st.dictionaries(st.just("wait"), values, max_size=1) | values,
)
def test_no_request_raises(operation: str, asked: dict[str, Any], body: Any) -> None:
    """Whatever stands in a request, it is answered, and no mistake of ours comes of it."""
    snapping = Snapping()
    told = {"operation": operation, "type": SNAPSHOT_TYPE, "entityType": SNAPSHOT_TYPE, **asked}
    snapping.give(snapping.frame(request(body=body, **told)))
    assert snapping.asked("READ", name="missing of all")[0] == 404
    assert snapping.gateway.mistakes == []
