"""Every action through every way in, as a user with exactly that permission and as one without it."""

from collections.abc import Callable
from typing import Any

import pytest

from ambermq.engine.model.muxer import MuxerKind
from ambermq.protocol.amqp10.message.message import AmqpValue, Message, decode_message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Close,
    Detach,
    Disposition,
    Flow,
    Open,
    Properties,
    Rejected,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Described, Symbol
from ambermq.protocol.auth.access import Action
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.rules import Accounts, Effect, Rule, RuleSet, actions_named
from ambermq.protocol.gateway.access_checks import CHECKED_PER_TURN
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.protocol.gateway.nodes.management_authority import NEEDS
from ambermq.protocol.management.operations import KINDS
from tests.engine.rig import Rig
from tests.protocol.gateways import gateway_of
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import Watching

UNAUTHORIZED = "amqp:unauthorized-access"
ACCOUNTS = Accounts(users=frozenset(("root",)), log_readers=frozenset(("root",)), has_users=True)


def rule_set(*texts: str) -> RuleSet:
    """Return the rules of `allow USER ACTIONS PATTERN` and `grant USER ROLE`, in all virtual hosts."""
    found = []
    for text in texts:
        effect, subject, *rest = text.split()
        actions = () if effect == "grant" else actions_named(rest.pop(0))
        found.append(Rule(Effect(effect), subject, actions, rest[0], "*"))
    return RuleSet(found, ACCOUNTS)


class User(Watching):
    """The connection of one user."""

    def __init__(self, username: str, rig: Rig, gateway: Gateway, container: str = "") -> None:
        super().__init__(rig, gateway=gateway, container=None)
        self.peer.identity = Identity(username)
        begin = Wire.begin(incoming_window=1 << 20)
        self.opening = self.say(Open(container_id=container or username), begin)
        self._handle = 0
        self.arrived: list[tuple[Composite | None, bytes]] = []
        """What the broker has answered last, with the payloads."""
        self._next_id = FIRST_ID

    def link(self, *, name: str = "", source: Source | None = None, target: Target | None = None) -> str:
        """Attach a link: with a source of the broker it receives. Return the condition of a refusal, or nothing."""
        self._handle += 1
        is_receiver = target is None
        attach = Attach(
            name=name or f"l{self._handle}",
            handle=self._handle,
            role=is_receiver,
            source=source or Source(),
            target=target or Target(),
            initial_delivery_count=None if is_receiver else 0,
        )
        flow = Flow(incoming_window=1 << 20, next_outgoing_id=FIRST_ID, outgoing_window=1 << 20)
        flow.handle, flow.link_credit, flow.delivery_count, flow.next_incoming_id = self._handle, 100, 0, FIRST_ID
        self.arrived = self.give(Wire.frame(attach) + (Wire.frame(flow) if is_receiver else b""))
        return condition_of([said for said, _ in self.arrived])

    def receive(self, address: str, **fields: Any) -> str:
        """Attach a receiver; return the condition of a refusal, or nothing."""
        return self.link(source=Source(address=address, **fields))

    def browse(self, address: str, **fields: Any) -> str:
        """Attach a browser."""
        return self.receive(address, distribution_mode=Symbol("copy"), **fields)

    def send(self, address: str | None, *, to: str | None = None, body: str = "body") -> str:
        """Attach a sender and send one message; return the condition of a refusal, or nothing."""
        refused = self.link(target=Target(address=address))
        if refused:
            return refused
        message = Message(properties=Properties(to=to), body=(AmqpValue(body),)).encode()
        transfer = Transfer(handle=self._handle, delivery_id=self._next_id, delivery_tag=b"t", settled=False)
        self._next_id = (self._next_id + 1) & 0xFFFFFFFF
        self.arrived = self.give(Wire.frame(transfer, message))
        return condition_of([said for said, _ in self.arrived])

    def ask(self, operation: str, kind: str, body: dict[str, Any] | None = None, **properties: Any) -> tuple[int, Any]:
        """Send a request; return the status and the body of its answer, 0 for none."""
        key = "entityType" if operation == "QUERY" else "type"
        message = Message(
            properties=Properties(reply_to="me", message_id=1),
            application_properties={"operation": operation, key: kind, **properties},
            body=(AmqpValue(body or {}),),
        )
        return self.request(message)

    def request(self, message: Message) -> tuple[int, Any]:
        """Send a request message over new links; return the status and the body of its answer, 0 for none."""
        self._handle += 1
        attach = Attach(
            name=f"replies{self._handle}",
            handle=self._handle,
            role=True,
            source=Source(address="$management"),
            target=Target(address="me"),
        )
        flow = Flow(incoming_window=1 << 20, next_outgoing_id=FIRST_ID, outgoing_window=1 << 20)
        flow.handle, flow.link_credit, flow.delivery_count, flow.next_incoming_id = self._handle, 100, 0, FIRST_ID
        self.say(attach, flow)
        assert not self.link(target=Target(address="$management"))
        transfer = Transfer(handle=self._handle, delivery_id=self._next_id, delivery_tag=b"r", settled=False)
        self._next_id = (self._next_id + 1) & 0xFFFFFFFF
        self.arrived = self.give(Wire.frame(transfer, message.encode()))
        for said, payload in self.arrived:
            if isinstance(said, Transfer):
                answer = decode_message(payload)
                return int((answer.application_properties or {})["statusCode"]), answer.body[0].value
        return 0, None


