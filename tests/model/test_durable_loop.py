"""The whole engine over a disk that forgets: random clients, random endings, and the laws that hold all the same."""

import contextlib
import errno
import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ambermq.engine.commands import (
    AttachConsumer,
    AttachProducer,
    DeclareQueue,
    DeleteQueue,
    DetachConsumer,
    DetachProducer,
    PurgeQueue,
    ReportDamage,
    ResetHost,
    Settle,
    UpdateQueue,
)
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, REJECTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.state import totals_of
from ambermq.engine.model.subscription import SubscriptionRequest
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.errors import LogFailed
from tests.model.broker import Broker, Receiver
from tests.model.history import words_on

NAMES = st.sampled_from(["one", "two", "lossy"])
"""Receivers on `lossy` want everything settled: what is on its way to them may be lost."""
OUTCOMES = st.sampled_from(
    [
        ACCEPTED,
        REJECTED,
        RELEASED,
        MODIFIED_FAILED,
        Outcome(OutcomeKind.REJECTED, condition="amqp:decode-error", description="ä"),
        Outcome(OutcomeKind.MODIFIED),
        Outcome(OutcomeKind.MODIFIED, undeliverable_here=True),
        Outcome(OutcomeKind.MODIFIED, delivery_failed=True, undeliverable_here=True),
        Outcome(OutcomeKind.MODIFIED, annotations=((b"\xa3\x01a", b"\x41"),)),
    ]
)
SUBSCRIBING = st.builds(
    SubscriptionRequest, st.sampled_from(["", "s"]), st.booleans(), st.booleans(), st.booleans(), st.booleans()
)
FINAL = (OutcomeKind.ACCEPTED, OutcomeKind.REJECTED)
SIZES = st.lists(st.one_of(st.integers(0, 300), st.integers(1400, 4000)), min_size=1, max_size=5)
PACES = st.sampled_from(["not yet", "step", "settle down", "settle down"])
ENDINGS = st.sampled_from(["crash", "crash", "kill", "close"])
PICK = st.integers(0, 1 << 16)


