"""Random histories of an engine without a log: every kind of event, in any order that commands allow."""

import random

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    DeclareMuxer,
    DeclareQueue,
    DeleteMuxer,
    DeleteQueue,
    DetachConsumer,
    DetachMember,
    DetachProducer,
    PurgeQueue,
    ReportDamage,
    UpdateMuxer,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.decide import started
from ambermq.engine.dispatch.demand import Want
from ambermq.engine.effects import ConsumerReady
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, REJECTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.state import State
from ambermq.engine.model.subscription import SubscriptionRequest
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.world import World

__all__ = ["lived", "play"]

NAMES = ("one", "two", "zwölf")
CONTAINERS = ("container", "other")
MUXERS: dict[str, tuple[MuxerKind, tuple[Argument, ...]]] = {
    "all": (MuxerKind.SIMPLE, (None,)),
    "named": (MuxerKind.DESTINATION, ("one.more", "zwölf", "")),
    "wild": (MuxerKind.WILD_DESTINATION, ("#", "one.*")),
    "property": (
        MuxerKind.PROPERTY,
        ((Condition("size"),), (Condition("a", True, None), Condition("b", True, 1.0)), (Condition("b", True, True),)),
    ),
    "select": (MuxerKind.SELECTOR, ("size > 0", "a = 'ü'")),
    "lossy": (MuxerKind.LOSSY, (None,)),
}
OUTCOMES = (
    ACCEPTED,
    REJECTED,
    RELEASED,
    MODIFIED_FAILED,
    Outcome(OutcomeKind.MODIFIED, undeliverable_here=True),
    Outcome(OutcomeKind.MODIFIED, delivery_failed=True, annotations=((b"\xa3\x01a", b"\x41"),)),
)


def lived(seed: int, steps: int) -> World:
    """Return a world after so many random steps."""
    world, rng = World(EngineConfig(chunk_bytes=700)), random.Random(seed)
    for _ in range(steps):
        play(world, rng)
    return world


def play(world: World, rng: random.Random) -> None:
    """Run one random command."""
    world.now_us += rng.randrange(1000)
    name = rng.choice(NAMES)
    state = world.state
    match rng.randrange(19):
        case 0 if rng.random() < 0.3:
            world.do(UpdateQueue("key", name, _nothing, {"messages_max": rng.choice([None, 0, 3, 40])}))
        case 0:
            world.do(DeclareQueue("key", name, Settings(messages_max=rng.choice([0, 40]))))
        case 1 if rng.random() < 0.3:
            world.do(DeleteQueue("key", name))
        case 2 if rng.random() < 0.3:
            world.do(PurgeQueue("key", name))
        case 3:
            world.consumer(name, credit=rng.randrange(9), settled=rng.random() < 0.2)
        case 4 if state.consumers:
            consumer = rng.choice(sorted(state.consumers.keys()))
            world.demand.remove(consumer)
            world.do(DetachConsumer(consumer, is_closed=rng.random() < 0.5))
        case 5 if state.producers:
            world.do(DetachProducer(rng.choice(sorted(state.producers.keys()))))
        case 6 if rng.random() < 0.2:
            for event in started(state, world.context):
                world.happened(event)
            for consumer in list(world.demand.wants):
                world.demand.remove(consumer)
        case 7 | 8:
            world.dealt()
        case 9 | 10:
            _settle(world, rng)
        case 11:
            _damage(world, rng)
        case 14:
            subscribe(world, rng)
        case 15:
            dynamic = Dynamic(rng.choice(list(Lifetime)[1:]), rng.random() < 0.4)
            world.do(AttachProducer("key", "", rng.choice(CONTAINERS), "link", dynamic=dynamic))
        case 16:
            given = [queue.name for queue in state.queues.values() if queue.lifetime]
            given += [muxer.name for muxer in state.muxers.values() if muxer.options.lifetime]
            if given:
                name = rng.choice(sorted(given))
                world.do(AttachProducer("key", f"/{rng.choice(['queues', 'topics'])}/{name}", "container", "link"))
        case 17 | 18:
            _wire(world, rng)
        case _:
            producer = world.producer(name) if not state.producers else rng.choice(sorted(state.producers.keys()))
            world.publish(producer, *[rng.choice([0, 5, 300, 2000]) for _ in range(rng.randrange(1, 9))])


def subscribe(world: World, rng: random.Random) -> None:
    """Subscribe a receiver to a topic, in any of the ways that there are."""
    asked = SubscriptionRequest(
        rng.choice(NAMES),
        is_durable=rng.random() < 0.5,
        is_shared=rng.random() < 0.5,
        is_global=rng.random() < 0.3,
        is_no_local=rng.random() < 0.3,
    )
    topics = [f"/topics/{name}" for name in (*NAMES, "#", "*")]
    topics += [f"/topics/{muxer.name}" for muxer in world.state.muxers.values() if muxer.options.lifetime]
    kind = rng.random()
    command = AttachConsumer(
        "key",
        rng.choice(sorted(topics)),
        rng.choice(CONTAINERS),
        "link",
        selector="size > 0" if rng.random() < 0.3 else "",
        subscription_request=asked,
        dynamic=Dynamic(rng.choice(list(Lifetime)[1:]), rng.random() < 0.5) if kind < 0.2 else None,
        is_recalled=kind > 0.9,
    )
    for effect in world.do(command):
        if type(effect) is ConsumerReady:
            world.demand.add(Want(effect.consumer, world.state.consumers[effect.consumer].queue, "link"))
            world.set_credit(effect.consumer, rng.randrange(9))


def _wire(world: World, rng: random.Random) -> None:
    """Declare or delete a muxer, an attachment of it or a producer to it."""
    name = rng.choice(list(MUXERS))
    kind, arguments = MUXERS[name]
    member = rng.choice([*NAMES, *(f"muxer:{other}" for other in MUXERS)])
    match rng.randrange(9):
        case 0 if rng.random() < 0.3:
            world.do(DeleteMuxer("key", name))
        case 8:
            world.do(UpdateMuxer("key", "lossy", _nothing, rng.choice([None, 0.0, 0.3, 1.0]), rng.choice([None, 0, 5])))
        case 1:
            world.do(DetachMember("key", name, member, rng.choice(arguments)))
        case 2 | 3:
            address = rng.choice([f"/muxers/{name}/one.more", f"/muxers/{name}", ""])
            world.do(AttachProducer("key", address, "container", "link", rng.choice(list(Unroutable))))
        case _:
            options = Options(probability=0.5, seed=-7) if kind is MuxerKind.LOSSY else Options()
            world.do(DeclareMuxer("key", name, kind, options))
            world.do(AttachMember("key", name, member, rng.choice(arguments)))


def _nothing(_state: State) -> dict[str, object]:
    """See nothing in a state."""
    return {}


def _settle(world: World, rng: random.Random) -> None:
    held = [(queue, one) for queue in world.state.queues.values() for one in queue.acquired.keys()]  # noqa: SIM118
    if held:
        queue, consumer = rng.choice(sorted(held, key=lambda pair: pair[1]))
        words = list(queue.held_by(consumer))
        world.settle(queue.id, consumer, rng.sample(words, rng.randrange(1, len(words) + 1)), rng.choice(OUTCOMES))


def _damage(world: World, rng: random.Random) -> None:
    words = [(queue.id, word) for queue in world.state.queues.values() for word in queue.ready]
    if words and rng.random() < 0.3:
        world.do(ReportDamage(*rng.choice(sorted(words))))
