"""A log of a broker after millions of messages, written in a minute by the engine's own events.

The engine attaches the links and declares the queues. The runs are written as the engine writes them: messages in runs
of 1 to 500, acquired and settled in other runs; one settlement in fifty releases. Every message has a message-id.
"""

import random
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from zlib import crc32

from ambermq.engine.commands import AttachConsumer, AttachProducer
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry_word import WORD_BYTES, make_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED
from ambermq.engine.events import Acquired, Published, Settled
from ambermq.engine.loop.recovery import recover
from ambermq.engine.records.index_keys import touches_of
from ambermq.engine.records.writer import write_event
from ambermq.log.config import LogConfig
from ambermq.log.index.segment_index import build
from ambermq.log.manifest.manifest import load
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.write.log import Log
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Properties

__all__ = ["id_of", "write_story_log"]

_QUEUES: Final = 10
_RUNS: Final = (1, 1, 1, 2, 5, 20, 80, 250, 500)
_WAITING_MAX: Final = 20_000
_BODY_BYTES: Final = 64
_STEP_US: Final = 1_000
_PAST_US: Final = 3 * 3_600_000_000
_ID: Final = "order-%08d"


@dataclass(slots=True)
class _Queue:
    """One queue with its producer and its consumer."""

    queue: int
    producer: int
    consumer: int
    ready: deque[bytes] = field(default_factory=deque)
    """The words of available messages, by run."""
    acquired: deque[bytes] = field(default_factory=deque)
    """The words of acquired messages, by run."""
    count: int = 0
    """The number of available messages."""


def id_of(number: int) -> str:
    """Return the message-id of a message by its number."""
    return _ID % number


def write_story_log(directory: Path, event_count: int, *, runs: Sequence[int] = _RUNS, is_indexed: bool = True) -> int:
    """Write a log of about `event_count` events, counted by message; return the number of messages.

    An event is about as many messages as one of `runs`. If it `is_indexed`, all sealed segments have an index, as those
    of a broker have some time after it sealed them.
    """
    now_us = time.time_ns() // 1000 - _PAST_US
    log, lines = _opened(directory, now_us)
    rng = random.Random(event_count)
    number = done = 0
    while done < event_count:
        now_us += _STEP_US
        line = rng.choice(lines)
        if line.count < _WAITING_MAX:
            number, added = _publish(log, line, number, rng.choice(runs), now_us)
            done += added
        for event in _write_moves(line, rng, runs, log, now_us):
            done += len(event.words) // WORD_BYTES
        log.draft.end_command()
        log.write(now_us)
        log.request_sync()
        log.completed()
    log.close()
    if is_indexed:
        _index(directory)
    return number


def _opened(directory: Path, now_us: int) -> tuple[Log, list[_Queue]]:
    """Start an engine and attach links; return its log and its queues."""
    loop = recover(Recovery.open(DiskStorage(), str(directory), LogConfig(), now_us), EngineConfig(), now_us)
    for index in range(_QUEUES):
        loop.submit(AttachProducer("key", f"story-{index}", "seller", f"to story-{index}"))
        loop.submit(AttachConsumer("key", f"story-{index}", "shipper", f"from story-{index}"))
    loop.step(now_us)
    state = loop.state
    producers = {producer.destination: producer.id for producer in state.producers.values()}
    consumers = {consumer.queue: consumer.id for consumer in state.consumers.values()}
    queues = sorted(state.queues.values(), key=lambda queue: queue.id)
    return loop.log, [_Queue(queue.id, producers[queue.name], consumers[queue.id]) for queue in queues]


def _publish(log: Log, line: _Queue, number: int, count: int, now_us: int) -> tuple[int, int]:
    ids = [(_ID % index).encode() for index in range(number, number + count)]
    bodies = [_HEAD + one + _TAIL for one in ids]
    hashes = [crc32(one, _STRING) or 1 for one in ids]
    sizes = [len(body) for body in bodies]
    words = make_words(log.draft.next_offset, sizes)
    event = Published(
        log.draft.next_offset, now_us, (line.queue,), line.producer, words, sum(sizes), True, (), bodies, hashes
    )
    write_event(log.draft, event)
    line.ready.append(words)
    line.count += count
    return number + count, count


def _write_moves(
    line: _Queue, rng: random.Random, runs: Sequence[int], log: Log, now_us: int
) -> Iterator[Acquired | Settled]:
    """Acquire a run and settle another one for the consumer; yield the written events."""
    taken = _take(line.ready, rng.choice(runs))
    if taken:
        line.count -= len(taken) // WORD_BYTES
        line.acquired.append(taken)
        yield _written(log, Acquired(log.draft.next_offset, now_us, line.queue, (line.consumer,), taken))
    settled = _take(line.acquired, rng.choice(runs))
    if settled:
        outcome = ACCEPTED if rng.random() < 0.98 else RELEASED
        if outcome is RELEASED:
            line.ready.appendleft(settled)
            line.count += len(settled) // WORD_BYTES
        yield _written(log, Settled(log.draft.next_offset, now_us, line.queue, line.consumer, outcome, settled))


def _written(log: Log, event: Acquired | Settled) -> Acquired | Settled:
    write_event(log.draft, event)
    return event


def _take(runs: deque[bytes], count: int) -> bytes:
    """Remove up to `count` words from the front and return them."""
    if not runs:
        return b""
    run = runs.popleft()
    if len(run) > count * WORD_BYTES:
        runs.appendleft(run[count * WORD_BYTES :])
    return run[: count * WORD_BYTES]


def _index(directory: Path) -> None:
    manifest, config = load(DiskStorage(), str(directory)), LogConfig()
    assert manifest is not None
    for sealed in manifest.sealed:
        segment = sealed.at(str(directory))
        file = DiskStorage().open(segment.path)
        build(file, segment, batch_bytes_max=config.batch_bytes_max, touches_of=touches_of)
        file.close()


_STRING: Final = crc32(b"s")
_HEAD, _TAIL = (
    Message(properties=Properties(message_id=id_of(0)), body=(Data(bytes(_BODY_BYTES)),))
    .encode()
    .split(id_of(0).encode())
)
