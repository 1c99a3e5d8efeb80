"""Consumers with selectors: they get what they select, and block no other consumer."""

from collections.abc import Callable, Sequence
from itertools import accumulate, cycle, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ambermq.engine.commands import DetachConsumer, PurgeQueue, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.dispatch.returned_walk import ReturnJournal
from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.effects import Deliver, Effect
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import make_words, pack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.model.queue import Queue, new_queue
from ambermq.engine.selectors.fields import ABSENT, Added, Fields
from ambermq.engine.selectors.selector import parse_selector
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.time_budget import standing_clock
from ambermq.log.buffer import Buffer
from tests.engine.rig import Rig, delivered

SELECTORS = ("", "kind = 'a'", "kind <> 'a'", "JMSRedelivered = TRUE", "kind = 'none'")
OUTCOMES = (ACCEPTED, RELEASED, MODIFIED_FAILED, Outcome(OutcomeKind.MODIFIED, undeliverable_here=True))


class _Fields:
    """A message whose first character is its kind; annotations are those that were added, as they are."""

    def __init__(self, body: Buffer, added: Added = (), /) -> None:
        self.kind = bytes(body[:1]).decode()
        self.added = {f"annotations.{key.decode()}": value.decode() for key, value in added}

    def get(self, name: str) -> Any:
        return self.kind if name == "kind" else self.added.get(name, ABSENT)


def fields_of(body: Buffer, added: Added = (), /) -> Fields:
    """Read what the messages of these tests say."""
    return _Fields(body, added)


def is_selected(selector: str, kind: str, count: int) -> bool:
    """What a selector says of a message, told without it."""
    told = {"": True, "kind = 'a'": kind == "a", "kind <> 'a'": kind != "a", "JMSRedelivered = TRUE": count > 0}
    return told.get(selector, False)


class Selecting:
    """A broker whose queue has consumers with selectors."""

    def __init__(self, clock_ns: Callable[[], int] = standing_clock, **limits: int) -> None:
        self.rig = Rig(config=EngineConfig(**limits), fields_of=fields_of, clock_ns=clock_ns)
        self.producer = self.rig.producer()
        log = self.rig.loop.log
        get_run = log.bodies.get_run

        def written(offsets: Sequence[int]) -> list[Buffer] | None:
            assert all(offset < log.log_end for offset in offsets)
            return get_run(offsets)

        # A message that is not in the log yet cannot be read.
        log.bodies.get_run = written  # type: ignore[method-assign]
        self.selectors: dict[int, str] = {}
        self.credit: dict[int, int] = {}
        self.held: list[tuple[int, int]] = []

    def consumer(self, selector: str, credit: int) -> int:
        consumer = self.rig.consumer(selector=selector)
        self.selectors[consumer] = selector
        self.grant(consumer, credit)
        return consumer

    def grant(self, consumer: int, credit: int, *, draining: bool = False) -> list[Effect]:
        self.credit[consumer] = credit
        self.rig.loop.set_credit(consumer, credit, draining=draining)
        return self.do()

    def publish(self, *bodies: bytes) -> list[Effect]:
        return self.do(self.rig.publish(self.producer, *bodies))

    def do(self, *commands: Any) -> list[Effect]:
        """Run until no work is left, collect the deliveries, and check that each consumer has its own."""
        effects = self.rig.do(*commands)
        for _ in range(200):
            if self.rig.loop.demand.parked:
                effects += self.rig.completed() + self.rig.do()
        assert not self.rig.loop.demand.parked
        for effect in effects:
            if type(effect) is Deliver:
                self.heard(effect)
        self.check()
        return effects

    def heard(self, effect: Deliver) -> None:
        entries = effect.entries or [None] * len(effect.words)
        for word, entry, body in zip(effect.words, entries, effect.bodies, strict=True):
            count = entry.count if entry else 0
            assert is_selected(self.selectors[effect.consumer], bytes(body[:1]).decode(), count)
            self.held.append((effect.consumer, word))
            self.credit[effect.consumer] -= 1

    def check(self) -> None:
        """Each consumer with credit has all available messages that it selects."""
        queue = self.rig.queue()
        for consumer, credit in self.credit.items():
            assert credit >= 0
            if credit and consumer in self.rig.loop.demand.wants:
                for word in (*queue.returned, *queue.ready):
                    entry = queue.entries.get(word >> 16, Entry())
                    selected = is_selected(self.selectors[consumer], self.kind(word, entry), entry.count)
                    assert not selected or consumer in entry.excluded

    def kind(self, word: int, entry: Entry) -> str:
        """Read a message's first piece, from the disk where it must be."""
        bodies = self.rig.loop.log.bodies
        offset = entry.chunks[0] if entry.chunks else word >> 16
        body = bodies.get(offset)
        while body is None:
            self.rig.loop.log.completed()
            body = bodies.get(offset)
        return bytes(body[:1]).decode()

    def settle(self, pick: int, outcome: Outcome) -> None:
        if self.held:
            consumer, word = self.held.pop(pick % len(self.held))
            self.do(Settle(consumer, pack_words([word]), outcome))