class DurableLoopMachine(RuleBasedStateMachine):
    """Clients come and go, the broker steps and dies."""

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.broker = Broker(seed)
        self.come_back()

    def come_back(self) -> None:
        """Attach the usual clients: without them few rules would have a link to act on."""
        submit = self.broker.loop.submit
        for name in ("one", "two", "lossy"):
            submit(AttachProducer(name, name, "container", "link"))
            submit(AttachConsumer(name == "lossy", name, "container", "link", name == "lossy"))
        submit(AttachConsumer(False, "one", "container", "second"))
        self.settle_down()
        for receiver in self.broker.receivers.values():
            self.broker.loop.set_credit(receiver.id, 5)

    def go_on(self, pace: str) -> None:
        match pace:
            case "step":
                self.broker.step(50)
            case "settle down":
                self.settle_down()
            case _:
                pass

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            try:
                self.broker.die("crash")
            finally:
                self.broker.end()

    def receiver(self, pick: int) -> Receiver:
        receivers = list(self.broker.receivers.values())
        return receivers[pick % len(receivers)]

    # -- clients

    @rule(name=NAMES, sends=st.booleans())
    def attach(self, name: str, *, sends: bool) -> None:
        settled = name == "lossy"
        if sends:
            self.broker.loop.submit(AttachProducer(name, name, "container", "link"))
        else:
            self.broker.loop.submit(AttachConsumer(settled, name, "container", "link", settled))

    @rule(lifetime=st.sampled_from(list(Lifetime)[1:]), is_topic=st.booleans(), sends=st.booleans())
    def make(self, lifetime: Lifetime, *, is_topic: bool, sends: bool) -> None:
        """A client asks for a dynamic node; no other client knows its address, so no message comes there."""
        dynamic = Dynamic(lifetime, is_topic)
        if sends:
            self.broker.loop.submit(AttachProducer("made", "", "container", "link", dynamic=dynamic))
        else:
            self.broker.loop.submit(AttachConsumer(False, "", "container", "link", dynamic=dynamic))

    @precondition(lambda self: self.broker.makers)
    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        makers = self.broker.makers
        self.broker.loop.submit(DetachProducer(makers.pop(pick % len(makers))))

    @rule(name=NAMES, asked=SUBSCRIBING, selector=st.sampled_from(["", "colour = 'red'"]), is_recalled=st.booleans())
    def subscribe(self, name: str, asked: SubscriptionRequest, selector: str, *, is_recalled: bool) -> None:
        """A consumer subscribes to a topic without senders."""
        self.broker.loop.submit(
            AttachConsumer(
                False, f"/topics/{name}", "container", "link", False, selector, asked, is_recalled=is_recalled
            )
        )

    @precondition(lambda self: self.broker.senders)
    @rule(pick=PICK, sizes=SIZES, durable=st.booleans(), settled=st.booleans(), pace=PACES)
    def publish(self, pick: int, sizes: list[int], pace: str, *, durable: bool, settled: bool) -> None:
        senders = self.broker.senders
        sender = senders[pick % len(senders)]
        self.broker.publish(sender, sizes, durable=durable, settled=settled)
        if sender.name == "lossy":
            self.broker.excuse(body for body, name in self.broker.published.items() if name == "lossy")
        self.go_on(pace)

    @precondition(lambda self: self.broker.receivers)
    @rule(pick=PICK, credit=st.integers(0, 12), draining=st.booleans(), pace=PACES)
    def credit(self, pick: int, credit: int, pace: str, *, draining: bool) -> None:
        self.broker.loop.set_credit(self.receiver(pick).id, credit, draining=draining)
        self.go_on(pace)

    @precondition(lambda self: any(receiver.held for receiver in self.broker.receivers.values()))
    @rule(pick=PICK, outcome=OUTCOMES, seed=PICK, count=st.integers(1, 9), replies=st.booleans(), pace=PACES)
    def settle(self, pick: int, outcome: Outcome, seed: int, count: int, pace: str, *, replies: bool) -> None:
        holders = [receiver for receiver in self.broker.receivers.values() if receiver.held]
        receiver, rng = holders[pick % len(holders)], random.Random(seed)
        in_order = rng.random() < 0.5
        count = min(count, len(receiver.held))
        words = receiver.held[:count] if in_order else rng.sample(receiver.held, count)
        receiver.held = [word for word in receiver.held if word not in words]
        if outcome.kind in FINAL:
            self.broker.excuse(map(self.broker.body_at, words))
        named = words if in_order else [*words, 77 << 16 | 5]
        entries = [(receiver.queue, word >> 16) for word in words]
        reply = (self.broker.loop.log.draft.next_offset, entries) if replies else None
        self.broker.loop.submit(Settle(receiver.id, pack_words(named), outcome, reply))
        self.go_on(pace)

    @precondition(lambda self: self.broker.receivers and self.broker.senders)
    @rule(pick=PICK, sends=st.booleans())
    def detach(self, pick: int, *, sends: bool) -> None:
        senders = self.broker.senders
        if sends:
            self.broker.loop.submit(DetachProducer(senders.pop(pick % len(senders)).id))
            return
        receiver = self.receiver(pick)
        self.broker.loop.submit(DetachConsumer(receiver.id, is_closed=bool(pick % 2)))
        del self.broker.receivers[receiver.id]

    @rule(name=NAMES, what=st.sampled_from(["declare", "limit", "update", "delete if unused", "delete", "purge"]))
    def manage(self, name: str, what: str) -> None:
        match what:
            case "declare" | "limit":
                self.broker.loop.submit(DeclareQueue(what, name, Settings(messages_max=5 * (what == "limit"))))
                return
            case "update":
                self.broker.loop.submit(UpdateQueue(what, name, totals_of, {"messages_max": 2}))
                return
            case "purge":
                self.broker.loop.submit(PurgeQueue(what, name))
            case _:
                self.broker.loop.submit(DeleteQueue(what, name, if_unused=what == "delete if unused"))
        self.broker.excuse(body for body, other in self.broker.published.items() if other == name)

    @rule(pace=PACES)
    def reset(self, pace: str) -> None:
        """Nothing of before is left, and nothing of it comes back."""
        self.broker.loop.submit(ResetHost("reset"))
        self.broker.excuse(list(self.broker.published))
        self.go_on(pace)

    @rule(pick=PICK)
    def damage(self, pick: int) -> None:
        places = [(queue.id, word) for queue in self.broker.loop.state.queues.values() for word in words_on(queue)]
        if places:
            queue, word = sorted(places)[pick % len(places)]
            self.broker.loop.submit(ReportDamage(queue, word))
            self.broker.excuse([self.broker.body_at(word)])

    # -- the broker

    @rule(elapsed_us=st.sampled_from([0, 100, 5_000, 30_000]))
    def step(self, elapsed_us: int) -> None:
        self.broker.step(elapsed_us)

    @rule()
    def completed(self) -> None:
        self.broker.completed()

    @rule()
    def settle_down(self) -> None:
        for _ in range(3):
            self.broker.step(0)
            self.broker.completed()

    @rule(ending=ENDINGS, fault=st.sampled_from(["", "", "write", "datasync"]), comes_back=st.integers(0, 3))
    def die(self, ending: str, fault: str, comes_back: int) -> None:
        """The life ends; where a write or sync has failed before, nothing left any more."""
        if fault:
            self.fail(fault)
        if ending == "close" and not fault:
            self.broker.close()
        else:
            self.broker.die("kill" if ending == "kill" else "crash", is_whole=not fault)
        if comes_back:
            self.come_back()

    def fail(self, operation: str) -> None:
        broker = self.broker
        broker.storage.fail(errno.EIO, operation=operation)
        with contextlib.suppress(LogFailed):
            broker.step(100)
            broker.completed()
            return
        for take_more in (broker.completed, lambda: broker.loop.log.write(broker.now_us)):
            with pytest.raises(LogFailed):
                take_more()


TestDurableLoop = DurableLoopMachine.TestCase
TestDurableLoop.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
