"""`$management` as any client has it: proton makes, asks and takes down wiring, and messages go where it says."""

from typing import Any

from proton import Message

from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager

_MUXER, _ATTACHMENT = "org.ambermq.muxer", "org.ambermq.attachment"


def _status(answer: Message) -> int:
    assert answer.properties is not None
    return int(answer.properties["statusCode"])


def _rows(manager: Manager, kind: str, **asked: Any) -> list[dict[str, Any]]:
    body: Any = manager.ask("QUERY", entityType=kind, **asked).body
    return [dict(zip(body["attributeNames"], row, strict=True)) for row in body["results"]]


def test_wiring_is_made_and_messages_follow_it(connect: Connect, queue: str) -> None:
    """A PROPERTY muxer by colour before a queue; what matches arrives, ROUTE says so, and afterwards all is gone."""
    peer = connect()
    manager = Manager(peer)
    assert _status(manager.ask("CREATE", queue)) == 201
    assert _status(manager.ask("CREATE", "colours", {"class": "property"}, type=_MUXER)) == 201
    said = {"muxer": "colours", "member": queue, "conditions": [{"name": "colour", "value": "red"}]}
    assert _status(manager.ask("CREATE", None, said, type=_ATTACHMENT)) == 201
    (row,) = _rows(manager, _ATTACHMENT, muxer="colours")
    assert (row["member"], row["conditions"]) == (queue, said["conditions"])
    told: Any = manager.ask("ROUTE", "/muxers/colours", {"colour": "red"}).body
    assert (told["queues"], told["hops"][0]["muxer"]) == ([queue], "colours")
    blue, red = (Message(colour, properties={"colour": colour}) for colour in ("blue", "red"))
    connect().sender("/muxers/colours").send(blue, red)
    (got,) = peer.receiver(queue, credit=5).wait(1)
    assert got.message.body == "red"
    assert _status(manager.ask("DELETE", row["name"], type=_ATTACHMENT)) == 204
    assert _status(manager.ask("DELETE", "colours", type=_MUXER)) == 204
    assert "colours" not in [row["name"] for row in _rows(manager, _MUXER)]


def test_a_refusal_says_why(connect: Connect) -> None:
    """By status, condition and description."""
    manager = Manager(connect())
    assert _status(manager.ask("CREATE", "chosen", {"class": "selector"}, type=_MUXER)) == 201
    assert _status(manager.ask("CREATE", "some-queue")) == 201
    said = {"muxer": "chosen", "member": "some-queue", "selector": "size >"}
    answer = manager.ask("CREATE", None, said, type=_ATTACHMENT)
    assert answer.properties is not None
    assert (answer.properties["statusCode"], answer.properties["errorCondition"]) == (400, "amqp:invalid-field")
    assert "character" in answer.properties["statusDescription"]


def test_the_node_tells_of_itself(connect: Connect) -> None:
    """Types, attributes and operations."""
    manager = Manager(connect())
    types: Any = manager.ask("GET-TYPES").body
    operations: Any = manager.ask("GET-OPERATIONS", entityType=_MUXER).body
    attributes: Any = manager.ask("GET-ATTRIBUTES", entityType=_MUXER).body
    assert {_MUXER, _ATTACHMENT, "org.ambermq.queue"} <= set(types)
    assert operations == {_MUXER: ["CREATE", "DELETE", "QUERY", "READ"]}
    assert list(_rows(manager, _MUXER)[0]) == attributes[_MUXER]
