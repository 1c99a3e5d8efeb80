"""Turns and costs of selecting consumers: who is next, what is looked at, and what is not looked at again."""

import sys
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import pytest

from ambermq.engine.commands import AttachConsumer, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.dispatch.returned_walk import ReturnJournal
from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.effects import Deliver, Drained, Effect, RefusedCommand
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, make_words, pack_words, unpack_words
from ambermq.engine.entries.outcome import MODIFIED_FAILED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.model.queue import new_queue
from ambermq.engine.selectors.selector import parse_selector
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.dispatch.test_selector_scan import Selecting, fields_of, walked
from tests.engine.rig import Rig, delivered


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
        queue = queue.push(words, 100 * count, 0)
        if came_back:
            queue = queue.acquire((7,), words).settle(7, words, RELEASED)
        while walked(scan, queue, count):
            pass
        for offset in range(10 + count, 15 + count):
            word = make_words(offset, [100])
            queue = queue.push(word, 100, 0)
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
    queue = queue.push(words, 300, 0)
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
    queue = queue.push(words, 3_000_000, 0).acquire((7,), words).settle(7, words, RELEASED)
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
