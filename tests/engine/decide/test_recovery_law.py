"""A receiver and a sender that detach, resume and restart at random: nothing is lost, nothing is decided twice."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from ambermq.engine.commands import (
    AttachConsumer,
    AttachProducer,
    DetachConsumer,
    DetachProducer,
    EndSuspended,
    ExpireLinks,
    Publish,
    ResendHeld,
    Settle,
    SettleTags,
    Suspension,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.decide import started
from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.effects import ConsumerReady, ProducerReady, PublishDone
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.model.suspended_link import Keeping
from ambermq.engine.snapshots.state_codec import image_of, state_of
from tests.engine.world import World

KEEPINGS = st.sampled_from([Keeping(), Keeping(0, 5_000), Keeping(2, 5_000)])
ENDS = st.sampled_from(list(Suspension))


WEIGHTS = {"attach": 6, "attach_sender": 6, "deliver": 4, "post": 4, "publish": 4, "restart": 1, "settle_tags": 1}
Step = Callable[..., None]


def step(guard: Callable[["Recovery"], object] | None = None, **strategies: st.SearchStrategy[Any]) -> Any:
    """Mark a step of the machine: when it is possible, and the strategies of its arguments."""

    def marked(function: Step) -> Step:
        function.step = guard, strategies  # type: ignore[attr-defined]
        return function

    return marked


class Recovery(RuleBasedStateMachine):
    """One queue, one receiver, one sender in receiver-settle-mode second."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(EngineConfig(tick_changes_max=8))
        self.folded = EMPTY_STATE.with_fields(mode=self.world.state.mode)
        self.folded_count = 0
        self.consumer = 0
        self.open: set[int] = set()
        """The suspended links whose session lasts."""
        self.unsettled: dict[int, bool] = {}
        """The receiver's map: the words that it has not settled, and whether it accepts them."""
        self.accepted: set[int] = set()
        """What the broker has learnt as accepted."""
        self.producer = 0
        self.tags: dict[bytes, bool] = {}
        """The sender's map: tags, and whether it knows that they are accepted."""
        self.sent: set[bytes] = set()
        """Each tag is one message."""
        self.plain = self.world.producer()
        self.published = 0
        self.numbers = 0

    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        """Run some steps; those of WEIGHTS are likelier. One rule, since Hypothesis leaves out some of many rules."""
        for _ in range(4):
            names = [name for name, one in vars(Recovery).items() if hasattr(one, "step") and self._may(one)]
            name = data.draw(st.sampled_from([name for name in names for _ in range(WEIGHTS.get(name, 2))]))
            function = vars(Recovery)[name]
            arguments = {key: data.draw(one) for key, one in function.step[1].items() if key != "data"}
            if "data" in function.step[1]:
                arguments["data"] = data
            function(self, **arguments)
            self.check()

    def _may(self, function: Any) -> bool:
        guard = function.step[0]
        return guard is None or bool(guard(self))

    # The receiver

    @step(None, keeping=KEEPINGS, resumes=st.booleans())
    def attach(self, keeping: Keeping, resumes: bool) -> None:
        if self.consumer:
            return
        theirs = {word: ACCEPTED if is_accepted else None for word, is_accepted in self.unsettled.items()}
        command = AttachConsumer("key", "q", "c", "in", keeping=keeping, resumes=theirs if resumes else None)
        (ready,) = [one for one in self.world.do(command) if type(one) is ConsumerReady]
        self.consumer = ready.consumer
        self.world.demand.add(Want(ready.consumer, self.world.queue().id, "link"))
        left = [word for word in ready.held if not self.unsettled.get(word)]
        self.accepted |= {word for word in ready.held if self.unsettled.get(word)}
        again = self.world.do(ResendHeld(ready.consumer, "link", tuple(left)))
        # What is held and not settled by the map is sent again, each once.
        assert [word for effect in again for word in effect.words] == left  # type: ignore[union-attr]
        self.unsettled = dict.fromkeys(left, False)

    @step(lambda self: self.consumer, credit=st.integers(1, 4))
    def deliver(self, credit: int) -> None:
        self.world.set_credit(self.consumer, credit)
        words = self.world.dealt().get(self.consumer, [])
        assert not self.accepted.intersection(words)
        self.unsettled |= dict.fromkeys(words, False)

    @step(None, data=st.data())
    def accept_unheard(self, data: st.DataObject) -> None:
        """The receiver accepts a delivery; its disposition is lost, or was never sent."""
        if self.unsettled:
            self.unsettled[data.draw(st.sampled_from(sorted(self.unsettled)))] = True

    @step(lambda self: self.consumer and self.unsettled, data=st.data())
    def settle(self, data: st.DataObject) -> None:
        word = data.draw(st.sampled_from(sorted(self.unsettled)))
        self.world.do(Settle(self.consumer, pack_words([word]), ACCEPTED))
        self.accepted.add(word)
        del self.unsettled[word]

    @step(lambda self: self.consumer, end=ENDS)
    def detach(self, end: Suspension) -> None:
        self.world.demand.remove(self.consumer)
        self.world.do(DetachConsumer(self.consumer, suspension=end))
        if end is Suspension.OPEN:
            self.open.add(self.consumer)
        self.consumer = 0

    @step(None)
    def end_session(self) -> None:
        self.world.do(ExpireLinks(tuple(sorted(self.open))))
        self.open.clear()

    @step(None, seconds=st.integers(1, 6))
    def wait(self, seconds: int) -> None:
        self.world.now_us += 1_000_000 * seconds
        for link in sorted(self.world.state.suspended):
            self.world.do(EndSuspended(link))

    # The sender

    @step(None)
    def publish(self) -> None:
        self.world.publish(self.plain, 1, 1) if self.plain in self.world.state.producers else None
        self.published += 2 * (self.plain in self.world.state.producers)

    @step(None, keeping=KEEPINGS, resumes=st.booleans())
    def attach_sender(self, keeping: Keeping, resumes: bool) -> None:
        if self.producer:
            return
        command = AttachProducer("key", "q", "c", "out", keeping=keeping, resumes=set(self.tags) if resumes else None)
        (ready,) = [one for one in self.world.do(command) if type(one) is ProducerReady]
        self.producer = ready.producer
        # The broker knows no tag that was not stored, and none that the sender has settled.
        assert set(ready.kept) <= set(self.tags) & self.sent
        known = set(ready.kept)
        if resumes:
            for tag in [tag for tag in self.tags if tag not in known]:
                # Sent again, it is stored a second time only if the broker has forgotten it.
                self.sent.discard(tag)
        else:
            # Without recovery the sender gives them up.
            self.tags.clear()

    @step(lambda self: self.producer, is_heard=st.booleans())
    def post(self, is_heard: bool) -> None:
        self.numbers += 1
        tag = b"%d" % self.numbers
        self._send(tag, is_heard=is_heard)

    @step(lambda self: self.producer and self.tags, data=st.data(), is_heard=st.booleans())
    def resend(self, data: st.DataObject, is_heard: bool) -> None:
        self._send(data.draw(st.sampled_from(sorted(self.tags))), is_heard=is_heard)

    def _send(self, tag: bytes, *, is_heard: bool) -> None:
        before = self.world.queue().depth
        (done,) = self.world.do(Publish("link", self.producer, 0, [b"x"], [0], 1, tag=tag))
        assert type(done) is PublishDone
        is_new = tag not in self.sent
        assert self.world.queue().depth - before == is_new
        self.published += is_new
        self.sent.add(tag)
        self.tags[tag] = is_heard

    @step(lambda self: self.producer)
    def settle_tags(self) -> None:
        settled = tuple(tag for tag, is_heard in self.tags.items() if is_heard)
        self.world.do(SettleTags(self.producer, settled))
        for tag in settled:
            del self.tags[tag]

    @step(lambda self: self.producer, end=ENDS)
    def detach_sender(self, end: Suspension) -> None:
        self.world.do(DetachProducer(self.producer, suspension=end))
        if end is Suspension.OPEN:
            self.open.add(self.producer)
        self.producer = 0

    # The broker

    @step(None)
    def restart(self) -> None:
        """A kill: everything but the log is gone."""
        self.world.demand = Demand()
        for event in started(self.world.state, self.world.context):
            self.world.happened(event)
        self.consumer = self.producer = 0
        self.open.clear()
        self.plain = self.world.producer()

    def check(self) -> None:
        """Nothing is lost, and the fold is the state."""
        queue = self.world.queue()
        assert queue.accepted == len(self.accepted)
        assert queue.depth == self.published - len(self.accepted)
        held = [word for words in queue.acquired.values() for word in words]
        assert len(held) == queue.acquired_count == len(set(held))
        links = {*self.world.state.consumers, *self.world.state.suspended}
        assert set(queue.acquired) <= links
        assert set(self.world.state.tags) <= {*self.world.state.producers, *self.world.state.suspended}
        state = self.world.state
        self.folded = fold(self.folded, self.world.events[self.folded_count :])
        self.folded_count = len(self.world.events)
        assert self.folded == state
        assert state_of(image_of(state)) == state


TestRecovery = Recovery.TestCase
TestRecovery.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)
