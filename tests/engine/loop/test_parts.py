"""Commands that are more than a tick takes are decided in parts; a run fares as its messages would one by one."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    Command,
    DeclareMuxer,
    DeclareQueue,
    DeleteMuxer,
    DeleteQueue,
    DetachConsumer,
    Inspect,
    Publish,
    ResetHost,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import (
    Answered,
    ConsumerEnded,
    ConsumerReady,
    Deliver,
    Effect,
    ProducerReady,
    ProducersEnded,
    PublishDone,
    RefusedCommand,
)
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.fold.apply import fold
from ambermq.engine.loop.schedule import SOON
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.queue_template import QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from tests.engine.decide.messages.test_publish import fields_of
from tests.engine.rig import Rig, delivered
from tests.engine.world import World

_TEXTS = (
    *("colour=red", "colour=blue", "colour=green", "properties.to=new", "properties.to=/queues/other"),
    *("properties.to=/muxers/colours/x,colour=red", "properties.to=/muxers/lossy/x", "properties.to=/topics/made"),
    *("properties.to=/muxers/unknown/x", "properties.to=more", "nothing=1"),
)


def _wired(changes_max: int) -> World:
    """Muxers of classes that look into messages, and queues with little room; addresses make queues that listen."""
    made = QueueTemplate(Settings("made", messages_max=2), "*", (TemplateAttachment("TOPIC", "made"),))
    config = EngineConfig(
        queue_messages_max=3,
        attachments_max=8,
        tick_changes_max=changes_max,
        templates=QueueTemplates((made,)).with_defaults(),
    )
    world = World(config, fields_of)
    world.do(DeclareMuxer("key", "colours", MuxerKind.PROPERTY))
    world.do(DeclareMuxer("key", "lossy", MuxerKind.LOSSY, Options(probability=0.5, seed=3)))
    for colour in ("red", "blue"):
        world.do(DeclareQueue("key", colour, Settings("normal")))
        world.do(AttachMember("key", "colours", colour, (Condition("colour", has_value=True, value=colour),)))
    world.do(AttachMember("key", "lossy", "red"))
    return world


def _sent(world: World, address: str, runs: Sequence[Sequence[str]]) -> list[tuple[int, OutcomeKind, str, str]]:
    """Return the outcome of each message that is sent in these runs, by delivery-id."""
    (ready,) = world.do(AttachProducer("key", address, "container", "link"))
    assert type(ready) is ProducerReady
    first, outcomes = 0, []
    for run in runs:
        bodies: list[Buffer] = [text.encode() for text in run]
        for done in world.do(Publish("link", ready.producer, first, bodies, [0] * len(bodies), sum(map(len, bodies)))):
            assert type(done) is PublishDone
            told = (done.kind, done.condition, done.description)
            outcomes += [(done.first_id + index, *told) for index in range(done.count)]
        first += len(run)
    return outcomes


def _held(world: World) -> dict[str, tuple[int, int]]:
    return {queue.name: (queue.available, queue.size) for queue in world.state.queues.values()}


@pytest.mark.parametrize("address", ["", "/muxers/colours/x", "/muxers/lossy/x"])
def test_a_run_fares_as_its_messages_would_one_by_one(address: str) -> None:
    """Queues that it fills, makes and finds no room for included, whatever the parts that it is decided in."""

    @settings(max_examples=60, deadline=None, database=None)
    @given(texts=st.lists(st.sampled_from(_TEXTS), max_size=12), changes_max=st.sampled_from((1, 2, 5, 10_000)))
    def law(texts: list[str], changes_max: int) -> None:
        run, singles = _wired(changes_max), _wired(10_000)
        assert _sent(run, address, [texts]) == _sent(singles, address, [[text] for text in texts])
        assert _held(run) == _held(singles)
        assert sorted(run.state.draws.values()) == sorted(singles.state.draws.values())
        assert fold(EMPTY_STATE, run.events) == run.state

    law()


def test_a_run_to_many_queues_takes_several_ticks() -> None:
    """What was sent after it waits for its rest, so messages stay in their order."""
    rig = Rig(config=EngineConfig(tick_changes_max=100))
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for number in range(50):
        rig.do(DeclareQueue("key", f"q{number}", Settings()), AttachMember("key", "all", f"q{number}"))
    producer = rig.producer("/muxers/all/x")
    bodies = [b"%d" % number for number in range(60)]
    rig.step(rig.publish(producer, *bodies[:59]), rig.publish(producer, bodies[59], durable=False))
    assert 0 < rig.queue("q49").available < 59
    assert rig.due >= SOON
    rig.do()
    assert rig.queue("q0").available == rig.queue("q49").available == 60
    assert rig.loop.log.bodies.get_run([word >> 16 for word in rig.queue("q7").ready][-3:]) == bodies[-3:]


_ENDS = [DeleteMuxer("key", "topics"), DeleteQueue("key", "q"), DeleteMuxer("key", "before")]


@pytest.mark.parametrize("end", _ENDS)
def test_what_has_many_attachments_goes_in_several_ticks(end: Command) -> None:
    """Nothing is decided between them; the answer counts them all."""
    rig = Rig(config=EngineConfig(tick_changes_max=20))
    _attached_often(rig, 90)
    effects = rig.step(end, Inspect("after", lambda state: (len(state.muxers), len(state.queues))))
    assert not effects
    assert rig.due >= SOON
    answers = [(one.key, one.value) for one in rig.do() if type(one) is Answered]
    is_queue = type(end) is DeleteQueue
    told = {"messages": 0} if is_queue else {"attachments": 90}
    assert answers == [("key", told), ("after", (4, 0) if is_queue else (3, 1))]
    rig.next_life()


def test_a_part_of_a_deletion_detaches_no_more_than_a_tick_takes() -> None:
    """Each time; a kill in between leaves what can be deleted again."""
    rig = Rig(config=EngineConfig(tick_changes_max=20))
    _attached_often(rig, 90)
    rig.step(DeleteQueue("key", "q"))
    muxer = rig.loop.state.muxer_named("topics")
    assert muxer is not None
    assert len(muxer.attachments) in (70, 71)
    rig.loop.log.write(rig.now_us)
    again = rig.next_life()
    assert type(again.do(DeleteQueue("key", "q"))[0]) is Answered
    assert not again.loop.state.queues


def test_a_reset_tells_its_links_in_several_ticks() -> None:
    """All is gone at once, by one event; no tick tells more links than it takes changes, and the answer comes last."""
    rig = Rig(config=EngineConfig(tick_changes_max=20))
    consumers = [rig.consumer(f"q{number % 3}", credit=2) for number in range(35)]
    producers = [rig.producer(f"q{number % 3}") for number in range(50)]
    rig.do(*[rig.publish(producer, b"x") for producer in producers])
    ticks = [rig.step(ResetHost("key"), DeclareQueue("after", "q0", Settings())) + rig.completed()]
    state = rig.loop.state
    assert not any((state.queues, state.consumers, state.producers))
    while rig.due >= SOON:
        assert not rig.loop.state.queues
        ticks.append(rig.step() + rig.completed())
    told = [_links_told(effects) for effects in ticks]
    assert max(map(len, told)) <= 20
    assert sorted(link for each in told for link in each) == sorted(consumers + producers)
    answers = [one for effects in ticks for one in effects if type(one) is Answered]
    assert [one.key for one in answers] == ["key", "after"]
    assert answers[0].value == {"queues": 3, "messages": 50}
    assert not rig.loop.demand.wants


def test_a_kill_while_the_links_of_a_reset_are_told_leaves_it_whole() -> None:
    """Nothing of before is there again."""
    rig = Rig(config=EngineConfig(tick_changes_max=20))
    for number in range(50):
        rig.consumer(f"q{number}")
    rig.step(ResetHost("key"))
    assert rig.due >= SOON
    again = rig.next_life()
    assert not again.loop.state.queues


def test_what_comes_back_counts_as_changes() -> None:
    """Of consumers that go together: a tick takes those whose messages are no more than it takes, and one more."""
    rig = Rig(config=EngineConfig(tick_changes_max=36))
    consumers = [rig.consumer(f"q{number}", credit=9) for number in range(10)]
    for number in range(10):
        rig.do(rig.publish(rig.producer(f"q{number}"), *[b"x"] * 9))
    assert [rig.queue(f"q{number}").acquired_count for number in range(10)] == [9] * 10
    rig.step(*[DetachConsumer(consumer) for consumer in consumers])
    assert len(rig.loop.state.consumers) == 8
    assert rig.due >= SOON
    rig.do()
    assert [rig.queue(f"q{number}").available for number in range(10)] == [9] * 10
    assert not rig.loop.state.consumers


def test_what_comes_back_in_a_later_tick_is_dealt() -> None:
    """Who stays has what all of them held, though the queue was dealt from in the tick in which the first went."""
    rig = Rig(config=EngineConfig(tick_changes_max=20))
    going = [rig.consumer(credit=9) for _ in range(10)]
    rig.do(rig.publish(rig.producer(), *[b"x"] * 90))
    staying = rig.consumer(credit=200)
    rig.do(*[DetachConsumer(consumer) for consumer in going])
    assert rig.queue().held_by(staying).count == 90
    assert not rig.queue().available


def _links_told(effects: Sequence[Effect]) -> list[int]:
    told: list[int] = [effect.consumer for effect in effects if type(effect) is ConsumerEnded]
    return told + [link for effect in effects if type(effect) is ProducersEnded for link in effect.producers]


def test_a_tick_takes_the_changes_of_its_messages_and_no_more() -> None:
    """By default: as many runs of one message are decided in one tick, more changes of wiring in several."""
    rig = Rig(log_config=LogConfig(ballast_bytes=0))
    count = rig.loop.config.tick_messages_max
    producers = [rig.producer(), rig.producer()]
    rig.step(*[rig.publish(producers[number % 2], b"x") for number in range(count)])
    assert rig.queue().available == count
    before = len(rig.loop.state.muxers)
    rig.step(*[DeclareMuxer("key", f"m{number}", MuxerKind.SIMPLE) for number in range(count + 1)])
    assert len(rig.loop.state.muxers) == before + count
    assert rig.due >= SOON


def _attached_often(rig: Rig, count: int) -> None:
    """A queue behind a muxer by many patterns, and that behind another by many."""
    rig.do(DeclareMuxer("key", "topics", MuxerKind.WILD_DESTINATION), DeclareQueue("key", "q", Settings()))
    rig.do(DeclareMuxer("key", "before", MuxerKind.WILD_DESTINATION))
    rig.do(*[AttachMember("key", "topics", "q", f"number.{number}.#") for number in range(count)])
    rig.do(*[AttachMember("key", "before", "muxer:topics", f"number.{number}.#") for number in range(count)])


def test_a_tick_decides_few_commands_of_links() -> None:
    """An attach costs as much as many messages; the rest of 1,000 has later ticks, in order."""
    rig = Rig(config=EngineConfig(tick_changes_max=200))
    for number in range(40):
        rig.loop.submit(AttachProducer(number, f"q{number}", "container", "link"))
    keys: list[list[int]] = []
    while rig.due >= SOON:
        effects = rig.step() + rig.completed()
        keys.append([effect.key for effect in effects if type(effect) is ProducerReady])
    assert max(map(len, keys)) <= 200 // 16
    assert [key for tick in keys for key in tick] == list(range(40))


def test_a_tick_parses_few_long_selectors() -> None:
    """A character of a selector counts as two changes: by default a tick parses one of 1 KiB, or two shorter ones."""
    rig = Rig()
    selectors = ["a = '" + "x" * size + "'" for size in (4000, 1000, 900, 900, 900)]
    for number, selector in enumerate(selectors):
        rig.loop.submit(AttachConsumer(number, "q", "container", "link", False, selector))
    ticks = []
    while rig.due >= SOON:
        effects = rig.step() + rig.completed()
        ticks.append([effect.key for effect in effects if type(effect) is ConsumerReady])
    assert [tick for tick in ticks if tick] == [[0], [1], [2, 3], [4]]


def test_a_selector_with_too_many_tokens_is_refused() -> None:
    """With the limit in the reason; one token less is accepted."""
    rig = Rig(config=EngineConfig(selector_tokens_max=7))
    (refused,) = rig.do(AttachConsumer("key", "q", "container", "link", False, "a = 1 OR b = 2 OR c"))
    assert isinstance(refused, RefusedCommand)
    assert (refused.condition, "selector_tokens_max" in refused.description) == ("amqp:invalid-field", True)
    assert rig.consumer(selector="a = 1 OR b = 2")


def test_effects_of_many_ticks_leave_in_parts() -> None:
    """One sync releases them all: a call returns those of about one tick, and no later effect overtakes them."""
    rig = Rig(log_config=LogConfig(ballast_bytes=0))
    producer = rig.producer("q1")
    rig.consumer("q1", credit=100)
    for number in range(300):
        rig.loop.submit(AttachProducer(number, "q0", "container", "link"))
    while rig.due >= SOON:
        assert not rig.step()
    parts = [rig.completed()]
    assert rig.loop.is_late
    assert not rig.step(rig.publish(producer, b"x", durable=False))
    while rig.loop.is_late or rig.loop.is_waiting:
        parts.append(rig.completed())
    keys = [[effect.key for effect in part if type(effect) is ProducerReady] for part in parts]
    assert [key for part in keys for key in part] == list(range(300))
    assert max(map(len, keys)) <= 2000 // 32 + 1
    kinds = [type(effect) for part in parts for effect in part]
    assert kinds[300:] == [PublishDone, Deliver]


def test_messages_that_all_differ_take_several_ticks() -> None:
    """Each is a command of its own, which costs more than a message of a run; all are published, in order."""
    rig, ttls_ms = Rig(config=EngineConfig(tick_changes_max=30)), range(1000, 1100)
    producer = rig.producer()
    for number, ttl_ms in enumerate(ttls_ms):
        is_durable = number % 2 == 0
        command = Publish("key", producer, number, [b"%3d" % number], [0], 3, is_durable, False)
        command.ttl_ms = ttl_ms
        rig.loop.submit(command)
    counts = []
    while rig.due >= SOON:
        before = rig.queue().available
        rig.step()
        rig.completed()
        counts.append(rig.queue().available - before)
    assert sum(counts) == len(ttls_ms)
    assert max(counts) <= 5
    consumer = rig.consumer(credit=200)
    assert delivered(rig.do()) == [(consumer, b"%3d" % number) for number in range(len(ttls_ms))]
