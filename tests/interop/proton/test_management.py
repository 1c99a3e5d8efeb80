"""`$management` as any client has it: proton makes, asks and takes down wiring, and messages go where it says."""

from typing import Any

from proton import Delivery, Message

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


def test_what_is_there_is_updated_and_messages_fare_by_it_at_once(connect: Connect, queue: str) -> None:
    """A LOSSY muxer that lets everything pass lets nothing pass any more; a queue takes fewer messages, and refuses."""
    peer = connect()
    manager = Manager(peer)
    assert _status(manager.ask("CREATE", queue)) == 201
    assert _status(manager.ask("CREATE", "net", {"class": "lossy"}, type=_MUXER)) == 201
    assert _status(manager.ask("CREATE", None, {"muxer": "net", "member": queue}, type=_ATTACHMENT)) == 201
    sender = connect().sender("/muxers/net")
    sender.send(Message("before"))
    told: Any = manager.ask("UPDATE", "net", {"probability": 0.0, "seed": 7}, type=_MUXER)
    assert (_status(told), told.body["probability"], told.body["seed"], told.body["draws"]) == (200, 0.0, 7, 1)
    sender.send(Message("lost"))
    assert _status(manager.ask("UPDATE", "net", {"probability": 1.0}, type=_MUXER)) == 200
    sender.send(Message("after"))
    told = manager.ask("UPDATE", queue, {"messages_max": 1})
    assert (_status(told), told.body["messages_max"], told.body["available"]) == (200, 1, 2)
    (refused,) = connect().sender(queue).send(Message("refused"))
    assert refused.remote_state == Delivery.REJECTED
    got = [one.message.body for one in peer.receiver(queue, credit=5).wait(2)]
    assert got == ["before", "after"]
    assert _status(manager.ask("UPDATE", "net", {"class": "simple"}, type=_MUXER)) == 409
    assert _status(manager.ask("UPDATE", "1", {}, type=_ATTACHMENT)) == 501


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
    assert operations == {_MUXER: ["CREATE", "DELETE", "QUERY", "READ", "UPDATE"]}
    assert list(_rows(manager, _MUXER)[0]) == attributes[_MUXER]
