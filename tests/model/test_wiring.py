"""Wiring that changes while messages go through it, over a disk that forgets: what is routed is what State says."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    DeclareMuxer,
    DeclareQueue,
    DeleteMuxer,
    DeleteQueue,
    DetachMember,
    Publish,
    ResetHost,
    UpdateMuxer,
    UpdateQueue,
)
from ambermq.engine.effects import PublishDone
from ambermq.engine.events import Event, Published
from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.state import State, totals_of
from ambermq.engine.routing.router import Router
from ambermq.engine.selectors.fields import Fields
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.decide.messages.test_publish import fields_of
from tests.model.broker import Broker, Sender
from tests.model.history import check_conservation, words_on

QUEUES = ("a", "b", "c")
MUXERS = {
    "all": (MuxerKind.SIMPLE, Options()),
    "named": (MuxerKind.DESTINATION, Options()),
    "wild": (MuxerKind.WILD_DESTINATION, Options()),
    "by": (MuxerKind.PROPERTY, Options()),
    "lossy": (MuxerKind.LOSSY, Options(probability=0.5, seed=5)),
}
ARGUMENTS: dict[str, tuple[Argument, ...]] = {
    "all": (None,),
    "lossy": (None,),
    "named": ("x", "x.y"),
    "wild": ("#", "x.*"),
    "by": ((Condition("p", True, "1"),), (Condition("p"), Condition("q", True, "2"))),
}
TEXTS = (
    *("", "p=1", "p=1,q=2", "q=2"),
    *("properties.to=a", "properties.to=d", "properties.to=/muxers/by/x,p=1", "properties.to=x,p=2"),
)
ADDRESSES = (
    "a",
    "d",
    "/topics/x",
    "",
    *(f"/muxers/{name}" for name in MUXERS),
    *(f"/muxers/{name}/x" for name in MUXERS),
)
MUXER_NAMES = st.sampled_from(list(MUXERS))
MEMBERS = st.sampled_from((*QUEUES, *(f"muxer:{name}" for name in MUXERS)))
PICK = st.integers(0, 1 << 16)


class _Wired(Broker):
    """A broker whose messages go where they are sent, and each as many times as there are queues."""

    def _apply(self, state: State, event: Any) -> State:
        if type(event) is Published:
            self._check_route(state, event)
        return super()._apply(state, event)

    def _check_route(self, state: State, event: Event) -> None:
        """A message reaches what a router finds that comes to know the wiring now; with draws, at most that."""
        assert type(event) is Published
        producer = state.producers[event.producer]
        for body in event.bodies if not event.chunks else ():
            muxer, destination = producer.muxer, producer.destination
            fields = fields_of(body)
            if producer.sending.is_addressed:
                muxer, destination = _addressed(state, muxer, fields)
            router = Router()
            hops = list(router.hops(state, muxer, destination, fields, None))
            expected = [one.member for hop in hops for one in hop.attachments if one.member in state.queues]
            if any(state.muxers[hop.muxer].kind is MuxerKind.LOSSY for hop in hops):
                assert set(event.queues) <= set(expected)
                assert len(set(event.queues)) == len(event.queues)
            else:
                assert event.queues == tuple(dict.fromkeys(expected))

    def _check_messages(self) -> None:
        """What is on a queue is there once, byte for byte."""
        for queue in self.loop.state.queues.values():
            check_conservation(queue)
            for word in words_on(queue):
                body = self.read(queue.entries[word >> 16].chunks if word >> 16 in queue.entries else (), word >> 16)
                assert body == self.history.bodies[word >> 16]

    def _publish_done(self, done: PublishDone, durable_end: int) -> None:
        assert done.after <= durable_end

    def _drained(self, effect: Any) -> None:
        pass


def _addressed(state: State, muxer: int, fields: Fields) -> tuple[int, str]:
    """Where a message of these goes by its `to`: an address to the anonymous terminus, else a destination."""
    to = fields.get("properties.to")
    to = to if isinstance(to, str) else ""
    if muxer:
        return muxer, to
    if to.startswith("/muxers/"):
        _, _, name, destination = to.split("/")
        return state.muxer_names[name], destination
    return state.muxer_names["QUEUE"], to


class WiringMachine(RuleBasedStateMachine):
    """Wiring and messages, in any order; the broker steps and dies."""

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.count = 0
        self.broker = _Wired(seed, fields_of)
        self.come_back()

    def come_back(self) -> None:
        """What an ordinary day begins with."""
        submit = self.broker.loop.submit
        for name, (kind, options) in MUXERS.items():
            submit(DeclareMuxer("muxer", name, kind, options))
        for name in QUEUES:
            submit(DeclareQueue("queue", name, Settings()))
        for muxer, member, argument in (("all", "muxer:by", None), ("by", "a", ARGUMENTS["by"][0]), ("all", "b", None)):
            submit(AttachMember("attach", muxer, member, argument))
        for address in ("/muxers/all/x", "", "/muxers/by"):
            submit(AttachProducer("sender", address, "container", "link"))
        submit(AttachConsumer(True, "a", "container", "link", True))
        self.settle_down()
        for receiver in self.broker.receivers.values():
            self.broker.loop.set_credit(receiver.id, 5)

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            try:
                self.broker.die("crash")
            finally:
                self.broker.end()

    @rule(muxer=MUXER_NAMES, member=MEMBERS, pick=PICK)
    def attach(self, muxer: str, member: str, pick: int) -> None:
        arguments = ARGUMENTS[muxer]
        self.broker.loop.submit(AttachMember("attach", muxer, member, arguments[pick % len(arguments)]))

    @rule(muxer=MUXER_NAMES, member=MEMBERS, pick=PICK)
    def detach(self, muxer: str, member: str, pick: int) -> None:
        arguments = ARGUMENTS[muxer]
        self.broker.loop.submit(DetachMember("detach", muxer, member, arguments[pick % len(arguments)]))

    @rule(muxer=MUXER_NAMES, what=st.sampled_from(["declare", "delete", "delete if unused", "delete if empty"]))
    def muxer(self, muxer: str, what: str) -> None:
        submit = self.broker.loop.submit
        if what == "declare":
            submit(DeclareMuxer(what, muxer, *MUXERS[muxer]))
        else:
            submit(DeleteMuxer(what, muxer, if_unused=what == "delete if unused", if_empty=what == "delete if empty"))

    @rule(queue=st.sampled_from(QUEUES), goes=st.booleans())
    def queue(self, queue: str, *, goes: bool) -> None:
        submit = self.broker.loop.submit
        submit(DeleteQueue("delete", queue) if goes else DeclareQueue("queue", queue, Settings(messages_max=30)))

    @rule(queue=st.sampled_from(QUEUES), messages_max=st.sampled_from([None, 0, 2, 30]))
    def update_queue(self, queue: str, messages_max: int | None) -> None:
        self.broker.loop.submit(UpdateQueue("update", queue, totals_of, {"messages_max": messages_max}))

    @rule(muxer=MUXER_NAMES, probability=st.sampled_from([None, 0.0, 0.3, 1.0]), seed=st.none() | st.integers(0, 9))
    def update_muxer(self, muxer: str, probability: float | None, seed: int | None) -> None:
        self.broker.loop.submit(UpdateMuxer("update", muxer, totals_of, probability, seed))

    @rule(address=st.sampled_from(ADDRESSES), unroutable=st.sampled_from(Unroutable))
    def send_to(self, address: str, unroutable: Unroutable) -> None:
        self.broker.loop.submit(AttachProducer("sender", address, "container", "link", unroutable))

    @precondition(lambda self: self.broker.senders)
    @rule(pick=PICK, texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6), durable=st.booleans())
    def publish(self, pick: int, texts: list[str], *, durable: bool) -> None:
        sender: Sender = self.broker.senders[pick % len(self.broker.senders)]
        bodies = [b"number=%d,%b" % (self.count + index, text.encode()) for index, text in enumerate(texts)]
        size, hashes = sum(map(len, bodies)), [0] * len(bodies)
        self.broker.loop.submit(Publish("link", sender.id, self.count, list(bodies), hashes, size, durable))
        self.count += len(bodies)

    @rule()
    def step(self) -> None:
        self.broker.step(100)

    @rule()
    def settle_down(self) -> None:
        for _ in range(3):
            self.broker.step(0)
            self.broker.completed()

    @rule(comes_back=st.booleans())
    def reset(self, *, comes_back: bool) -> None:
        self.broker.loop.submit(ResetHost("reset"))
        self.settle_down()
        if comes_back:
            self.come_back()

    @rule(ending=st.sampled_from(["crash", "kill", "close"]))
    def die(self, ending: str) -> None:
        if ending == "close":
            self.broker.close()
        else:
            self.broker.die(ending)
        self.come_back()

    @invariant()
    def routes_are_those_of_the_state(self) -> None:
        """The router has kept up with all that happened: it finds what one finds that comes to know the wiring now."""
        loop = self.broker.loop
        state, anew = loop.state, Router()
        assert loop.router.attachment_count(state) == anew.attachment_count(state)
        for member in (*state.queues, *state.muxers):
            assert loop.router.attachments_of(state, member) == anew.attachments_of(state, member)
        for muxer in state.muxers:
            for destination in ("x", "x.y", "a"):
                plain = loop.router.plain_route(state, muxer, destination)
                assert plain == anew.plain_route(state, muxer, destination)
                for text in ("", "p=1", "p=1,q=2"):
                    fields = fields_of(text.encode())
                    route = loop.router.route(state, muxer, destination, fields, {})
                    assert route == anew.route(state, muxer, destination, fields, {})


TestWiring = WiringMachine.TestCase
TestWiring.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
