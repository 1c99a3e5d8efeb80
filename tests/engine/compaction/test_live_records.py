"""What is kept of a log: the records of all live messages, and no others."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ambermq.engine.compaction.live_records import kept_offsets
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.events import Chunked
from ambermq.engine.model.queue import Queue
from tests.engine.lived import Lived
from tests.engine.world import World
from tests.model.history import words_on


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_is_kept_is_every_live_message_and_its_chunks(seed: int) -> None:
    """All entries of all queues, each offset once, in order; every piece of large ones, the origin of moved ones."""
    with tempfile.TemporaryDirectory() as directory:
        lived = Lived(Path(directory), seed)
        lived.live(60)
        state = lived.loop.state
        live = {word >> 16 for chunks in state.uploads.values() for word in chunks}
        for queue in state.queues.values():
            for word in words_on(queue):
                entry = queue.entries.get(word >> 16, PLAIN)
                live |= {word >> 16, *entry.chunks} | ({entry.origin} if entry.origin else set())
        kept = kept_offsets(state)
        assert kept.tolist() == sorted(live)
        assert kept.itemsize == 8
        lived.settle_down()
        lived.end()
        stored = {event.offset for event in lived.events() if type(event) is Chunked}
        chunks = {one for queue in state.queues.values() for entry in queue.entries.values() for one in entry.chunks}
        assert chunks <= stored


def test_a_message_on_two_queues_is_kept_once() -> None:
    """Offsets are unique, however many queues hold the message."""
    world = World()
    producer = world.producer("q")
    world.publish(producer, 10, 20)
    state = world.state
    twin = _twin_of(world.queue())
    assert len(world.queue().ready) == 2
    both = state.with_queue(twin, state.time_us)
    assert len(both.queues) == len(state.queues) + 1
    assert kept_offsets(both) == kept_offsets(state)
    assert len(kept_offsets(both)) == 2


def _twin_of(queue: Queue) -> Queue:
    """Return a queue that holds the same messages under another id."""
    return replace(queue, id=1 << 30)