KINDS = st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.sampled_from([0, 300, 900, 2500])), max_size=12)
STEPS = st.one_of(
    st.tuples(st.just("publish"), KINDS),
    st.tuples(st.just("consumer"), st.sampled_from(SELECTORS), st.integers(0, 6)),
    st.tuples(st.just("grant"), st.integers(0, 9), st.integers(0, 6)),
    st.tuples(st.just("settle"), st.integers(0, 99), st.sampled_from(OUTCOMES)),
    st.tuples(st.just("detach"), st.integers(0, 9)),
    st.tuples(st.just("purge")),
)


CLOCKS = st.lists(st.sampled_from([0, 300, 1000, 5000]), min_size=1, max_size=5)


def clock_of(steps_us: Sequence[int]) -> Callable[[], int]:
    """Return a clock that goes on by these steps, again and again."""
    return accumulate(cycle([step * 1000 for step in steps_us])).__next__


@given(st.lists(STEPS, max_size=25), st.integers(1, 5), CLOCKS)
@settings(deadline=None, max_examples=60)
def test_everybody_gets_what_he_selects(steps: Sequence[tuple[Any, ...]], looks: int, clock: Sequence[int]) -> None:
    """Whatever happens, and however little is looked at in a tick: what comes is selected, what is selected comes."""
    broker = Selecting(clock_of(clock), scan_messages_max=looks, chunk_bytes=1000, matching_us_max=1000)
    for what, *arguments in steps:
        consumers = sorted(broker.selectors)
        match what:
            case "publish" if arguments[0]:
                broker.publish(*[kind + bytes(size) for kind, size in arguments[0]])
            case "consumer":
                broker.consumer(*arguments)
            case "grant" if consumers:
                broker.grant(consumers[arguments[0] % len(consumers)], arguments[1])
            case "settle":
                broker.settle(*arguments)
            case "detach" if consumers:
                consumer = consumers[arguments[0] % len(consumers)]
                del broker.selectors[consumer], broker.credit[consumer]
                broker.held = [pair for pair in broker.held if pair[0] != consumer]
                broker.do(DetachConsumer(consumer))
            case "purge":
                broker.do(PurgeQueue("key", "q"))


@given(st.lists(st.one_of(STEPS.filter(lambda step: step[0] in {"publish", "settle"})), max_size=25), CLOCKS)
@settings(deadline=None, max_examples=60)
def test_a_budget_decides_when_and_not_what(steps: Sequence[tuple[Any, ...]], clock: Sequence[int]) -> None:
    """A consumer gets the same messages in the same order, however little time a tick has for its selector."""
    brokers = [Selecting(chunk_bytes=1000), Selecting(clock_of(clock), matching_us_max=1000, chunk_bytes=1000)]
    for broker in brokers:
        broker.consumer("kind = 'a'", 1000)
        for what, *arguments in steps:
            if what == "settle":
                broker.settle(*arguments)
            elif arguments[0]:
                broker.publish(*[kind + bytes(size) for kind, size in arguments[0]])
    assert brokers[0].held == brokers[1].held
    assert list(brokers[0].rig.queue().ready) == list(brokers[1].rig.queue().ready)


def test_a_tick_ends_a_scan_after_its_time() -> None:
    """Of messages that take 1 ms each a tick of 3 ms tests 4, and the next tick goes on behind them."""
    broker = Selecting(clock_of([1000]), matching_us_max=3000)
    broker.publish(*[b"b"] * 20)
    consumer = broker.rig.consumer(selector="kind = 'a'", credit=1)
    scan = broker.rig.loop.demand.wants[consumer].scan
    assert scan is not None
    offsets = []
    for _ in range(4):
        broker.rig.step()
        offsets.append(scan._place.position >> 16)
    assert [second - first for first, second in pairwise(offsets)] == [3, 3, 3]


