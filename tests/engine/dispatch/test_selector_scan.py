"""Consumers with selectors: they get what they select, and block no other consumer."""

import sys
from collections.abc import Callable, Sequence
from itertools import accumulate, cycle, pairwise
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ambermq.engine.commands import AttachConsumer, DetachConsumer, PurgeQueue, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.dispatch.returned_walk import ReturnJournal
from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.effects import Deliver, Drained, Effect, RefusedCommand
from ambermq.engine.model.entry import Entry
from ambermq.engine.model.entry_word import WORD_BYTES, make_words, pack_words, unpack_words
from ambermq.engine.model.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.model.queue import Queue, Settings, new_queue
from ambermq.engine.selectors.fields import ABSENT, Added, Fields
from ambermq.engine.selectors.selector import parse_selector
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
        offsets.append(scan._position >> 16)
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
        self.queue = self.queue.push(make_words(self.next_offset, [100] * count), 100 * count)
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


def calls_of(function: Callable[[], object]) -> int:
    """Return how many calls of Python's and C's functions, and turns of generators, a call makes."""
    events: list[str] = []
    sys.setprofile(lambda _frame, event, _argument: events.append(event))
    try:
        function()
    finally:
        sys.setprofile(None)
    return events.count("call") + events.count("c_call")


def test_a_selector_reads_the_first_chunk_of_a_large_message() -> None:
    """It has the sections that a selector can name; the other chunks are not read for it."""
    rig = Rig(config=EngineConfig(chunk_bytes=500), fields_of=fields_of)
    body = b"a" + bytes(700) + b"b" * 700
    rig.do(rig.publish(rig.producer(), body))
    rig.consumer(selector="kind = 'b'", credit=1)
    consumer = rig.consumer(selector="kind = 'a'", credit=1)
    got = []
    for _ in range(4):
        got += delivered(rig.do() + rig.completed())
    assert got == [(consumer, body)]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_selecting_consumers_take_turns(count: int) -> None:
    """One after the other, also where each message takes two visits: one before its write, and one after it."""
    broker = Selecting()
    consumers = [broker.consumer("kind = 'a'", 9) for _ in range(count)]
    turns = [consumer for number in range(2 * count) for consumer in taken_by(broker.publish(b"a%d" % number))]
    assert turns == consumers * 2


def test_a_selecting_consumer_without_credit_is_passed_over() -> None:
    """Wherever it stands in the ring: the others get each message at once."""
    broker = Selecting()
    broker.consumer("kind = 'a'", 0)
    other = broker.consumer("kind = 'a'", 9)
    assert [taken_by(broker.publish(b"a%d" % number)) for number in range(4)] == [[other]] * 4


def taken_by(effects: list[Effect]) -> list[int]:
    """Return the consumers of deliveries, in order."""
    return [effect.consumer for effect in effects if type(effect) is Deliver for _ in effect.words]


@pytest.mark.parametrize("came_back", [False, True])
def test_a_message_more_costs_the_same_whatever_waits_before_it(*, came_back: bool) -> None:
    """What was looked at is neither read again nor walked along, be it a part of a chunk or many chunks."""
    costs = set()
    for count in (10, 1000, 5000, 50_000):
        scan, queue = SelectorScan(parse_selector("kind = 'a'", bytes_max=100)), new_queue(1, "q", Settings())
        words = make_words(10, [100] * count)
        queue = queue.push(words, 100 * count)
        if came_back:
            queue = queue.acquire((7,), words).settle(7, words, RELEASED)
        while walked(scan, queue, count):
            pass
        for offset in range(10 + count, 15 + count):
            word = make_words(offset, [100])
            queue = queue.push(word, 100)
            with mock.patch("ambermq.engine.dispatch.selector_scan.unpack_words", wraps=unpack_words) as reads:
                costs.add(calls_of(lambda scan=scan, queue=queue: scan.ahead(queue, ReturnJournal(), 200)))
            assert max(len(call.args[0]) for call in reads.call_args_list) == WORD_BYTES
            assert pack_words(walked(scan, queue, 200)) == word
            assert not walked(scan, queue, 200)
    assert max(costs) < 100