def condition_of(said: list[Composite | None]) -> str:
    """Return the condition of the first refusal: of a detach, a close or a rejected message."""
    for one in said:
        if isinstance(one, Detach | Close) and one.error is not None:
            return str(one.error.condition)
        if isinstance(one, Disposition) and isinstance(one.state, Rejected) and one.state.error is not None:
            return str(one.state.error.condition)
    return ""


class House:
    """A broker with a queue `q`, a durable subscription, and messages that `root` has sent."""

    def __init__(self, *texts: str) -> None:
        self.rig = Rig(fields_of=RoutingFields)
        self.gateway = gateway_of(self.rig.loop)
        self.gateway.set_access(rule_set("grant root administrator", *texts))
        self.root = self.user("root")
        assert self.root.send("q", body="secret") == ""

    def user(self, name: str, container: str = "") -> User:
        """Return a new connection of a user."""
        return User(name, self.rig, self.gateway, container)


def dynamic(*, is_topic: bool = False) -> dict[str, Any]:
    """Return the fields of a terminus that requests a temporary node."""
    return {"dynamic": True, "capabilities": (Symbol("temporary-topic" if is_topic else "temporary-queue"),)}


def durable(user: User, name: str = "sub") -> str:
    """Attach a durable subscription."""
    return user.link(name=name, source=Source(address="/topics/news", durable=2, expiry_policy=Symbol("never")))


def managed(operation: str, kind: str, **fields: Any) -> Callable[[User], str]:
    """Return the way in of a management operation."""

    def ask(user: User) -> str:
        status, _ = user.ask(operation, f"org.ambermq.{kind}", fields.get("body"), **fields.get("names", {}))
        return UNAUTHORIZED if status == 403 else "" if 200 <= status < 300 else f"status {status}"

    return ask


