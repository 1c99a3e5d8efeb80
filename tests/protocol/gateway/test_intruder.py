"""A user with few rights tries everything in any order, before the gateway of a broker."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ambermq.protocol.amqp10.performatives.classes import (
    Source,
)
from ambermq.protocol.amqp10.types.values import Symbol
from tests.protocol.gateway.test_rules import House


class Intruder(RuleBasedStateMachine):
    """A user that may use `mine.#` and its temporary nodes tries everything in any order."""

    addresses = st.sampled_from(
        [
            *("q", "/queues/q", "/queues/%71", "/muxers/QUEUE/q", "/muxers/QUEUE", "/topics/q", "/topics/#", "mine.a"),
            *("/log", "/muxers/TOPIC", "/queues/$subscription.1", "$management", "other"),
        ]
    )

    @initialize()
    def begin(self) -> None:
        """Start a broker with a queue of another user."""
        self.house = House("allow eve all mine.#", "allow eve manage /muxers/#", "grant eve application")
        self.eve = self.house.user("eve", "root")

    @rule(address=addresses, is_copy=st.booleans(), name=st.sampled_from(["", "l1"]))
    def receive(self, address: str, is_copy: bool, name: str) -> None:
        """Attach a receiver, perhaps by the name of another link."""
        mode = Symbol("copy") if is_copy else None
        self.eve.link(name=name, source=Source(address=address, distribution_mode=mode))
        self.look()

    @rule(address=addresses, to=addresses)
    def send(self, address: str, to: str) -> None:
        """Send, by a target or by `to`."""
        if address != "$management":
            self.eve.send(address, to=to)
            self.eve.send(None, to=to)
        self.look()

    @rule(muxer=st.sampled_from(["QUEUE", "TOPIC"]), key=st.sampled_from(["destination", "pattern"]))
    def attach(self, muxer: str, key: str) -> None:
        """Attach a queue of its own to a muxer."""
        argument = {"destination": "q", "pattern": "#"}[key]
        self.eve.ask("CREATE", "org.ambermq.attachment", {"muxer": muxer, "member": "mine.a", key: argument})
        self.look()

    @rule(operation=st.sampled_from(["CREATE", "READ", "UPDATE", "DELETE", "PURGE", "QUERY", "ROUTE"]), name=addresses)
    def manage(self, operation: str, name: str) -> None:
        """Ask for an operation on a queue."""
        status, body = self.eve.ask(operation, "org.ambermq.queue", name=name)
        assert name.startswith("mine") or status != 200 or operation == "QUERY" or "q" not in str(body.get("name"))
        self.look()

    def look(self) -> None:
        """Check that no body of the other queue has arrived."""
        assert not any(b"secret" in payload for _, payload in self.eve.arrived)

    @invariant()
    def nothing_is_lost(self) -> None:
        """The queue of the other user is as it was, and only queues of its own are new."""
        state = self.house.rig.loop.state
        queue = state.queue_named("q")
        assert queue is not None
        assert (queue.available, queue.consumers) == (1, 0)
        allowed = ("q", "mine.", "$temporary.", "$subscription.")
        assert all(one.name == "q" or one.name.startswith(allowed[1:]) for one in state.queues.values())
        assert not state.subscriptions


TestIntruder = Intruder.TestCase
TestIntruder.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
