"""What one command may come to: a message for many queues, the end of what has many attachments."""

import pytest

from ambermq.engine.commands import (
    AttachMember,
    AttachProducer,
    Command,
    DeclareMuxer,
    DeclareQueue,
    DeleteMuxer,
    DeleteQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, ProducerReady, PublishDone
from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import Published
from ambermq.engine.fold.apply import fold
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import QUEUE_MUXER, MuxerKind
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.config import BATCH_OVERHEAD_BYTES, LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.worker_threads import InlineWorkers
from ambermq.snapshot.persistent_map import PersistentMap
from tests.engine.decide.messages.test_publish import fields_of
from tests.engine.rig import COLD, Rig
from tests.engine.world import World
from tests.log.lives import DIRECTORY

_KIB = 1024


def _fanning(rig: Rig, count: int) -> int:
    """Attach queues to a muxer for everything; return a producer to it."""
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for number in range(count):
        rig.do(DeclareQueue("key", f"q{number}", Settings()), AttachMember("key", "all", f"q{number}"))
    return rig.producer("/muxers/all/x")


def test_a_message_to_a_thousand_queues_is_stored_once() -> None:
    """1 KiB to 1,000 queues is at most 20 KiB of log: 8 bytes a queue, and the message."""
    rig = Rig(log_config=LogConfig(ballast_bytes=0))
    producer = _fanning(rig, 1000)
    before = rig.loop.log.written_bytes
    rig.do(rig.publish(producer, bytes(_KIB)))
    assert rig.queue("q999").available == 1
    assert rig.loop.log.written_bytes - before <= 20 * _KIB


@pytest.mark.parametrize("size", [0, 3, 400])
def test_a_run_to_many_queues_is_as_many_records_as_batches_hold(size: int) -> None:
    """What names the queues counts as well: a run that is more than a batch is several."""
    rig = Rig()
    producer = _fanning(rig, 50)
    bodies = [b"%d" % number + bytes(size) for number in range(200)]
    (done,) = rig.do(rig.publish(producer, *bodies))
    assert type(done) is PublishDone
    assert (done.kind, done.count) == (OutcomeKind.ACCEPTED, 200)
    assert [rig.queue(f"q{number}").available for number in (0, 49)] == [200, 200]
    assert rig.loop.log.bodies.get_run([word >> 16 for word in rig.queue("q7").ready][-1:]) == [bodies[-1]]
    rig.next_life()


def test_a_message_for_more_queues_than_it_may_reach_is_rejected_by_itself() -> None:
    """By the limit, or where its record would be more than half of a batch."""
    rig = Rig(config=EngineConfig(message_queues_max=10))
    (done,) = rig.do(rig.publish(_fanning(rig, 11), b"m"))
    assert type(done) is PublishDone
    assert (done.kind, done.condition) == (OutcomeKind.REJECTED, "amqp:resource-limit-exceeded")
    assert done.description == "it would reach 11 queues: at most 10 (message_queues_max)"
    half = COLD.batch_bytes_max // 2
    tight = Rig(config=EngineConfig(chunk_bytes=half))
    queues_max = (half - BATCH_OVERHEAD_BYTES - 96) // WORD_BYTES
    producer = _fanning(tight, queues_max)
    for body, is_accepted in ((bytes(4000), True), (bytes(half), True), (bytes(2 * half), False)):
        # Where it is in pieces, its record names those as well.
        (done,) = tight.do(tight.publish(producer, body))
        assert type(done) is PublishDone
        assert (done.kind is OutcomeKind.ACCEPTED) is is_accepted
    tight.do(DeclareQueue("key", "more", Settings()), AttachMember("key", "all", "more"))
    (done,) = tight.do(tight.publish(producer, b"m"))
    assert type(done) is PublishDone
    assert done.description == f"it would reach {queues_max + 1} queues: at most {queues_max} (message_queues_max)"
    tight.next_life()


def test_what_the_runs_of_one_command_take_leaves_less_room_for_the_next() -> None:
    """As the room on the disk ends, what names queues counted, the rest is rejected."""
    world = World(fields_of=fields_of)
    world.do(DeclareMuxer("key", "any", MuxerKind.PROPERTY))
    for name in ("x", "y"):
        world.do(DeclareQueue("key", name, Settings()))
        world.do(AttachMember("key", "any", name, (Condition(name),)))
    (ready,) = world.do(AttachProducer("key", "/muxers/any/", "container", "link"))
    assert type(ready) is ProducerReady
    world.room_bytes = 3 * (48 + 8 + 3)
    command = Rig.publish(ready.producer, b"x=1", b"y=1", b"x=1", b"y=1", b"x=1")
    done = [effect for effect in world.do(command) if type(effect) is PublishDone]
    assert [one.kind for one in done] == [OutcomeKind.ACCEPTED] * 3 + [OutcomeKind.REJECTED] * 2
    assert len([event for event in world.events if type(event) is Published]) == 3


def test_the_commands_of_one_tick_share_the_room_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drafted and not written yet takes its part."""
    rig = Rig()
    producer = rig.producer()
    monkeypatch.setattr(type(rig.loop.log), "room_bytes", lambda _: 1000)
    sent = [rig.publish(producer, bytes(300), durable=durable) for durable in (True, False, True, False)]
    done = [effect for effect in rig.do(*sent) if type(effect) is PublishDone]
    assert sorted(one.kind for one in done) == sorted([OutcomeKind.ACCEPTED] * 2 + [OutcomeKind.REJECTED] * 2)


@pytest.mark.parametrize("end", [DeleteMuxer("key", "topics"), DeleteQueue("key", "q")])
def test_what_has_more_attachments_than_a_batch_holds_can_be_deleted(end: Command) -> None:
    """All of them go first, in as many batches as it takes."""
    rig = Rig()
    rig.do(DeclareMuxer("key", "topics", MuxerKind.WILD_DESTINATION), DeclareQueue("key", "q", Settings()))
    rig.do(*[AttachMember("key", "topics", "q", f"some.topic.of.number.{number}.#") for number in range(300)])
    (answer,) = rig.do(end)
    assert type(answer) is Answered
    assert not rig.loop.router.attachments_of(rig.loop.state, rig.loop.state.queue_names.get("q", 0))[1:]
    rig.next_life()


def test_more_queues_than_a_batch_holds_are_attached_again_where_a_repair_lost_the_wiring() -> None:
    """A start that makes it anew is more than a batch."""
    rig = Rig()
    _fanning(rig, 300)
    bare = rig.loop.state.with_fields(muxers=PersistentMap(), muxer_names=PersistentMap())
    rig.loop.log.close()
    recovery = Recovery.open(rig.storage, DIRECTORY, COLD, rig.now_us)
    fold_log(recovery)
    loop = DurableLoop(recovery.log(InlineWorkers()), bare, EngineConfig())
    loop.start(rig.now_us)
    muxer = loop.state.muxer_named(QUEUE_MUXER)
    assert muxer is not None
    assert len(muxer.attachments) == 300


def test_the_events_of_a_cut_run_are_those_of_its_parts() -> None:
    """Offsets follow each other, and every message is on every queue."""
    world = World()
    world.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for number in range(3):
        world.do(DeclareQueue("key", f"q{number}", Settings()))
        world.do(AttachMember("key", "all", f"q{number}"))
    (ready,) = world.do(AttachProducer("key", "/muxers/all/x", "container", "link"))
    assert type(ready) is ProducerReady
    world.batch_bytes_max = 2000 + 2 * BATCH_OVERHEAD_BYTES
    world.do(Rig.publish(ready.producer, *[b"m"] * 40))
    cut = [event for event in world.events if type(event) is Published]
    assert [len(event.words) // WORD_BYTES for event in cut] == [13, 13, 13, 1]
    assert fold(EMPTY_STATE, world.events) == world.state