WAYS: dict[str, tuple[str, Callable[[User], str]]] = {
    "attach to a target": ("send q", lambda user: user.send("q")),
    "attach to another spelling of it": ("send q", lambda user: user.send("/queues/%71")),
    "attach to its muxer": ("send q", lambda user: user.send("/muxers/QUEUE/q")),
    "relay": ("send q", lambda user: user.send(None, to="q")),
    "relay to its muxer": ("send q", lambda user: user.send(None, to="/muxers/QUEUE/q")),
    "send to a topic": ("send /topics/news", lambda user: user.send("/topics/news")),
    "relay to a topic": ("send /topics/news", lambda user: user.send(None, to="/topics/news")),
    "create by attach": ("create,send new", lambda user: user.send("new")),
    "create by a receiver": ("create,receive new", lambda user: user.receive("new")),
    "create by relay": ("create,send new", lambda user: user.send(None, to="new")),
    "receive": ("receive q", lambda user: user.receive("q")),
    "browse": ("browse q", lambda user: user.browse("q")),
    "subscribe": ("receive /topics/news.#", lambda user: user.receive("/topics/news.*")),
    "subscribe for good": ("create,receive /topics/news", durable),
    "dynamic queue": ("create /queues/$temporary.#", lambda user: user.link(source=Source(**dynamic()))),
    "dynamic topic": (
        "create /topics/$temporary.#",
        lambda user: user.link(source=Source(**dynamic(is_topic=True))),
    ),
    "dynamic target": ("create /queues/$temporary.#", lambda user: user.link(target=Target(**dynamic()))),
    "log": ("replay /log", lambda user: user.browse("/log")),
    "create a queue": ("create new", managed("CREATE", "queue", names={"name": "new"})),
    "update a queue": ("manage q", managed("UPDATE", "queue", names={"name": "q"}, body={"messages_max": 9})),
    "purge a queue": ("manage q", managed("PURGE", "queue", names={"name": "q"})),
    "delete a queue": ("delete q", managed("DELETE", "queue", names={"name": "q"})),
    "read a queue": ("browse q", managed("READ", "queue", names={"name": "q"})),
    "create a muxer": (
        "create /muxers/m",
        managed("CREATE", "muxer", names={"name": "m"}, body={"class": MuxerKind.SIMPLE.text}),
    ),
    "read the broker": ("manage $broker", managed("READ", "broker")),
    "list snapshots": ("manage $snapshots", managed("QUERY", "snapshot")),
    "list templates": ("manage $config", managed("QUERY", "template")),
    "route": ("send q", managed("ROUTE", "queue", names={"name": "q"})),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_way_in_needs_its_action(way: str) -> None:
    """The user with exactly that permission may, the user without it is refused, and each other action is missed."""
    permission, go_in = WAYS[way]
    actions, pattern = permission.split()
    house = House(f"allow alice {actions} {pattern}", "allow bob all elsewhere.#")
    assert go_in(house.user("bob")) == UNAUTHORIZED
    assert go_in(house.user("alice")) == ""
    for missed in actions.split(","):
        others = ",".join(action for action in Action if action != missed)
        if not way.startswith(("read", "list")):
            house = House(f"allow alice {others} {pattern}")
            assert go_in(house.user("alice")) == UNAUTHORIZED, missed


def test_the_past_needs_replay() -> None:
    """A browser at a moment is refused to a user that may browse the present."""
    at = {"filter": {Symbol("ambermq:at"): Described(Symbol("ambermq:at"), 3)}}
    house = House("allow alice browse q", "allow carl replay q")
    assert house.user("alice").browse("q", **at) == UNAUTHORIZED
    assert house.user("carl").browse("q") == UNAUTHORIZED


def test_a_relayed_run_loses_only_what_is_refused() -> None:
    """The messages around a refused one arrive."""
    house = House("allow alice send q", "allow alice create,send mine.#")
    alice = house.user("alice")
    for to, expected in (("q", ""), ("other", UNAUTHORIZED), ("mine.a", ""), ("/topics/x", UNAUTHORIZED)):
        assert alice.send(None, to=to) == expected
    assert {queue.name: queue.available for queue in house.rig.loop.state.queues.values()} == {"q": 2, "mine.a": 1}


def test_a_deny_holds_behind_the_muxer_of_all_queues() -> None:
    """A link to a whole muxer names a destination in each message."""
    house = House("allow alice all /#", "deny alice send q")
    alice = house.user("alice")
    assert alice.send("/muxers/QUEUE", to="q") == UNAUTHORIZED
    assert alice.send("/muxers/QUEUE", to="r") == ""


def test_a_reply_to_needs_send() -> None:
    """A request whose answer may not go where it says is rejected, and not carried out."""
    house = House("allow alice create,delete new")
    request = Message(
        properties=Properties(reply_to="q", message_id=1),
        application_properties={"operation": "CREATE", "type": "org.ambermq.queue", "name": "new"},
        body=(AmqpValue({}),),
    )
    alice = house.user("alice")
    assert alice.request(request) == (0, None)
    assert condition_of([said for said, _ in alice.arrived]) == UNAUTHORIZED
    assert house.rig.loop.state.queue_named("new") is None


def test_a_listing_has_only_what_the_user_may_use() -> None:
    """QUERY counts and shows the rows on whose address the user has any action."""
    house = House("allow alice send q", "allow alice browse a.#", "grant mona monitor")
    for name in ("a.b", "b", "c"):
        assert house.root.send(name) == ""
    _, page = house.user("alice").ask("QUERY", "org.ambermq.queue", {"attributeNames": ["name"]})
    assert (page["results"], page["total"]) == ([["q"], ["a.b"]], 2)
    _, page = house.user("mona").ask("QUERY", "org.ambermq.queue", {"attributeNames": ["name"]})
    assert page["total"] == 4
    for kind in ("muxer", "attachment", "subscription"):
        _, page = house.user("alice").ask("QUERY", f"org.ambermq.{kind}")
        assert page["total"] == 0, kind
    assert house.user("mona").ask("QUERY", "org.ambermq.attachment")[1]["total"] == 4


def test_an_attachment_needs_manage_on_both_and_receive_on_what_it_draws() -> None:
    """Else a user with a queue of its own reads any topic."""
    body = {"muxer": "TOPIC", "member": "q", "pattern": "news.#"}
    needed = ["allow alice manage q", "allow alice manage /muxers/TOPIC", "allow alice receive /topics/news.#"]
    for missing in needed:
        house = House(*(text for text in needed if text != missing), "allow alice send x")
        assert house.user("alice").ask("CREATE", "org.ambermq.attachment", body)[0] == 403
    house = House(*needed)
    assert house.user("alice").ask("CREATE", "org.ambermq.attachment", body)[0] == 201
    house = House(*needed[:2], "allow alice receive /topics/news.eu")
    assert house.user("alice").ask("CREATE", "org.ambermq.attachment", body)[0] == 403


def test_a_subscription_belongs_to_its_user() -> None:
    """A container id and a link name are no authority, also without a source, and a deletion needs the owner."""
    house = House("allow role:r create,receive,delete /topics/news", "grant alice r", "grant bob r")
    alice = house.user("alice", "c")
    assert durable(alice) == ""
    alice.say(Close())
    alice.peer.lost()
    bob = house.user("bob", "c")
    assert durable(bob) == UNAUTHORIZED
    refused = Attach(name="sub", handle=9, role=True, source=None, target=Target())
    assert condition_of(bob.say(refused)) == UNAUTHORIZED
    assert bob.ask("DELETE", "org.ambermq.subscription", name="sub")[0] == 403
    assert durable(house.user("root", "c")) == ""


def test_a_subscription_that_a_user_does_not_see_is_as_one_that_is_absent() -> None:
    """Its name tells nothing: neither the status nor the text of READ differs; so it is with attachments."""
    house = House("allow alice create,receive /topics/news", "allow bob receive /topics/weather")
    assert durable(house.user("alice", "c")) == ""
    bob, root = house.user("bob", "b"), house.user("root", "r")
    for kind, known in (("subscription", "sub"), ("attachment", str(attachment_id(root)))):
        assert root.ask("READ", f"org.ambermq.{kind}", name=known)[0] == 200
        seen = bob.ask("READ", f"org.ambermq.{kind}", name=known)
        absent = bob.ask("READ", f"org.ambermq.{kind}", name="9999999")
        assert seen == absent
        assert seen[0] == 404


def attachment_id(user: User) -> int:
    """Return the id of the newest attachment."""
    _, page = user.ask("QUERY", "org.ambermq.attachment")
    return int(page["results"][-1][page["attributeNames"].index("id")])


def test_a_subscription_without_an_owner_is_replaced_only_with_a_right_on_its_topic() -> None:
    """Its name and container are no authority: a receiver of another topic would delete its messages."""
    house = House("allow bob create,receive /topics/weather", "allow carl create,receive /topics/#")
    nameless = User("root", house.rig, house.gateway, "c")
    nameless.peer.identity = Identity(is_local=True)
    assert durable(nameless) == ""
    nameless.say(Close())
    nameless.peer.lost()

    def other(name: str) -> str:
        source = Source(address="/topics/weather", durable=2, expiry_policy=Symbol("never"))
        return house.user(name, "c").link(name="sub", source=source)

    (queue,) = house.rig.loop.state.subscriptions.keys()
    assert house.rig.loop.state.subscriptions[queue].owner == ""
    assert other("bob") == UNAUTHORIZED
    assert house.rig.loop.state.subscriptions[queue].topic == "news"
    assert other("carl") == ""


def test_another_user_does_not_steal_a_link() -> None:
    """The same container id and link name are refused to another user, and steal for the same one."""
    house = House("allow role:r send q", "grant alice r", "grant bob r")
    alice = house.user("alice", "c")
    assert alice.link(name="x", target=Target(address="q")) == ""
    assert house.user("bob", "c").link(name="x", target=Target(address="q")) == UNAUTHORIZED
    assert house.user("alice", "c").link(name="x", target=Target(address="q")) == ""


def test_only_the_user_that_made_a_temporary_node_receives_from_it() -> None:
    """Others send to it, if a rule allows that."""
    house = House("grant alice application", "grant bob application", "allow bob receive,browse /queues/$temporary.#")
    alice, bob = house.user("alice"), house.user("bob")
    assert alice.link(source=Source(**dynamic())) == ""
    (answer,) = [said for said, _ in alice.arrived if isinstance(said, Attach)]
    address = answer.source.address
    assert bob.receive(address) == UNAUTHORIZED
    assert bob.browse(address) == UNAUTHORIZED
    assert bob.send(address) == ""
    assert bob.send(None, to=address) == ""
    assert alice.receive(address) == ""


def test_a_virtual_host_without_a_rule_is_closed() -> None:
    """The open is refused."""
    house = House("allow alice send q")
    assert condition_of(house.user("carl").opening) == UNAUTHORIZED
    assert condition_of(house.user("alice").opening) == ""


def test_a_change_of_rules_ends_live_links_and_counts_no_failure() -> None:
    """What a receiver held is on the queue again, with no failed delivery; a relay is checked anew."""
    house = House("allow alice receive,browse,send q")
    alice = house.user("alice")
    assert alice.receive("q") == ""
    assert any(isinstance(said, Transfer) for said, _ in alice.arrived)
    assert alice.browse("q") == ""
    assert alice.send(None, to="q") == ""
    house.gateway.set_access(rule_set("grant root administrator", "allow alice send other"))
    said = [one for one, _ in alice.settle()]
    assert [str(one.error.condition) for one in said if isinstance(one, Detach) and one.error] == [UNAUTHORIZED] * 2
    queue = house.rig.loop.state.queue_named("q")
    assert queue is not None
    assert (queue.available, queue.acquired_count, queue.counters.failed) == (2, 0, 0)
    assert alice.send(None, to="q") == UNAUTHORIZED
    house.gateway.set_access(rule_set("grant root administrator"))
    assert condition_of([one for one, _ in alice.settle()]) == UNAUTHORIZED


def test_a_relay_has_the_new_rules_before_its_link_is_checked() -> None:
    """Decisions of the rules before are forgotten."""
    house = House("allow alice send q")
    alice = house.user("alice")
    assert alice.send(None, to="q") == ""
    guard = [link.guard for link in house.gateway.producers.values()][-1]
    assert guard is not None
    body = Message(properties=Properties(to="q"), body=(AmqpValue("body"),)).encode()
    assert guard.refusal(body) is None
    house.gateway.access = rule_set("grant root administrator", "allow alice send other")
    assert guard.refusal(body) is not None


def test_messages_of_a_relay_are_counted() -> None:
    """Those that the rules refuse count as refused, too."""
    house = House("allow alice send q")
    alice, traffic = house.user("alice"), house.gateway.traffic
    before = traffic.messages_in, traffic.messages_refused
    assert alice.send(None, to="q") == ""
    assert alice.send(None, to="other") == UNAUTHORIZED
    assert (traffic.messages_in - before[0], traffic.messages_refused - before[1]) == (2, 1)


def test_many_links_are_checked_in_turns() -> None:
    """A turn checks at most CHECKED_PER_TURN links; a connection that is lost meanwhile is left out."""
    house = House("allow alice send q", "allow bob send q")
    alice, bob = house.user("alice"), house.user("bob")
    for _ in range(CHECKED_PER_TURN + 10):
        assert alice.send("q") == ""
    assert bob.send("q") == ""
    house.gateway.set_access(rule_set("grant root administrator", "allow alice send other", "allow bob send other"))
    checks = house.gateway.access_checks
    ended = [one for one, _ in alice.settle() if isinstance(one, Detach)]
    assert 0 < len(ended) < CHECKED_PER_TURN + 10
    assert checks.peers
    checks.advance()
    assert not checks.peers
    ended += [one for one, _ in alice.settle() if isinstance(one, Detach)]
    assert len(ended) == CHECKED_PER_TURN + 10
    assert condition_of([one for one, _ in bob.settle()]) == UNAUTHORIZED


def test_the_table_of_operations_is_complete() -> None:
    """A new type or operation is listed with what it needs; until then it needs the right to change users."""
    expected = {(kind, operation) for kind in KINDS for operation in KINDS[kind].operations}
    assert {key for key in NEEDS if key[0]} == expected
