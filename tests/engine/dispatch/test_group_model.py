"""Groups against a model: who owns each group, in which order its messages go, and that none is lost."""

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachConsumer, Command, DetachConsumer, EndSuspended, Settle, Suspension
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import ConsumerReady, Deliver, Effect
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.suspended_link import UNSETTLED_STATE, Keeping
from ambermq.engine.selectors.fields import ABSENT, Added, Fields
from ambermq.log.buffer import Buffer
from tests.engine.decide.messages.test_dead_letters import again, declare
from tests.engine.dispatch.test_groups import HERE, code_of, run_of
from tests.engine.rig import Rig


class Parity:
    """The fields of a message: whether the last figure of its body is even."""

    def __init__(self, body: Buffer) -> None:
        self.kind = "even" if body[-1] % 2 == 0 else "odd"

    def get(self, name: str) -> Any:
        """Return the value of a field."""
        return self.kind if name == "kind" else ABSENT


def parity_of(body: Buffer, _added: Added = (), /) -> Fields:
    """Read the fields of a body."""
    return Parity(body)


KEEPING = Keeping(UNSETTLED_STATE, 300_000)
SELECTORS = {"": "evenodd", "kind = 'odd'": "odd", "kind = 'even'": "even", "kind <> 'none'": "evenodd"}