class _LongFields:
    """A message whose field `text` is its body."""

    def __init__(self, body: Buffer, added: Added = (), /) -> None:
        self.text = bytes(body).decode() + "".join(value.decode() for _, value in added)

    def get(self, name: str) -> Any:
        return self.text if name == "text" else ABSENT


@pytest.mark.parametrize("step_us", [0, 5000])
def test_a_test_of_a_large_message_pauses(step_us: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages before and behind it come too, and one that comes back is tested as it is then."""
    for name in ("dispatch.selector_scan.LONG_BYTES", "selectors.terms.LONG_BYTES", "selectors.like._BLOCK"):
        monkeypatch.setattr(f"ambermq.engine.{name}", 20)
    rig = Rig(config=EngineConfig(matching_us_max=1000), fields_of=_LongFields, clock_ns=clock_of([step_us]))
    bodies = [b"n" * 30, b"a" * 300 + b"xz", b"y" * 300, b"z"]
    rig.do(rig.publish(rig.producer(), *bodies))
    picky = rig.consumer(selector="text LIKE '%q_q%' OR text LIKE '%x_%' OR text LIKE 'z%'", credit=9)
    ticks = 1
    effects = rig.step()
    while rig.loop.demand.dirty or rig.loop.demand.parked:
        effects += rig.completed() + rig.step()
        ticks += 1
    effects += rig.completed()
    assert delivered(effects) == [(picky, bodies[1]), (picky, bodies[3])]
    assert (ticks > 20) is bool(step_us)
    other = rig.consumer(credit=1)
    rig.do()
    marked = Outcome(OutcomeKind.MODIFIED, annotations=((b"mark", b"qqq"),))
    assert delivered(rig.do(Settle(other, rig.queue().held_by(other).to_bytes(), marked))) == [(picky, bodies[0])]


def walked(scan: SelectorScan, queue: Queue, count: int, journal: ReturnJournal | None = None) -> list[int]:
    """Go on along a queue by one part, where nothing is taken; return the words looked at, none at its end."""
    words = scan.ahead(queue, journal or ReturnJournal(), count)
    assert len(words) <= count
    for word in words:
        scan.pass_by(word)
    return list(words)


class WalkMachine(RuleBasedStateMachine):
    """A walk along a queue of many chunks, which grows and loses words while it lasts."""

    @initialize()
    def begin(self) -> None:
        self.scan = SelectorScan(parse_selector("kind = 'a'", bytes_max=100))
        self.queue = new_queue(1, "q", Settings())
        self.next_offset = 10
        self.looked: list[int] = []

    @rule(count=st.one_of(st.integers(1, 9), st.sampled_from([1023, 1024, 1025, 3000])))
    def publish(self, count: int) -> None:
        self.queue = self.queue.push(make_words(self.next_offset, [100] * count), 100 * count, 0)
        self.next_offset += count

    @rule(count=st.one_of(st.integers(1, 9), st.integers(1, 4000)))
    def acquire_first(self, count: int) -> None:
        self.queue = self.queue.acquire((7,), self.queue.ready.head(count))

    @rule(start=st.floats(0, 1), count=st.one_of(st.integers(1, 9), st.integers(1, 4000)), step=st.integers(1, 5))
    def acquire_between(self, start: float, count: int, step: int) -> None:
        words = list(self.queue.ready)
        first = int(start * len(words))
        self.queue = self.queue.acquire((7,), pack_words(words[first : first + count : step]))

    @rule(before=st.floats(0, 1))
    def purge(self, before: float) -> None:
        self.queue = self.queue.purge(int(before * self.next_offset))

    @rule(count=st.sampled_from([1, 200, 2000]), parts=st.integers(1, 9))
    def walk(self, count: int, parts: int) -> None:
        for _ in range(parts):
            self.looked += walked(self.scan, self.queue, count)

    @rule(count=st.sampled_from([200, 2000]))
    def walk_to_the_end(self, count: int) -> None:
        while words := walked(self.scan, self.queue, count):
            self.looked += words
        assert set(self.queue.ready).issubset(self.looked)

    @invariant()
    def each_is_looked_at_once_in_order(self) -> None:
        assert self.looked == sorted(set(self.looked))


TestWalk = WalkMachine.TestCase
TestWalk.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
