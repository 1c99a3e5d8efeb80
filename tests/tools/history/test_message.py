"""`ambermq history message`: the story of a message, from a broker that was stopped or runs."""

import json
import select
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    DeclareMuxer,
    DetachConsumer,
    DetachMember,
    Publish,
    PurgeQueue,
    Settle,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.loop.recovery import recover
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.message.publish_outline import message_id_hash
from ambermq.protocol.amqp10.performatives.classes import Properties
from ambermq.protocol.amqp10.types.values import ULong
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.tools.messages.message_ids import MessageId
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

NOW_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
FAILED = Outcome(OutcomeKind.MODIFIED, delivery_failed=True)
REJECTED = Outcome(OutcomeKind.REJECTED, condition="amqp:not-allowed", description="too heavy")


class Shop:
    """A broker without sockets: one queue, one producer, a consumer at a time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now_us = NOW_US
        self.start()

    def start(self) -> None:
        """Recover and let the producer come."""
        recovery = Recovery.open(DiskStorage(), str(self.directory), LogConfig(ballast_bytes=0), self.now_us)
        self.loop = recover(recovery, EngineConfig(chunk_bytes=5000), self.now_us, fields_of=RoutingFields)
        self.do(AttachProducer("key", "orders", "seller", "out"))

    def do(self, *commands: Any) -> None:
        """Submit commands a second later."""
        self.now_us += SECOND_US
        for command in commands:
            self.loop.submit(command)
        self.loop.step(self.now_us)
        self.loop.log.request_sync()
        while self.loop.durable_end < self.loop.log.log_end:
            select.select([self.loop.fileno()], [], [])
            self.loop.completed(self.now_us)

    def publish(self, *message_ids: MessageId | None, size: int = 10) -> None:
        """Send a run of messages with these ids."""
        bodies = [
            Message(properties=Properties(message_id=one), body=(Data(bytes(size)),)).encode() for one in message_ids
        ]
        (producer,) = self.loop.state.producers
        hashes = [message_id_hash(one) for one in message_ids]
        self.do(Publish("link", producer, 0, bodies, hashes, sum(map(len, bodies))))

    def consumer(self, credit: int) -> int:
        """Attach a consumer and dispatch messages to it."""
        self.do(AttachConsumer("key", "orders", "shipper", "in"))
        consumer = max(self.loop.state.consumers)
        self.loop.set_credit(consumer, credit)
        self.do()
        return consumer

    def settle(self, consumer: int, outcome: Outcome) -> None:
        """Settle all that a consumer has acquired."""
        (queue,) = self.loop.state.queues.values()
        self.do(Settle(consumer, pack_words(list(queue.held_by(consumer))), outcome))

    def close(self) -> None:
        """End the broker."""
        self.loop.log.close()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "data")


def story_of(run: Run, shop: Shop, message_id: str, *options: str) -> list[dict[str, Any]]:
    """What the command says as JSON."""
    result = run("history", "message", message_id, "--data", shop.directory, "--output", "json", *options)
    assert result.exit_code == ExitCode.OK, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def what(story: dict[str, Any]) -> list[str]:
    """What happened, in order."""
    return [event["what"] for event in story["events"]]


@pytest.mark.parametrize("address", ["/muxers/kinds/order", "/muxers/kinds", ""])
def test_a_story_tells_every_muxer_on_the_way(run: Run, shop: Shop, address: str) -> None:
    """With what each passed it on by, in the wiring of then; whether its link or the message said the address."""
    shop.do(DeclareMuxer("key", "kinds", MuxerKind.DESTINATION), DeclareMuxer("key", "ids", MuxerKind.PROPERTY))
    shop.do(AttachMember("key", "kinds", "muxer:ids", "order"))
    shop.do(AttachMember("key", "ids", "orders", (Condition("properties.message-id", True, "one"),)))
    shop.do(AttachProducer("key", address, "other", "out"))
    to = "/muxers/kinds/order" if not address else None
    body = Message(properties=Properties(message_id="one", to=to, subject="order"), body=(Data(b"x"),)).encode()
    shop.do(Publish("link", max(shop.loop.state.producers), 0, [body], [message_id_hash("one")], len(body)))
    muxers = shop.loop.state.muxers
    kinds, ids = (max(muxers[shop.loop.state.muxer_names[name]].attachments) for name in ("kinds", "ids"))
    shop.do(DetachMember("key", "kinds", "muxer:ids", "order"))
    shop.close()
    (story,) = story_of(run, shop, "one")
    routed = story["events"][1]
    assert routed["words"] == (
        "by kinds for 'order', then ids for 'properties.message-id=one', "
        f"where the queue is attached since offset {ids}"
    )
    assert [(one["muxer"], one["attached"]) for one in routed["way"]] == [("kinds", kinds), ("ids", ids)]


def test_a_story_has_every_turn_of_a_life(run: Run, shop: Shop) -> None:
    """Released, modified, lost with its consumer and with the broker, and rejected at last: in order, with counts."""
    shop.publish("one")
    first = shop.consumer(1)
    shop.settle(first, RELEASED)
    shop.loop.set_credit(first, 1)
    shop.do()
    shop.settle(first, FAILED)
    shop.do(DetachConsumer(first))
    second = shop.consumer(1)
    shop.do(DetachConsumer(second))
    shop.consumer(1)
    shop.close()
    shop.start()
    last = shop.consumer(1)
    shop.settle(last, REJECTED)
    shop.close()
    (story,) = story_of(run, shop, "one")
    turns = ["acquired", "released", "acquired", "modified", "acquired", "returned", "acquired", "returned", "acquired"]
    assert what(story) == ["published", "routed", *turns, "rejected"]
    events = story["events"]
    assert [event["delivery_count"] for event in events] == [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3]
    assert [event["attempt"] for event in events] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert events[0]["by"]["container"] == "seller"
    assert (events[1]["queue"], events[1]["muxer"]) == ("orders", "QUEUE")
    assert events[2]["by"] == {"id": first, "container": "shipper", "link": "in"}
    assert events[2]["after_us"] == 2 * SECOND_US
    assert "epoch 2" in events[9]["words"]
    assert "amqp:not-allowed, too heavy" in events[-1]["words"]
    (place,) = story["now"]
    assert (place["state"], place["how"], place["deliveries"]) == ("archived", "rejected", 5)


def test_a_table_tells_the_same_to_people(run: Run, shop: Shop) -> None:
    """A line a turn with time and duration, then where it is."""
    shop.publish("one")
    shop.settle(shop.consumer(1), ACCEPTED)
    shop.close()
    lines = run("history", "message", "one", "--data", shop.directory).stdout.splitlines()
    assert lines[0].startswith("message one, offset ")
    assert lines[1].split() == ["time", "after", "what", "queue", "user", "offset", "detail"]
    assert [line.split()[1] for line in lines[2:3]] == ["published"]
    assert "seller/out for 'orders'" in lines[2]
    assert "+2.00 s  acquired" in lines[4]
    assert "+1.00 s  accepted" in lines[5]
    assert lines[6].startswith("now gone from 'orders': accepted at ")


@pytest.mark.parametrize(
    ("message_id", "text"),
    [
        (ULong(42), "42"),
        (UUID(int=7), str(UUID(int=7))),
        (b"\xff\x00", "0xff00"),
        (b"raw", "raw"),
        ("two words", "two words"),
    ],
)
def test_an_id_of_any_type_is_found(run: Run, shop: Shop, message_id: MessageId, text: str) -> None:
    """A text means every id that it can be written for."""
    shop.publish("other", message_id)
    shop.close()
    (story,) = story_of(run, shop, text)
    assert str(story["message_id"]) == text


def test_all_messages_with_an_id_are_told_of(run: Run, shop: Shop) -> None:
    """The newest last; --limit leaves the oldest out and says so."""
    for _ in range(3):
        shop.publish("same", "other")
    shop.do(PurgeQueue("key", "orders"))
    shop.publish("same")
    shop.close()
    stories = story_of(run, shop, "same")
    assert [story["offset"] for story in stories] == sorted(story["offset"] for story in stories)
    assert [story["now"][0]["how"] for story in stories] == ["purged", "purged", "purged", "published"]
    assert [story["offset"] for story in story_of(run, shop, "same", "--limit", "2")] == [
        story["offset"] for story in stories[2:]
    ]
    shown = run("history", "message", "same", "--limit", "1", "--data", shop.directory).stdout
    assert shown.startswith("3 earlier messages")


def test_a_message_is_found_by_its_offset(run: Run, shop: Shop) -> None:
    """Also one without an id."""
    shop.publish("one", None)
    shop.close()
    (one,) = story_of(run, shop, "one")
    (other,) = story_of(run, shop, f"offset:{one['offset'] + 1}")
    assert (other["message_id"], what(other)) == (None, ["published", "routed"])
    assert other["now"][0]["state"] == "available"


def test_a_large_message_is_found_by_its_first_piece(run: Run, shop: Shop) -> None:
    """Its id stands in a chunk record, its story begins with the publish record."""
    shop.publish("large", size=20_000)
    shop.close()
    (story,) = story_of(run, shop, "large")
    assert "in 5 pieces" in story["events"][0]["words"]


@pytest.mark.parametrize("name", ["unknown", "offset:0", "offset:99999999"])
def test_an_unknown_message_is_not_found(run: Run, shop: Shop, name: str) -> None:
    """One line that names it, and the exit code of what is not there."""
    shop.publish("one")
    shop.close()
    result = run("history", "message", name, "--data", shop.directory)
    assert result.exit_code == ExitCode.NOT_FOUND
    assert result.stderr.count("\n") == 1
    assert repr(name) in result.stderr