def test_what_came_back_is_looked_at_once_for_each_return() -> None:
    """Its failures may have changed, though the words are the same; what did not come back is not looked at again."""
    scan, queue = SelectorScan(parse_selector("kind = 'a'", bytes_max=100)), new_queue(1, "q", Settings())
    journal = ReturnJournal()
    words = make_words(10, [100, 100, 100])
    queue = queue.push(words, 300)
    for _ in range(3):
        queue = queue.acquire((7,), words).settle(7, words, MODIFIED_FAILED)
        journal.note(words)
        assert pack_words(walked(scan, queue, 5, journal)) == words
        assert not walked(scan, queue, 5, journal)
        queue = queue.acquire((7,), words[:WORD_BYTES]).settle(7, words[:WORD_BYTES], RELEASED)
        journal.note(words[:WORD_BYTES])
        assert pack_words(walked(scan, queue, 5, journal)) == words[:WORD_BYTES]
        assert not walked(scan, queue, 5, journal)


def test_what_others_take_and_give_back_costs_a_scan_nothing_more() -> None:
    """Of 30,000 returned messages one is taken, then given back: the scan reads that one, whatever lies around it."""
    scan, queue = SelectorScan(parse_selector("kind = 'a'", bytes_max=100)), new_queue(1, "q", Settings())
    journal = ReturnJournal()
    words = make_words(10, [100] * 30_000)
    queue = queue.push(words, 3_000_000).acquire((7,), words).settle(7, words, RELEASED)
    while walked(scan, queue, 2000, journal):
        pass
    for place in (0, 12_345, 29_990):
        word = words[place * WORD_BYTES : (place + 1) * WORD_BYTES]
        queue = queue.acquire((7,), word)
        assert calls_of(lambda queue=queue: scan.ahead(queue, journal, 200)) < 100
        assert not walked(scan, queue, 200, journal)
        queue = queue.settle(7, word, RELEASED)
        journal.note(word)
        assert calls_of(lambda queue=queue: scan.ahead(queue, journal, 200)) < 150
        assert pack_words(walked(scan, queue, 200, journal)) == word
        assert not walked(scan, queue, 200, journal)


def test_a_selector_without_a_match_does_not_delay_the_others() -> None:
    """A consumer behind others, or alone with what it does not want, blocks no other consumer."""
    broker = Selecting()
    broker.consumer("kind = 'none'", 10)
    reader = broker.consumer("", 10)
    effects = broker.publish(b"a1", b"b2", b"a3")
    assert delivered(effects) == [(reader, b"a1"), (reader, b"b2"), (reader, b"a3")]


def test_a_tick_looks_at_a_bounded_number() -> None:
    """The rest is the next tick's, and nothing is looked at twice."""
    broker = Selecting(scan_messages_max=10)
    broker.publish(*[b"b"] * 95, b"a")
    looked: list[int] = []
    look = broker.rig.loop._peek

    def watched(queue: int, words: Sequence[int], entries: Sequence[Entry | None]) -> Any:
        looked.append(len(words))
        return look(queue, words, entries)

    broker.rig.loop._peek = watched
    consumer = broker.rig.consumer(selector="kind = 'a'", credit=1)
    broker.selectors[consumer], broker.credit[consumer] = "kind = 'a'", 1
    assert len(broker.rig.step()) == 0
    assert sum(looked) <= 10
    broker.do()
    assert broker.held[0][0] == consumer
    # Only those whose bodies were still to be read are asked for again.
    assert max(looked) <= 10
    broker.publish(b"b")
    broker.grant(consumer, 1)
    assert sum(looked[-2:]) <= 10 + 10


