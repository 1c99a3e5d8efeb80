"""The node NAME/$management: what clients of Service Bus ask, request by request."""

from typing import Any
from uuid import UUID

import pytest

from ambermq.engine.commands import DeclareQueue, DeleteQueue, UpdateQueue
from ambermq.engine.model.state import totals_of
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Detach,
    Disposition,
    Modified,
    Properties,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Array, Symbol, Timestamp
from ambermq.protocol.auth.access import Action
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.rules import Accounts, Effect, Rule, RuleSet
from tests.engine.rig import Rig
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import Watching, bodies

NODE = "q/$management"
LOCK_MS = 1000


def queue_of(node: str) -> str:
    """The address of the queue of a node."""
    return node.removesuffix("/$management")


class Client(Watching):
    """A peer with links to the node (1 and 2), and a receiver on the queue (0)."""

    def __init__(self, rig: Rig | None = None, *, lock_ms: int = LOCK_MS, **fields: Any) -> None:
        rig = rig or Rig()
        if rig.loop.state.queue_named("q") is None:
            rig.do(DeclareQueue("key", "q", Settings(priorities=True).with_values({"lock_ms": lock_ms})))
        node, answer_bytes_max = fields.pop("node", NODE), fields.pop("answer_bytes_max", None)
        super().__init__(rig, **fields)
        self.next_id = FIRST_ID
        self._counts = 0
        self.say(
            Attach(name="r", handle=0, role=True, source=Source(address=queue_of(node)), rcv_settle_mode=1),
            Attach(
                name="q", handle=1, role=False, source=Source(), target=Target(address=node), initial_delivery_count=0
            ),
            Attach(
                name="a",
                handle=2,
                role=True,
                source=Source(address=node),
                target=Target(address=NODE),
                max_message_size=answer_bytes_max,
            ),
        )
        self.flow(1000, handle=2)

    def request(self, message: Message) -> Message:
        """Return the answer to a request."""
        (answer,) = answers(self.give(self.frame(message)))
        return decode_message(answer)

    def frame(self, message: Message) -> bytes:
        """Return the frame of a request."""
        transfer = Transfer(handle=1, delivery_id=self.next_id, delivery_tag=b"t")
        self.next_id = (self.next_id + 1) & 0xFFFFFFFF
        return Wire.frame(transfer, message.encode())

    def ask(self, operation: str, body: Any, **properties: Any) -> tuple[int, Any, str]:
        """Return status, body and condition of the answer to an operation."""
        answer = self.request(request(operation, body, **properties))
        assert answer.properties is not None
        assert answer.properties.correlation_id == "id"
        said = answer.application_properties or {}
        assert isinstance(answer.body[0], AmqpValue)
        return int(said["statusCode"]), answer.body[0].value, str(said.get("errorCondition", ""))

    def publish(self, *texts: bytes) -> list[int]:
        """Publish messages; return the offsets of those that wait."""
        self.rig.do(self.rig.publish(self.rig.producer(), *map(message, texts)))
        return [word >> 16 for words in self.rig.queue().waiting_lists for word in words]

    def defer(self) -> int:
        """Receive a message and defer it; return its sequence number."""
        self.flow(1, count=self._counts)
        (word,) = [word for words in self.rig.queue().acquired.values() for word in words]
        state = Modified(undeliverable_here=True)
        self.say(Disposition(role=True, first=self._ids, settled=True, state=state))
        self._counts += 1
        return word >> 16

    @property
    def _ids(self) -> int:
        """The delivery-id of the last transfer."""
        (link,) = [one.link for one in self.peer._links.consumers.values()]
        return (link.session.next_sent_id - 1) & 0xFFFFFFFF


def request(operation: str, body: Any, **properties: Any) -> Message:
    """Return a request."""
    found = {"operation": f"com.microsoft:{operation}", "associated-link-name": "r", **properties}
    return Message(
        properties=Properties(message_id="id", reply_to=NODE), application_properties=found, body=(AmqpValue(body),)
    )


