"""The memory of an engine does not grow with the messages that have passed through it."""

import gc
import tracemalloc
from pathlib import Path
from typing import Final

from ambermq.engine.commands import Settle
from ambermq.engine.effects import Deliver
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED
from tests.protocol.watching import DiskRig

RUN: Final = 500
BODY: Final = bytes(100)
BYTES_A_MESSAGE_MAX: Final = 1
"""What stays is the sparse positions of the segments, which history keeps: 0.05 bytes a message."""


def pump(rig: DiskRig, producer: int, consumer: int, runs: int) -> None:
    """Publish, deliver and accept runs of messages."""
    for _ in range(runs):
        rig.loop.set_credit(consumer, RUN)
        effects = rig.do(rig.publish(producer, *[BODY] * RUN))
        words = [word for effect in effects if type(effect) is Deliver for word in effect.words]
        assert len(words) == RUN
        rig.do(Settle(consumer, pack_words(words), ACCEPTED))


def test_messages_that_have_gone_leave_nothing(tmp_path: Path) -> None:
    """100,000 messages later the objects of the engine take as much memory as before, within a byte a message."""
    rig = DiskRig(str(tmp_path / "data"), segment_bytes_max=1 << 20, segment_bytes_min=1 << 20, hot_bytes_max=1 << 18)
    producer, consumer = rig.producer(), rig.consumer()
    pump(rig, producer, consumer, 40)
    tracemalloc.start(1)
    try:
        pump(rig, producer, consumer, 20)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        pump(rig, producer, consumer, 200)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        rig.loop.log.close()
    assert rig.queue().available == 0
    assert grown < 200 * RUN * BYTES_A_MESSAGE_MAX, grown / (200 * RUN)