class Model:
    """Who may get what: the owners of groups, and the order in each."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.waiting: set[bytes] = set()
        self.out: dict[int, tuple[bytes, int]] = {}
        """The body and consumer of each word that is out."""
        self.selectors: dict[int, str] = {}
        """By consumer."""
        self.links: dict[int, str] = {}
        """The name of the link of each consumer."""
        self.suspended: list[int] = []
        """Consumers whose links are suspended, and hold what they held."""

    def do(self, *commands: Command) -> None:
        """Run commands, and check what is delivered."""
        effects = self.rig.do(*commands)
        self.deliver(effects)
        queue = self.rig.queue()
        assert queue.depth == len(self.waiting) + len(self.out)
        for effect in effects:
            if type(effect) is Deliver:
                for word in effect.words:
                    self.check_order(queue, word)

    def publish(self, producer: int, *bodies: bytes) -> None:
        """Publish messages."""
        self.waiting.update(bodies)
        self.do(run_of(producer, *bodies))

    def attach(self, selector: str, credit: int, resumes: int = 0) -> int:
        """Attach a consumer, one that resumes the link of another one if that is given."""
        held = [word for word, (_, who) in self.out.items() if who == resumes]
        link = self.links[resumes] if resumes else f"link {len(self.links)}"
        command = AttachConsumer("key", "q", "container", link, False, selector, keeping=KEEPING)
        command.resumes = dict.fromkeys(held)
        effects = self.rig.do(command)
        (consumer,) = [effect.consumer for effect in effects if type(effect) is ConsumerReady]
        self.selectors[consumer], self.links[consumer] = selector, link
        self.out.update({word: (self.out[word][0], consumer) for word in held})
        self.deliver(effects)
        self.grant(consumer, credit)
        return consumer

    def grant(self, consumer: int, credit: int) -> None:
        """Set the credit of a consumer."""
        self.rig.loop.set_credit(consumer, credit)
        self.do()

    def detach(self, consumer: int) -> None:
        """End a consumer."""
        for word in [word for word, (_, who) in self.out.items() if who == consumer]:
            self.waiting.add(self.out.pop(word)[0])
        self.do(EndSuspended(consumer, is_forced=True) if consumer in self.suspended else DetachConsumer(consumer))

    def suspend(self, consumer: int) -> None:
        """Detach a consumer without closing its link; with nothing to hold it ends."""
        self.do(DetachConsumer(consumer, suspension=Suspension.OVER))
        self.suspended += [consumer] if any(who == consumer for _, who in self.out.values()) else []

    def restart(self) -> None:
        """Start the broker anew: links that hold something are suspended."""
        self.rig.loop.make_due()
        self.rig.do()
        self.rig.kill()
        self.rig = Rig(self.rig.storage, config=self.rig.loop.config, fields_of=parity_of, now_us=self.rig.now_us)
        self.suspended = sorted({who for _, who in self.out.values()})

    def settle(self, word: int, outcome: Outcome) -> None:
        """Settle a delivery."""
        body, who = self.out.pop(word)
        if outcome is not ACCEPTED:
            self.waiting.add(body)
        self.rig.loop.make_due()
        self.do(Settle(who, pack_words([word]), outcome))

    def deliver(self, effects: Sequence[Effect]) -> None:
        """Check that each message is out once, and those of a group with one consumer."""
        for effect in effects:
            if type(effect) is not Deliver:
                continue
            for word, raw in zip(effect.words, effect.bodies, strict=True):
                body, consumer = bytes(raw), effect.consumer
                assert word not in self.out
                assert Parity(body).kind in SELECTORS[self.selectors[consumer]]
                self.out[word] = body, consumer
                self.waiting.discard(body)
                if body[:1] != b"-":
                    assert {who for other, who in self.out.values() if other[:1] == body[:1]} == {consumer}

    def check_order(self, queue: Queue, word: int) -> None:
        """Check that no earlier message of a group waits which the consumer may have."""
        body, consumer = self.out[word]
        code = code_of(body)
        for list_of in (*queue.available_lists, queue.delayed) if code else ():
            for other in list_of:
                entry = queue.entries.get(other >> 16, PLAIN)
                if entry.group == code and other < word and consumer not in entry.excluded:
                    (other_body,) = [one for one in self.waiting if int(one[1:]) == self.numbers[other >> 16]]
                    assert Parity(other_body).kind not in SELECTORS[self.selectors[consumer]]

    @property
    def numbers(self) -> dict[int, int]:
        """The number of each entry that waits: entries rise as the numbers of bodies do."""
        queue = self.rig.queue()
        entries = sorted(word >> 16 for words_of in (*queue.available_lists, queue.delayed) for word in words_of)
        return dict(zip(entries, sorted(int(body[1:]) for body in self.waiting), strict=True))


def attach_or_resume(model: Model, rng: random.Random, *, is_selecting: bool) -> int:
    """Attach a new consumer, or one that resumes a suspended link."""
    selector = rng.choice(list(SELECTORS)) if is_selecting else ""
    resumes = 0
    if model.suspended and rng.random() < 0.7:
        resumes = model.suspended.pop(rng.randrange(len(model.suspended)))
    return model.attach(selector, rng.choice((0, 1, 5)), resumes)


@given(
    st.randoms(use_true_random=False), st.integers(5, 80), st.sampled_from(["", "selecting", "delayed"]), st.booleans()
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_mix_obeys_the_model(rng: random.Random, steps: int, kind: str, suspends: bool) -> None:
    """One consumer at a time for each group, in order; nothing is lost; the log has the same state.

    Some links are suspended, some over a start of the broker.
    """
    limits = {"groups_max": rng.choice((1, 3, 100)), "dispatch_messages_max": rng.choice((3, 2000))}
    rig = Rig(config=EngineConfig(**limits), fields_of=parity_of)
    delay_ms = rng.choice((0, 50)) if kind == "selecting" else 50 * (kind == "delayed")
    declare(rig, "q", groups=True, group_rebalance=rng.random() < 0.3, redelivery_delay_ms=delay_ms)
    producer, model, number = rig.producer(), Model(rig), 0
    consumers: list[int] = []
    for _ in range(steps):
        match rng.randrange(9 if suspends else 7):
            case 0 | 1:
                count = rng.randint(1, 5)
                bodies = [rng.choice((b"a", b"b", b"c", b"-")) + b"%06d" % (number + one) for one in range(count)]
                number += count
                model.publish(producer, *bodies)
            case 2 if len(consumers) < 4:
                consumers.append(attach_or_resume(model, rng, is_selecting=kind == "selecting"))
            case 3 if consumers:
                model.grant(rng.choice(consumers), rng.choice((0, 1, 2, 50)))
            case 4 if consumers and rng.random() < 0.4:
                model.detach(consumers.pop(rng.randrange(len(consumers))))
            case 5 if delay_ms:
                model.rig.now_us += 40_000
                model.do()
            case 7 if consumers:
                model.suspend(consumers.pop(rng.randrange(len(consumers))))
            case 8 if rng.random() < 0.2:
                model.restart()
                consumers.clear()
                producer = model.rig.producer()
            case _:
                outcome = rng.choice((ACCEPTED, ACCEPTED, RELEASED, MODIFIED_FAILED, HERE))
                held = sorted(word for word, (_, who) in model.out.items() if who not in model.suspended)
                if held:
                    model.settle(rng.choice(held), outcome)
    last = model.attach("", 1000)
    for consumer in consumers + model.suspended:
        model.detach(consumer)
    model.rig.now_us += 100_000
    model.do()
    while model.rig.loop.schedule.timer_us <= model.rig.now_us:
        model.do()
    assert not model.waiting
    assert {who for _, who in model.out.values()} <= {last}
    again(model.rig)


def test_a_delay_holds_back_its_group_after_a_start() -> None:
    """Also where all consumers have selectors: their scans alone find the messages."""
    rig = Rig(fields_of=parity_of)
    declare(rig, "q", groups=True, redelivery_delay_ms=50)
    model = Model(rig)
    model.attach("", 1)
    model.publish(rig.producer(), b"a000000", b"a000002", b"b000004")
    (word,) = model.out
    model.settle(word, MODIFIED_FAILED)
    model.restart()
    model.attach("kind = 'even'", 5)
    assert {body for body, _ in model.out.values()} == {b"b000004"}
    model.rig.now_us += 100_000
    model.do()
    assert not model.waiting