def answers(said: list[tuple[Any, bytes]]) -> list[bytes]:
    """The answers among what came."""
    return bodies([one for one in said if isinstance(one[0], Transfer) and one[0].handle in (2, None)])


def message(text: bytes, **annotations: Any) -> bytes:
    """The bytes of a message."""
    found = {Symbol(name.replace("_", "-")): value for name, value in annotations.items()}
    return Message(message_annotations=found or None, body=(Data(text),)).encode()


def texts_of(body: Any) -> list[bytes]:
    """The texts of the messages of an answer."""
    found = [decode_message(row["message"]).body[0] for row in body["messages"]]
    return [bytes(one.value) for one in found if isinstance(one, Data)]


def annotations_of(row: Any) -> dict[Any, Any]:
    """The annotations of a message of an answer."""
    return dict(decode_message(row["message"]).message_annotations or {})


def test_messages_are_peeked_in_pages() -> None:
    """By their sequence numbers; nothing changes."""
    client = Client()
    offsets = client.publish(b"a", b"b", b"c")
    before = client.rig.queue()
    status, body, _ = client.ask("peek-message", {"from-sequence-number": 0, "message-count": 2})
    assert (status, texts_of(body)) == (200, [b"a", b"b"])
    assert [annotations_of(row)["x-opt-sequence-number"] for row in body["messages"]] == offsets[:2]
    status, body, _ = client.ask("peek-message", {"from-sequence-number": offsets[1] + 1, "message-count": 9})
    assert texts_of(body) == [b"c"]
    assert client.ask("peek-message", {"from-sequence-number": offsets[2] + 1, "message-count": 9})[:2] == (204, None)
    assert client.rig.queue() == before


def test_messages_are_scheduled_and_cancelled() -> None:
    """All of a request or none; the sequence number cancels."""
    client = Client()
    due_ms = client.rig.now_us // 1000 + 60_000
    rows = [{"message": message(text, x_opt_scheduled_enqueue_time=Timestamp(due_ms))} for text in (b"a", b"b")]
    status, body, _ = client.ask("schedule-message", {"messages": rows})
    assert status == 200
    numbers = body["sequence-numbers"].items
    assert [word >> 16 for word in client.rig.queue().scheduled] == list(numbers)
    assert not client.rig.loop.state.producers
    _, body, _ = client.ask("peek-message", {"from-sequence-number": 0, "message-count": 9})
    assert [annotations_of(row)["x-opt-message-state"] for row in body["messages"]] == [2, 2]
    cancelled = {"sequence-numbers": Array("long", (numbers[0],))}
    assert client.ask("cancel-scheduled-message", cancelled)[0] == 200
    assert client.ask("cancel-scheduled-message", cancelled)[::2] == (404, "com.microsoft:message-not-found")
    assert [word >> 16 for word in client.rig.queue().scheduled] == [numbers[1]]
    for bad in ({"message": message(b"now")}, {"message": b"\xff"}, {}, {"message": 1}):
        assert client.ask("schedule-message", {"messages": [rows[0], bad]})[0] == 400
    assert client.rig.queue().scheduled.count == 1


def test_a_scheduled_message_is_stored_as_one_of_a_link_is() -> None:
    """It has its group, and no delivery annotations."""
    client = Client(Rig())
    client.rig.do(UpdateQueue("key", "q", totals_of, {"groups": True}))
    one = Message(
        delivery_annotations={Symbol("x-opt-hop"): 1},
        message_annotations={Symbol("x-opt-scheduled-enqueue-time"): Timestamp(3_600_000)},
        properties=Properties(group_id="a"),
        body=(Data(b"late"),),
    )
    status, body, _ = client.ask("schedule-message", {"messages": [{"message-id": "m", "message": one.encode()}]})
    assert status == 200
    assert len(client.rig.queue().groups) == 1
    (offset,) = body["sequence-numbers"].items
    _, body, _ = client.ask("peek-message", {"from-sequence-number": offset, "message-count": 1})
    found = decode_message(body["messages"][0]["message"])
    assert (found.delivery_annotations, texts_of(body)) == (None, [b"late"])


