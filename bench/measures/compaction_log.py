"""A log for a compaction, written in seconds by the engine's own events: messages of 1 KiB, most of them settled.

Every message is published to one queue and acquired. Nine of ten, chosen at random, are settled. The others are
acquired at the end of the log, so a broker that opens it has them on the queue. Live messages are scattered: almost
every batch has live messages and garbage.
"""

import random
from pathlib import Path
from typing import Final
from zlib import crc32

from ambermq.engine.commands import AttachConsumer, AttachProducer
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry_word import WORD_BYTES, make_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.events import Acquired, Published, Settled
from ambermq.engine.loop.recovery import recover
from ambermq.engine.records.writer import write_event
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.write.log import Log
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties

__all__ = ["QUEUE", "write_compact_log"]

QUEUE: Final = "bench-compact"
"""The queue of the live messages."""

_BODY_BYTES: Final = 1024
_RUN: Final = 200
_STEP_US: Final = 1_000
_ID: Final = "held-%09d"


def write_compact_log(directory: Path, *, size_bytes: int, finished: float, now_us: int) -> int:
    """Write a log of about `size_bytes` that ends at about `now_us`; return the number of its live messages."""
    count = size_bytes // (_BODY_BYTES + 150) // _RUN * _RUN
    clock_us = now_us - count // _RUN * _STEP_US
    log, queue, producer, consumer = _opened(directory, clock_us)
    rng = random.Random(count)
    live_count = 0
    for number in range(0, count, _RUN):
        clock_us += _STEP_US
        words = _publish(log, queue, producer, number, clock_us)
        write_event(log.draft, Acquired(log.draft.next_offset, clock_us, queue, (consumer,), words))
        done = _sample(words, rng, finished)
        live_count += (len(words) - len(done)) // WORD_BYTES
        if done:
            write_event(log.draft, Settled(log.draft.next_offset, clock_us, queue, consumer, ACCEPTED, done))
        log.draft.end_command()
        log.write(clock_us)
        log.request_sync()
        log.completed()
    log.close()
    return live_count


def _opened(directory: Path, now_us: int) -> tuple[Log, int, int, int]:
    """Start an engine, attach two links; return its log, the queue, the producer and the consumer."""
    loop = recover(Recovery.open(DiskStorage(), str(directory), LogConfig(), now_us), EngineConfig(), now_us)
    loop.submit(AttachProducer("key", QUEUE, "seller", f"to {QUEUE}"))
    loop.submit(AttachConsumer("key", QUEUE, "shipper", f"from {QUEUE}"))
    loop.step(now_us)
    state = loop.state
    (queue,) = state.queues
    (producer,) = state.producers
    (consumer,) = state.consumers
    return loop.log, queue, producer, consumer


def _publish(log: Log, queue: int, producer: int, first: int, now_us: int) -> bytes:
    """Publish a run of messages numbered from `first` on; return their words."""
    ids = [(_ID % number).encode() for number in range(first, first + _RUN)]
    bodies = [_HEAD + one + _TAIL for one in ids]
    hashes = [crc32(one, _STRING) or 1 for one in ids]
    sizes = [len(body) for body in bodies]
    offset = log.draft.next_offset
    words = make_words(offset, sizes)
    event = Published(offset, now_us, (queue,), producer, words, sum(sizes), True, (), bodies, hashes)
    write_event(log.draft, event)
    return words


def _sample(words: bytes, rng: random.Random, share: float) -> bytes:
    """Return a random share of the words."""
    starts = range(0, len(words), WORD_BYTES)
    return b"".join(words[start : start + WORD_BYTES] for start in starts if rng.random() < share)


_STRING: Final = crc32(b"s")
_HEAD, _TAIL = (
    Message(
        header=Header(durable=True),
        properties=Properties(message_id=_ID % 0),
        body=(Data(random.Random(1).randbytes(_BODY_BYTES)),),
    )
    .encode()
    .split((_ID % 0).encode())
)
