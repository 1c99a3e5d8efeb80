"""The node NAME/$management and large messages: the beginning is peeked, the whole is received, or stays deferred."""

import random

import pytest

from ambermq.engine.commands import DeclareQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Header, Source, Target, Transfer
from ambermq.protocol.amqp10.types.values import Array
from ambermq.protocol.gateway.nodes import entity_node
from tests.engine.rig import Rig
from tests.protocol.gateway.nodes.test_entity_node import NODE, Client, annotations_of, answers, request, texts_of
from tests.protocol.peers import Wire

PIECE, FRAME = 1000, 300
TOO_LARGE = (413, "amqp:link:message-size-exceeded")
RECEIVE = "receive-by-sequence-number"


def large(number: int, size: int) -> bytes:
    """A message whose body differs by number."""
    body = (Data(random.Random(number).randbytes(size)),)
    return Message(header=Header(durable=True), application_properties={"n": number}, body=body).encode()


def client_with(*messages: bytes, answer_bytes_max: int | None = None) -> Client:
    """Return a client of the queue with messages, which are stored in pieces where they are large."""
    rig = Rig(config=EngineConfig(chunk_bytes=PIECE))
    rig.do(DeclareQueue("key", "q", Settings(lock_ms=60_000)))
    client = Client(rig, answer_bytes_max=answer_bytes_max)
    target = Target(address="q")
    client.say(Attach(name="s", handle=3, role=False, source=Source(), target=target, initial_delivery_count=0))
    for payload in messages:
        for start in range(0, len(payload), FRAME):
            transfer = Transfer(handle=3, delivery_id=client.next_id, delivery_tag=b"%d" % client.next_id)
            transfer.more = start + FRAME < len(payload)
            client.give(Wire.frame(transfer, payload[start : start + FRAME]))
        client.next_id = (client.next_id + 1) & 0xFFFFFFFF
    client.say(Detach(handle=3, closed=True))
    assert client.rig.queue().depth == len(messages)
    return client


def content(payload: bytes) -> bytes:
    """The content of a message."""
    (section,) = decode_message(payload).body
    assert isinstance(section, Data)
    return bytes(section.value)


def test_a_peek_shows_the_beginning_of_large_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the sections before the body and the size, between small ones; nothing is taken."""
    monkeypatch.setattr(entity_node, "SHOWN_BYTES_MAX", 100)
    first, small, second = large(1, 5000), large(2, 10), large(3, 7000)
    client = client_with(first, small, second)
    before = client.rig.queue()
    status, body, _ = client.ask("peek-message", {"from-sequence-number": 0, "message-count": 9})
    assert (status, texts_of(body)) == (200, [content(first)[:100], content(small), content(second)[:100]])
    rows = body["messages"]
    assert [decode_message(row["message"]).application_properties for row in rows] == [{"n": n} for n in (1, 2, 3)]
    sizes = [annotations_of(row).get("x-opt-message-size") for row in rows]
    assert sizes[1] is None
    assert len(first) <= int(sizes[0]) < len(first) + 10
    assert len(second) <= int(sizes[2]) < len(second) + 10
    assert client.rig.queue() == before


def test_a_peek_keeps_to_the_max_message_size_of_its_link() -> None:
    """A page ends before it; a message that does not fit alone is refused."""
    client = client_with(large(1, 300), large(2, 300), large(3, 2000), answer_bytes_max=1200)
    first = 0
    for _ in range(2):
        status, body, _ = client.ask("peek-message", {"from-sequence-number": first, "message-count": 9})
        assert (status, len(body["messages"])) == (200, 1)
        first = annotations_of(body["messages"][0])["x-opt-sequence-number"] + 1
    assert client.ask("peek-message", {"from-sequence-number": first, "message-count": 9})[::2] == TOO_LARGE


@pytest.mark.parametrize("mode", [0, 1])
def test_a_deferred_large_message_is_received_as_a_whole(mode: int) -> None:
    """Byte for byte; its lock token settles it."""
    sent = large(1, 5000)
    client = client_with(sent)
    asked = {"sequence-numbers": Array("long", (client.defer(),)), "receiver-settle-mode": mode}
    status, body, _ = client.ask(RECEIVE, asked)
    assert (status, texts_of(body)) == (200, [content(sent)])
    if mode:
        assert client.rig.queue().acquired_count == 1
        said = {"lock-tokens": [body["messages"][0]["lock-token"]], "disposition-status": "completed"}
        assert client.ask("update-disposition", said)[0] == 200
    assert (client.rig.queue().accepted, client.rig.queue().depth) == (1, 0)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("bound", ["link", "node"])
def test_what_does_not_fit_stays_deferred(monkeypatch: pytest.MonkeyPatch, bound: str, mode: int) -> None:
    """Above the max-message-size of the link for answers, or above the bound of the node; nothing is held."""
    monkeypatch.setattr(entity_node, "RECEIVE_BYTES_MAX", 4000 if bound == "node" else 1 << 20)
    client = client_with(large(1, 5000), large(2, 10), answer_bytes_max=4000 if bound == "link" else None)
    numbers = [client.defer(), client.defer()]
    for asked in (numbers, numbers[:1]):
        found = {"sequence-numbers": asked, "receiver-settle-mode": mode}
        assert client.ask(RECEIVE, found)[::2] == TOO_LARGE
        assert (client.rig.queue().acquired_count, client.rig.queue().available) == (0, 2)
    status, body, _ = client.ask(RECEIVE, {"sequence-numbers": numbers[1:]})
    assert (status, len(texts_of(body)[0])) == (200, 10)


def test_requests_for_whole_messages_take_turns() -> None:
    """Each is answered, in order, though they come at once; a refused one ends its turn."""
    client = client_with(*[large(number, 5000) for number in range(3)])
    numbers = [client.defer() for _ in range(3)]
    asked = [numbers[0], 1 << 40, numbers[1], numbers[0], numbers[2]]
    frames = [client.frame(request(RECEIVE, {"sequence-numbers": [one]})) for one in asked]
    said = client.give(b"".join(frames))
    for _ in asked:
        said += client.settle()
    found = [decode_message(one).application_properties or {} for one in answers(said)]
    assert [int(one["statusCode"]) for one in found] == [200, 404, 200, 404, 200]
    assert client.rig.queue().acquired_count == 3
    assert client.peer._nodes._turns.size == 0


def test_what_cannot_be_answered_is_not_held() -> None:
    """Without room for the answer the message is deferred again; without a link for it, it is not taken."""
    client = client_with(large(1, 5000))
    asked = request(RECEIVE, {"sequence-numbers": [client.defer()]})
    backlog = client.peer._nodes._nodes[NODE].links._answers
    backlog._bytes += 1 << 20
    assert not answers(client.give(client.frame(asked)) + client.settle())
    assert (client.rig.queue().acquired_count, client.rig.queue().available) == (0, 1)
    backlog._bytes -= 1 << 20
    before = client.rig.queue()
    client.say(Detach(handle=2, closed=True))
    client.give(client.frame(asked))
    assert client.rig.queue() == before
    client.say(Attach(name="a", handle=2, role=True, source=Source(address=NODE), target=Target(address=NODE)))
    client.flow(9, handle=2)
    assert len(answers(client.give(client.frame(asked)))) == 1
    assert client.rig.queue().acquired_count == 1
