"""A queue whose middle is compressed does what a plain one does: deliveries, returns, removals, snapshots, restarts."""

import pytest

from ambermq.engine.commands import Command, DetachConsumer, RemoveMessages, Settle
from ambermq.engine.effects import Effect
from ambermq.engine.entries.entry_word import entry_of
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.snapshots.state_codec import image_of, state_of
from ambermq.log.config import LogConfig
from ambermq.snapshot import persistent_queue
from ambermq.snapshot.compressed_chunk import CompressedChunk
from ambermq.snapshot.persistent_queue import PersistentQueue
from tests.engine.rig import Rig, delivered

COUNT = 6000
ROOMY = LogConfig(ballast_bytes=0)


def has_compressed(queue: PersistentQueue) -> bool:
    return CompressedChunk in map(type, queue._tree)


def end(rig: Rig, *commands: Command) -> list[Effect]:
    """Submit, and end ticks until nothing waits."""
    effects = rig.step(*commands)
    while rig.loop.is_waiting or rig.loop.demand.dirty:
        rig.loop.make_due()
        effects += rig.do()
    return effects


@pytest.mark.parametrize("plain_words_max", [0, 1 << 30])
def test_a_long_queue_is_delivered_in_order(plain_words_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was returned comes first, what was removed never, and a restart folds to the same state."""
    monkeypatch.setattr(persistent_queue, "PLAIN_WORDS_MAX", plain_words_max)
    rig = Rig(log_config=ROOMY)
    producer, bodies = rig.producer(), [b"%d" % number for number in range(COUNT)]
    for start in range(0, COUNT, 500):
        end(rig, rig.publish(producer, *bodies[start : start + 500]))
    assert has_compressed(rig.queue().ready) == (plain_words_max == 0)
    words = list(rig.queue().ready)

    end(rig, RemoveMessages("key", "q", tuple(entry_of(word) for word in words[100::1000])))
    lost = rig.consumer(credit=1500)
    end(rig)
    end(rig, DetachConsumer(lost))
    live = rig.loop.state
    rig.kill()
    rig = Rig(rig.storage, log_config=ROOMY)
    assert rig.recovered == live
    assert state_of(image_of(rig.loop.state)) == rig.loop.state
    consumer = rig.consumer(credit=COUNT)
    found = [body for _, body in delivered(end(rig))]
    end(rig, Settle(consumer, rig.queue().held_by(consumer).to_bytes(), ACCEPTED))

    del bodies[100::1000]
    assert found == bodies
    assert rig.queue().depth == rig.queue().size == 0
