"""Queues that end by themselves: with their last consumer (`auto_delete`), and with the broker (not `durable`)."""

import pytest

from ambermq.engine.commands import AttachMember, DeclareMuxer, DetachConsumer, UpdateQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.model.muxer import MuxerKind
from tests.engine.decide.messages.test_dead_letters import again, declare
from tests.engine.rig import Rig


def test_it_ends_with_its_last_consumer() -> None:
    """Messages and all, also those that the consumer held; not before it had one, and not with another one left."""
    rig = Rig()
    declare(rig, "q", auto_delete=True)
    rig.do(rig.publish(rig.producer(), b"a", b"b", b"c"))
    first, second = rig.consumer(), rig.consumer()
    rig.do(DetachConsumer(first))
    assert rig.queue().depth == 3
    rig.loop.set_credit(second, 2)
    rig.do()
    rig.do(DetachConsumer(second))
    assert rig.loop.state.queue_named("q") is None
    assert not rig.loop.state.consumers
    again(rig)


def test_a_queue_without_it_stays() -> None:
    """Also if it is switched off while a consumer is there."""
    rig = Rig()
    declare(rig, "q", auto_delete=True)
    consumer = rig.consumer()
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"auto_delete": False}))
    rig.do(DetachConsumer(consumer))
    assert rig.queue().consumers == 0


@pytest.mark.parametrize("had_consumer", [True, False])
def test_consumers_go_with_the_broker(had_consumer: bool) -> None:
    """A start deletes a queue whose last consumer went with the broker; one that had none stays."""
    rig = Rig()
    declare(rig, "q", auto_delete=True)
    rig.do(rig.publish(rig.producer(), b"a"))
    if had_consumer:
        rig.consumer()
    rig = again(rig)
    assert (rig.loop.state.queue_named("q") is None) is had_consumer
    if not had_consumer:
        assert rig.queue().depth == 1


def test_a_queue_that_is_not_durable_ends_with_the_broker() -> None:
    """With its messages, held ones too; one that is declared again is new. A durable one stays."""
    rig = Rig()
    declare(rig, "q", durable=False)
    declare(rig, "kept")
    rig.do(rig.publish(rig.producer(), b"a", b"b"), rig.publish(rig.producer("kept"), b"c"))
    rig.loop.set_credit(rig.consumer(), 1)
    rig.do()
    rig = again(rig)
    assert rig.loop.state.queue_named("q") is None
    assert rig.queue("kept").depth == 1
    declare(rig, "q", durable=False)
    assert rig.queue().depth == 0


def test_a_queue_with_many_attachments_ends_in_parts() -> None:
    """The last part ends it."""
    rig = Rig(config=EngineConfig(tick_changes_max=8))
    declare(rig, "q", auto_delete=True)
    rig.do(DeclareMuxer("key", "m", MuxerKind.DESTINATION))
    for number in range(30):
        rig.do(AttachMember("key", "m", "/queues/q", str(number)))
    consumer = rig.consumer()
    rig.step(DetachConsumer(consumer))
    assert rig.loop.state.queue_named("q") is not None
    rig.do()
    assert rig.loop.state.queue_named("q") is None
    muxer = rig.loop.state.muxer_named("m")
    assert muxer is not None
    assert not muxer.attachments
    again(rig)