def test_a_full_queue_takes_none_of_a_request() -> None:
    """The first ones of it leave nothing."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings(messages_max=2)))
    client = Client(rig)
    row = {"message": message(b"a", x_opt_scheduled_enqueue_time=Timestamp(1 << 42))}
    status, _, condition = client.ask("schedule-message", {"messages": [row] * 3})
    assert (status, condition) == (400, "amqp:resource-limit-exceeded")
    assert client.rig.queue().depth == 0
    assert client.ask("schedule-message", {"messages": [row] * 2})[0] == 200
    again = client.rig.next_life()
    assert again.queue().scheduled.count == 2


def test_a_lock_is_renewed() -> None:
    """By the lock token, which is the delivery-tag; a lock that has ended is refused."""
    client = Client()
    client.publish(b"a")
    (transfer,) = [each for each, _ in client.flow(1) if isinstance(each, Transfer)]
    token = UUID(bytes_le=bytes(transfer.delivery_tag or b""))
    client.rig.now_us += 500_000
    stranger = Client(client.rig, gateway=client.gateway, container="stranger")
    for operation, more in (("renew-lock", {}), ("update-disposition", {"disposition-status": "completed"})):
        said = {"lock-tokens": [token], **more}
        assert stranger.ask(operation, said)[::2] == (410, "com.microsoft:message-lock-lost")
    assert client.rig.queue().acquired_count == 1
    status, body, _ = client.ask("renew-lock", {"lock-tokens": Array("uuid", (token,))})
    assert (status, body["expirations"].items) == (200, (client.rig.now_us // 1000 + LOCK_MS,))
    client.rig.now_us += 900_000
    client.settle()
    assert client.rig.queue().acquired_count == 1
    client.rig.now_us += 200_000
    client.settle()
    status, _, condition = client.ask("renew-lock", {"lock-tokens": [token]})
    assert (status, condition) == (410, "com.microsoft:message-lock-lost")
    assert client.ask("renew-lock", {"lock-tokens": ["no"]})[0] == 400


@pytest.mark.parametrize(
    ("status", "accepted", "rejected", "available"),
    [("completed", 1, 0, 0), ("abandoned", 0, 0, 1), ("defered", 0, 0, 1), ("suspended", 0, 1, 0)],
)
def test_deferred_messages_are_received_and_settled(status: str, accepted: int, rejected: int, available: int) -> None:
    """By their sequence numbers; each has a lock token, and a lock."""
    client = Client()
    client.publish(b"a")
    number = client.defer()
    _, body, _ = client.ask("peek-message", {"from-sequence-number": 0, "message-count": 9})
    assert [annotations_of(row)["x-opt-message-state"] for row in body["messages"]] == [1]
    numbers = {"sequence-numbers": Array("long", (number,)), "receiver-settle-mode": 1}
    other = Client(client.rig, gateway=client.gateway, container="other")
    other.say(Detach(handle=0, closed=True))
    assert other.ask("receive-by-sequence-number", numbers)[0] == 400
    found, body, _ = client.ask("receive-by-sequence-number", numbers, **{"associated-link-name": "another"})
    assert (found, texts_of(body)) == (200, [b"a"])
    assert annotations_of(body["messages"][0])["x-opt-locked-until"] == client.rig.now_us // 1000 + LOCK_MS
    assert client.ask("receive-by-sequence-number", numbers)[::2] == (404, "com.microsoft:message-not-found")
    said = {"lock-tokens": [body["messages"][0]["lock-token"]], "disposition-status": status}
    assert client.ask("update-disposition", said)[0] == 200
    queue = client.rig.queue()
    assert (queue.accepted, queue.counters.rejected, queue.available) == (accepted, rejected, available)
    assert client.ask("update-disposition", said)[::2] == (410, "com.microsoft:message-lock-lost")
    assert client.ask("update-disposition", {**said, "disposition-status": "no"})[0] == 400


def test_a_deferred_message_returns_when_its_lock_ends() -> None:
    """Or it leaves at once, in mode 0."""
    client = Client()
    client.publish(b"a")
    numbers = {"sequence-numbers": [client.defer()], "receiver-settle-mode": 1}
    client.ask("receive-by-sequence-number", numbers)
    assert client.rig.queue().acquired_count == 1
    client.rig.now_us += 1000 * LOCK_MS + 60_000
    client.settle()
    assert (client.rig.queue().acquired_count, client.rig.queue().available) == (0, 1)
    status, body, _ = client.ask("receive-by-sequence-number", {**numbers, "receiver-settle-mode": 0})
    assert (status, texts_of(body), set(body["messages"][0])) == (200, [b"a"], {"message"})
    assert (client.rig.queue().accepted, client.rig.queue().depth) == (1, 0)


@pytest.mark.parametrize("body", [None, "text", {"sequence-numbers": "no"}, {"sequence-numbers": [2**63]}, {}])
def test_other_requests_are_refused(body: Any) -> None:
    """And the link goes on."""
    client = Client()
    assert client.ask("receive-by-sequence-number", body)[0] in (400, 404)
    assert client.ask("get-session-state", {})[0] == 501
    assert client.ask("peek-message", {"message-count": "many"})[0] == 400
    assert client.ask("peek-message", {"message-count": 1})[0] == 204


def test_there_is_no_node_without_a_queue() -> None:
    """A link to it is refused at once; a request after the end of the queue is answered."""
    client = Client()
    assert client.refused("none/$management", mode=None)[0] == "amqp:not-found"
    client.rig.do(DeleteQueue("key", "q"))
    assert client.ask("peek-message", {"message-count": 1})[0] == 404


def test_a_connection_forgets_nodes_without_links() -> None:
    """There may be one for each queue."""
    client = Client()
    client.say(Detach(handle=1, closed=True))
    assert NODE in client.peer._nodes._nodes
    client.say(Detach(handle=2, closed=True))
    assert NODE not in client.peer._nodes._nodes


@pytest.mark.parametrize("setting", ["paused", "exclusive"])
def test_deferred_messages_keep_to_the_settings_of_the_queue(setting: str) -> None:
    """A paused queue delivers nothing, an exclusive one to its active consumer alone."""
    client = Client()
    client.publish(b"a")
    numbers = {"sequence-numbers": [client.defer()]}
    client.rig.do(UpdateQueue("key", "q", lambda _state: {}, {setting: True}))
    other = Client(client.rig, gateway=client.gateway, container="other")
    assert other.ask("receive-by-sequence-number", numbers)[::2] == (400, "amqp:not-allowed")
    assert client.ask("receive-by-sequence-number", numbers)[0] == (400 if setting == "paused" else 200)


def test_an_expired_message_is_not_received() -> None:
    """Although its timer is late."""
    client = Client()
    client.rig.do(UpdateQueue("key", "q", lambda _state: {}, {"message_ttl_ms": 1000}))
    client.publish(b"a")
    numbers = {"sequence-numbers": [client.defer()]}
    client.rig.now_us += 2_000_000
    assert client.ask("receive-by-sequence-number", numbers)[0] == 404


def test_the_rules_of_the_queue_decide() -> None:
    """Each operation needs its action; a user without any does not get a link."""
    client = Client()
    client.peer.identity = Identity("u")
    accounts = Accounts(users=frozenset(("u",)), log_readers=frozenset(), has_users=True)
    row = {"message": message(b"a", x_opt_scheduled_enqueue_time=Timestamp(1 << 42))}
    token = UUID(int=1)
    asked: dict[str, tuple[str, Any]] = {
        "peek-message": ("browse", {"message-count": 1}),
        "schedule-message": ("send", {"messages": [row]}),
        "cancel-scheduled-message": ("manage", {"sequence-numbers": [1]}),
        "renew-lock": ("receive", {"lock-tokens": [token]}),
        "receive-by-sequence-number": ("receive", {"sequence-numbers": [1]}),
        "update-disposition": ("receive", {"lock-tokens": [token], "disposition-status": "completed"}),
    }
    for operation, (action, body) in asked.items():
        for allowed in ("browse", "send", "manage", "receive"):
            rule = Rule(Effect.ALLOW, "u", (Action(allowed),), "q", "*")
            client.gateway.access = RuleSet([rule], accounts)
            status, _, condition = client.ask(operation, body)
            assert (status == 401) is (allowed != action), (operation, allowed)
            assert (condition == "amqp:unauthorized-access") is (allowed != action)
    client.gateway.access = RuleSet([Rule(Effect.ALLOW, "u", (Action.SEND,), "other", "*")], accounts)
    assert client.refused(NODE, mode=None)[0] == "amqp:unauthorized-access"


def test_nothing_is_scheduled_while_producers_are_held_back() -> None:
    """A request would go round the credit of links."""
    client = Client()
    client.gateway.blocked = "disk"
    row = {"message": message(b"a", x_opt_scheduled_enqueue_time=Timestamp(1 << 42))}
    assert client.ask("schedule-message", {"messages": [row]})[::2] == (400, "amqp:resource-limit-exceeded")


def test_the_alias_is_the_node_of_the_dead_letter_queue() -> None:
    """Its messages are peeked, deferred ones received; nothing is scheduled there."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings(dead_letter="dead")))
    client = Client(rig, node="q/$DeadLetterQueue/$management")
    rig.do(rig.publish(rig.producer("dead"), message(b"a"), message(b"b")))
    client.publish(b"other")
    status, body, _ = client.ask("peek-message", {"from-sequence-number": 0, "message-count": 9})
    assert (status, texts_of(body)) == (200, [b"a", b"b"])
    client.flow(1)
    (word,) = [word for words in rig.queue("dead").acquired.values() for word in words]
    client.say(Disposition(role=True, first=client._ids, settled=True, state=Modified(undeliverable_here=True)))
    status, body, _ = client.ask("receive-by-sequence-number", {"sequence-numbers": [word >> 16]})
    assert (status, texts_of(body)) == (200, [b"a"])
    row = {"message": message(b"a", x_opt_scheduled_enqueue_time=Timestamp(1 << 42))}
    assert client.ask("schedule-message", {"messages": [row]})[::2] == (400, "amqp:not-allowed")


