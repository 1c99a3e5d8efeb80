"""`python -m bench.stalls.scan_steps [NAME]...`: the longest uninterrupted steps of scans and matches, as JSON.

Each measure builds what one hostile or unlucky peer can cause, without sockets, and returns milliseconds of CPU for the
longest step between two turns of the event loop. So it can be run in any checkout, before and after a change.

    like                one LIKE with a pattern of 4,000 characters on a text of 8,192, the slowest of several
    selector-tick       a tick that scans 200 messages of 8 KiB with such a selector
    long-text           a tick that scans messages with 900 KiB of text for 149 patterns
    returned            a selector on 30,000 returned messages, while another consumer takes one after the other
    excluded            40,000 returned messages, one of which excludes a consumer; also the us for each
    deep                the first and a later removal out of order, deep in a queue of 5,000,000 messages
    publish             a tick that routes 2,000 messages by 1,000 selectors that match none of them
    property-hits       a tick that routes one message by a PROPERTY muxer, whose 100,000 attachments all match it
    scattered-return    the release of 1,000 messages that lie among 2,000,000 returned ones
    return-journal      a walk that passes 60,000 messages that came back and went again
    long-selector       the parse of a selector with as many tokens as the broker accepts, the slowest of several
    first-selector      the first selector in a process whose parser was prepared, if it can be
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from ambermq.engine.commands import AttachConsumer, AttachMember, AttachProducer, DeclareMuxer, DeclareQueue, Publish
from ambermq.engine.config import EngineConfig
from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.dispatch.dispatch import dispatch
from ambermq.engine.dispatch.returned_walk import ReturnedCursor, ReturnJournal
from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.effects import ConsumerReady, Deliver, Effect, ProducerReady
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, make_words
from ambermq.engine.entries.outcome import RELEASED
from ambermq.engine.entries.redelivery_order import merge_returned
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.loop.schedule import SOON
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.queue import Queue, new_queue
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.selectors import selector as selectors
from ambermq.engine.selectors.like import compile_like
from ambermq.engine.selectors.selector import parse_selector
from ambermq.engine.settings.queue_settings import Settings as QueueSettings
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import ThreadWorkers
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.tools.broker.process_tuning import tune_interpreter

__all__ = ["MEASURES", "longest_ms", "main"]

_QUEUE: Final = 3
_READER: Final = 7
_RUN: Final = 2000
_SELECTORS: Final = 1000
_LONG: Final = 900 << 10
_BACKLOG: Final = 5_000_000
_RETURNED: Final = 30_000
_RETURNED_MANY: Final = 2_000_000
_EXCLUDED: Final = 40_000
_NOTED: Final = 60_000
_HITS: Final = 100_000
_CONDITIONS: Final = (Condition("a", True, 1), Condition("b", True, 2))
_PATTERNS: Final = (
    f"%{'a' * 2000}b%",
    f"%{'a' * 1000}b{'a' * 1000}%",
    f"%{'a_' * 2000}c%",
    f"%{'a_b%' * 1000}c%",
)
_TEXT: Final = "bc" + "a" * 8190


def longest_ms(calls: Iterator[Callable[[], object]]) -> float:
    """Return the CPU milliseconds of the longest of several calls."""
    longest = 0.0
    for call in calls:
        began = time.process_time()
        call()
        longest = max(longest, time.process_time() - began)
    return longest * 1e3


def _measure_like() -> dict[str, float]:
    matches = [compile_like(pattern) for pattern in _PATTERNS]
    return {"ms": longest_ms(partial(one, _TEXT) for one in matches for _ in range(3))}


class _Peer:
    """An engine over a log in a temporary directory, stepped by hand."""

    def __init__(self, directory: Path) -> None:
        recovery = Recovery.open(DiskStorage(), str(directory), LogConfig(), _now_us())
        config = EngineConfig(snapshot_bytes=0, snapshot_interval_s=0)
        clock: dict[str, Any] = {"clock_ns": time.monotonic_ns} if hasattr(config, "matching_us_max") else {}
        state = fold_log(recovery)
        self.loop = DurableLoop(recovery.log(ThreadWorkers()), state, config, RoutingFields, **clock)
        self.loop.start(_now_us())
        self.longest_ms = 0.0
        self.ticks = 0

    def run(self, *commands: Any) -> list[Effect]:
        """Run commands until all is durable; `longest_ms` is the longest step."""
        effects = list[Effect]()
        for command in commands:
            self.loop.submit(command)
        while self.loop.schedule.due(_now_us()) >= SOON or self.loop.is_waiting:
            began = time.process_time()
            effects += self.loop.step(_now_us())
            self.longest_ms = max(self.longest_ms, (time.process_time() - began) * 1e3)
            self.ticks += 1
            time.sleep(0.0005)
            began = time.process_time()
            effects += self.loop.completed(_now_us())
            self.longest_ms = max(self.longest_ms, (time.process_time() - began) * 1e3)
        return effects

    def producer(self, address: str) -> int:
        """Attach a producer."""
        (ready,) = [one for one in self.run(AttachProducer("", address, "bench", "x")) if type(one) is ProducerReady]
        return ready.producer

    def reset(self) -> None:
        """Forget the longest step."""
        self.longest_ms, self.ticks = 0.0, 0


@contextmanager
def _peer() -> Iterator[_Peer]:
    with tempfile.TemporaryDirectory(prefix="ambermq-bench-") as directory:
        peer = _Peer(Path(directory))
        try:
            yield peer
        finally:
            peer.loop.log.close()


def _now_us() -> int:
    return time.time_ns() // 1000


def _measure_selector_tick() -> dict[str, float]:
    return _measure_scan(_TEXT, 100, f"p LIKE '{_PATTERNS[0]}'")


def _measure_long_text() -> dict[str, float]:
    return _measure_scan("a" * _LONG, 2, " OR ".join(["p LIKE '%aab%'"] * 149))


def _measure_scan(text: str, count: int, selector: str) -> dict[str, float]:
    """Return the longest tick of a scan of twice `count` messages that match no selector."""
    with _peer() as peer:
        body = Message(application_properties={"p": text}).encode()
        producer = peer.producer("q")
        for _ in range(2):
            peer.run(Publish("", producer, 0, [body] * count, [0] * count, count * len(body)))
        attach = AttachConsumer("", "q", "bench", "x", selector=selector)
        (ready,) = [one for one in peer.run(attach) if type(one) is ConsumerReady]
        peer.reset()
        peer.loop.set_credit(ready.consumer, 1)
        peer.run()
        return {"ms": peer.longest_ms, "ticks": peer.ticks}


def _measure_publish() -> dict[str, float]:
    with _peer() as peer:
        peer.run(DeclareMuxer("", "m", MuxerKind.SELECTOR), DeclareQueue("", "q", QueueSettings()))
        peer.run(*[AttachMember("", "m", "q", f"size = {number}") for number in range(_SELECTORS)])
        body = Message(application_properties={"size": -1}).encode()
        producer = peer.producer("/muxers/m/x")
        peer.reset()
        peer.run(Publish("", producer, 0, [body] * _RUN, [0] * _RUN, _RUN * len(body)))
        return {"ms": peer.longest_ms, "ticks": peer.ticks}


def _backlog(count: int) -> Queue:
    queue = new_queue(_QUEUE, "q", QueueSettings())
    for first in range(10, count + 10, _RUN):
        run = min(_RUN, count + 10 - first)
        queue = queue.push(make_words(first, [100] * run), 100 * run, 0)
    return queue


def _returned(count: int) -> Queue:
    queue = _backlog(count)
    words = queue.ready.to_bytes()
    return queue.acquire((_READER,), words).settle(_READER, words, RELEASED)


def _state(queue: Queue) -> State:
    return EMPTY_STATE.with_fields(queues=EMPTY_STATE.queues.set(queue.id, queue))


def _no_match(_queue: int, words: Any, _entries: Any) -> list[Any]:
    fields = RoutingFields(b"")
    return [fields for _ in words]


def _measure_returned() -> dict[str, float]:
    """Return the time of a dispatch after another consumer took one message."""
    demand, config = Demand(), EngineConfig()
    state = _state(_returned(_RETURNED))
    demand.add(Want(8, _QUEUE, "", credit=9, scan=SelectorScan(parse_selector("a = 1"))))

    def step() -> None:
        demand.dirty[_QUEUE] = None
        while demand.dirty:
            dispatch(state, demand, 1, 1 << 40, config, _no_match)

    step()
    milliseconds = []
    for _ in range(20):
        queue = state.queues[_QUEUE]
        state = _state(queue.acquire((_READER,), queue.returned.head(1)))
        milliseconds.append(longest_ms(iter([step])))
    return {"ms": max(milliseconds), "mean": sum(milliseconds) / len(milliseconds)}


def _measure_excluded() -> dict[str, float]:
    demand, config, queue = Demand(), EngineConfig(), _returned(_EXCLUDED)
    offset = int.from_bytes(queue.returned.last(), "little") >> 16
    queue = queue.with_entry(offset, Entry(excluded=(99,)))
    state = _state(replace(queue, exclusions=1))
    demand.add(Want(8, _QUEUE, "", credit=1 << 30))
    demand.dirty[_QUEUE] = None
    longest, delivered, began = 0.0, 0, time.process_time()
    while demand.dirty:
        step_began = time.process_time()
        dealt = dispatch(state, demand, 1, 1 << 40, config)
        longest = max(longest, time.process_time() - step_began)
        state = dealt.state
        delivered += sum(len(effect.words) for effect in dealt.effects if type(effect) is Deliver)
    assert delivered == _EXCLUDED
    return {"ms": longest * 1e3, "us-each": (time.process_time() - began) / delivered * 1e6}


def _measure_deep() -> dict[str, float]:
    queue = _backlog(_BACKLOG)
    milliseconds = []
    for offset in (_BACKLOG // 2, _BACKLOG // 2 + 5000, _BACKLOG - 5000):
        word = make_words(offset, [100])
        milliseconds.append(longest_ms(iter([partial(queue.acquire, (_READER,), word)])))
        queue = queue.acquire((_READER,), word)
    words = queue.held_by(_READER).head(1)
    assert len(words) == WORD_BYTES
    return {"ms": max(milliseconds), "first": milliseconds[0], "later": milliseconds[1]}


def _measure_property_hits() -> dict[str, float]:
    with _peer() as peer:
        peer.run(DeclareMuxer("", "m", MuxerKind.PROPERTY))
        for first in range(0, _HITS, _RUN):
            numbers = range(first, min(first + _RUN, _HITS))
            peer.run(*[DeclareQueue("", f"q{number}", QueueSettings()) for number in numbers])
            peer.run(*[AttachMember("", "m", f"q{number}", _CONDITIONS) for number in numbers])
        body = Message(application_properties={"a": 1, "b": 2}).encode()
        producer = peer.producer("/muxers/m/x")
        peer.reset()
        peer.run(Publish("", producer, 0, [body], [0], len(body)))
        return {"ms": peer.longest_ms, "ticks": peer.ticks}


def _measure_scattered_return() -> dict[str, float]:
    words = _backlog(_RETURNED_MANY).ready
    scattered = b"".join([make_words(10 + index * (_RETURNED_MANY // 1000), [100]) for index in range(1000)])
    _, others = words.remove_ordered(scattered)
    return {"ms": longest_ms(iter([partial(merge_returned, others, scattered)]))}


def _measure_return_journal() -> dict[str, float]:
    older, taken = make_words(10, [100] * (_NOTED + 1)), make_words(10 + 2 * _NOTED, [100] * _NOTED)
    queue = new_queue(_QUEUE, "q", QueueSettings()).push(older, 1, 0).push(taken, 1, 0)
    queue = queue.acquire((_READER,), older).settle(_READER, older, RELEASED)
    journal, cursor = ReturnJournal(), ReturnedCursor()
    journal.ahead(queue, [cursor], 1)
    cursor.position = 1 << 62
    queue = queue.acquire((_READER,), taken).settle(_READER, taken, RELEASED)
    journal.note(taken)
    queue = queue.acquire((_READER,), taken)
    return {"ms": longest_ms(iter([partial(journal.ahead, queue, [cursor], 200)]))}


def _measure_long_selector() -> dict[str, float]:
    parse_selector("a = 1")
    texts = (" OR ".join(["a=1"] * 150), "+".join(["a"] * 299) + "=1", " AND ".join(["((((a=1))))"] * 50))
    return {"ms": longest_ms(partial(parse_selector, text) for text in texts)}


def _measure_first_selector() -> dict[str, float]:
    prepare = getattr(selectors, "prepare_parser", None)
    if prepare is not None:
        prepare()
    return {"ms": longest_ms(iter([lambda: parse_selector("first = 1")]))}


MEASURES: Final[dict[str, Callable[[], dict[str, float]]]] = {
    "like": _measure_like,
    "selector-tick": _measure_selector_tick,
    "long-text": _measure_long_text,
    "returned": _measure_returned,
    "excluded": _measure_excluded,
    "deep": _measure_deep,
    "publish": _measure_publish,
    "property-hits": _measure_property_hits,
    "scattered-return": _measure_scattered_return,
    "return-journal": _measure_return_journal,
    "long-selector": _measure_long_selector,
    "first-selector": _measure_first_selector,
}
"""The measures by name; each returns `ms`, its longest step."""


def main(names: list[str]) -> None:
    """Run measures, all by default, and print their figures."""
    tune_interpreter()
    # The parser is built once in a process, so its measure is the first one.
    for name in names or sorted(MEASURES, key=lambda name: name != "first-selector"):
        print(json.dumps({name: {key: round(value, 3) for key, value in MEASURES[name]().items()}}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
