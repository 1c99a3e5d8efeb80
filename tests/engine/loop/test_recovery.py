"""A broker over a real directory, with its threads."""

from pathlib import Path
from select import select

from ambermq.engine.commands import AttachConsumer, AttachProducer, Publish, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import ConsumerReady, Deliver, Effect, ProducerReady, PublishDone
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import recover
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from tests.engine.rig import read_large

SMALL = LogConfig(
    segment_bytes_min=1 << 20, segment_bytes_max=1 << 20, hot_bytes_max=4096, hot_large_bytes_max=4096, ballast_bytes=0
)
ENGINE = EngineConfig(chunk_bytes=50_000)


def opened(directory: Path, told: list[tuple[int, int]] | None = None) -> DurableLoop:
    """Return the loop of a new life."""
    recovery = Recovery.open(DiskStorage(), str(directory), SMALL, 1_000)
    progress = None if told is None else lambda records, offset: told.append((records, offset))
    return recover(recovery, ENGINE, 1_000, progress)


def until_quiet(loop: DurableLoop) -> list[Effect]:
    """Step and wait until nothing is under way."""
    effects = loop.step(2_000)
    while loop.is_waiting or loop.schedule.is_due:
        select([loop.fileno()], [], [], 0.01)
        effects += loop.completed(2_000)
        effects += loop.step(10**12)
    return effects


def attached(loop: DurableLoop) -> tuple[int, int]:
    """Return a producer and a consumer."""
    loop.submit(AttachProducer("key", "q", "container", "link"))
    loop.submit(AttachConsumer("key", "q", "container", "link"))
    producer, consumer = until_quiet(loop)
    assert type(producer) is ProducerReady
    assert type(consumer) is ConsumerReady
    return producer.producer, consumer.consumer


def bodies_of(loop: DurableLoop, effects: list[Effect]) -> list[bytes]:
    bodies = [body for effect in effects if type(effect) is Deliver for body in effect.bodies]
    return [read_large(loop, body) or b"" if isinstance(body, StoredMessage) else bytes(body) for body in bodies]


def test_a_broker_goes_on_where_it_ended(tmp_path: Path) -> None:
    """Small and large messages, settled ones gone, the others back with one more failed delivery each."""
    loop = opened(tmp_path)
    producer, consumer = attached(loop)
    bodies = [b"%d" % number * 3000 for number in range(9)] + [bytes(range(256)) * 1000]
    for body in bodies:
        loop.submit(Publish("link", producer, 0, [body], [0], len(body)))
    assert sum(effect.count for effect in until_quiet(loop) if type(effect) is PublishDone) == 10
    loop.set_credit(consumer, 10)
    effects = until_quiet(loop)
    assert bodies_of(loop, effects) == bodies
    words = list(loop.state.queue_named("q").held_by(consumer))
    loop.submit(Settle(consumer, pack_words(words[:4]), ACCEPTED, "reply"))
    until_quiet(loop)
    loop.log.close()

    told: list[tuple[int, int]] = []
    again = opened(tmp_path, told)
    assert told
    assert [records for records, _ in told] == sorted(records for records, _ in told)
    assert again.state.epoch == 2
    _, consumer = attached(again)
    again.set_credit(consumer, 100)
    effects = until_quiet(again)
    assert bodies_of(loop, effects) == bodies[4:]
    entries = [entry for effect in effects if type(effect) is Deliver for entry in effect.entries or ()]
    assert [entry.count for entry in entries if entry] == [1] * 6
    again.log.close()