def test_the_alias_follows_the_setting() -> None:
    """A queue without a dead-letter queue has no such node, and a request says so when it is gone."""
    client = Client()
    assert client.refused("q/$DeadLetterQueue/$management", mode=None)[0] == "amqp:not-found"
    assert client.refused("none/$DeadLetterQueue/$management", mode=None)[0] == "amqp:not-found"
    client.rig.do(UpdateQueue("key", "q", lambda _state: {}, {"dead_letter": "dead"}))
    aliased = Client(client.rig, gateway=client.gateway, container="other", node="q/$DeadLetterQueue/$management")
    assert aliased.ask("peek-message", {"message-count": 1})[0] == 204
    client.rig.do(UpdateQueue("key", "q", lambda _state: {}, {"dead_letter": ""}))
    assert aliased.ask("peek-message", {"message-count": 1})[::2] == (404, "com.microsoft:message-not-found")


def test_the_alias_needs_the_rules_of_both_queues() -> None:
    """It gives no access, and says nothing of a queue that the user does not see."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings(dead_letter="dead")))
    client = Client(rig, node="q/$DeadLetterQueue/$management")
    client.peer.identity = Identity("u")
    accounts = Accounts(users=frozenset(("u",)), log_readers=frozenset(), has_users=True)

    def allow(*queues: str) -> None:
        rules = [Rule(Effect.ALLOW, "u", (Action.BROWSE,), queue, "*") for queue in queues]
        client.gateway.access = RuleSet(rules, accounts)

    for queues, status in ((("q",), 401), (("dead",), 401), (("q", "dead"), 204)):
        allow(*queues)
        assert client.ask("peek-message", {"message-count": 1})[0] == status
        refused = status == 401 and client.refused("q/$DeadLetterQueue/$management", mode=None)[0]
        assert refused in (False, "amqp:unauthorized-access")