def test_a_drain_waits_for_the_end_of_the_walk() -> None:
    """All that is selected comes first, from memory and disk; then the credit is given back."""
    broker = Selecting(scan_messages_max=3)
    broker.publish(*[b"b" + bytes(200)] * 20, b"a1", *[b"b"] * 10, b"a2")
    broker.rig.forget_pages()
    consumer = broker.consumer("kind = 'a'", 0)
    effects = broker.grant(consumer, 5, draining=True)
    assert [type(effect) for effect in effects] == [Deliver, Deliver, Drained]
    assert delivered(effects) == [(consumer, b"a1"), (consumer, b"a2")]


def test_an_empty_queue_is_drained_at_once() -> None:
    """There is nothing to walk along."""
    broker = Selecting()
    consumer = broker.consumer("kind = 'a'", 0)
    assert [type(effect) for effect in broker.grant(consumer, 5, draining=True)] == [Drained]


def test_counts_are_those_of_the_queue() -> None:
    """A message that failed once is redelivered, whatever its own header says."""
    broker = Selecting()
    broker.publish(b"a")
    failing = broker.consumer("", 1)
    again = broker.consumer("JMSRedelivered = TRUE", 1)
    broker.settle(0, MODIFIED_FAILED)
    assert [consumer for consumer, _ in broker.held] == [again]
    assert failing != again


@pytest.mark.parametrize("outcome", [RELEASED, MODIFIED_FAILED])
def test_what_is_given_back_comes_again_each_time(outcome: Outcome) -> None:
    """A consumer that released a matching message gets it again, also if nothing has changed."""
    broker = Selecting()
    consumer = broker.consumer("kind = 'a'", 5)
    broker.publish(b"a", b"b")
    (held,) = broker.held
    for _ in range(4):
        broker.settle(0, outcome)
        assert broker.held == [held]
    assert broker.credit[consumer] == 0


def test_annotations_are_those_that_it_has_now() -> None:
    """A message that a receiver has modified is looked at again, though its count of failures is what it was."""
    rig = Rig(fields_of=fields_of)
    producer = rig.producer()
    marked = rig.consumer(selector="annotations.mark = 'seen'", credit=1)
    modifying = rig.consumer(selector="annotations.mark IS NULL", credit=1)
    (given,) = [effect for effect in rig.do(rig.publish(producer, b"a")) if type(effect) is Deliver]
    assert given.consumer == modifying
    outcome = Outcome(OutcomeKind.MODIFIED, annotations=((b"mark", b"seen"),))
    effects = rig.do(Settle(modifying, pack_words(given.words), outcome))
    assert delivered(effects) == [(marked, b"a")]


def test_a_message_that_cannot_be_read_is_set_aside() -> None:
    """It matches no selector, and the scan continues behind it."""
    broker = Selecting()
    broker.publish(b"a" + b"damaged" * 20)
    broker.publish(*[b"b" + bytes(300)] * 5, b"a2")
    broker.rig.forget_pages()
    broker.rig.damage(b"a" + b"damaged" * 20)
    consumer = broker.rig.consumer(selector="kind = 'a'", credit=5)
    broker.selectors[consumer], broker.credit[consumer] = "kind = 'a'", 0
    effects: list[Effect] = []
    for _ in range(5):
        effects += broker.rig.completed() + broker.rig.do()
    assert delivered(effects) == [(consumer, b"a2")]
    assert broker.rig.queue().counters.damaged == 1


@pytest.mark.parametrize("selector", ["kind =", "kind = 'a", "kind LIKE 3"])
def test_a_bad_selector_is_refused(selector: str) -> None:
    """Named are the place and what stands there; nothing is made."""
    rig = Rig()
    (effect,) = rig.do(AttachConsumer("key", "q", "c", "l", selector=selector))
    assert type(effect) is RefusedCommand
    assert effect.condition == "amqp:invalid-field"
    assert "character" in effect.description
    assert not rig.loop.state.queues
