"""A compaction: what history says and what lives is the same before and after, and the rest is gone."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.compaction import History
from engine.events import Compacted, Event
from engine.past import open_past
from log.disk import DiskStorage
from log.manifest import Manifest, load
from log.verify import verify
from tests.engine.lived import LIVED, Lived
from tests.tools.compactions import LivedBroker, answerable, compact, live_bodies

STORAGE = DiskStorage()


@contextmanager
def lived(seed: int, steps: int) -> Iterator[Lived]:
    """Some lives, with snapshots in between, all of it durable."""
    with tempfile.TemporaryDirectory() as directory:
        life = Lived(Path(directory), seed)
        for number in range(4):
            life.live(steps)
            LivedBroker(life).take_snapshot(f"number-{number}", seals=seed % 3 == 0)
            life.live(steps // 2)
            life.settle_down()
            if number % 2:
                life.end(cleanly=seed % 2 == 0)
                life.start()
        yield life


def events_from(directory: str, first: int) -> list[Event]:
    """Every event from an offset on."""
    with open_past(directory, LIVED, now_us=1 << 60) as past:
        return [event for event in past.events(first, past.end - 1) if not isinstance(event, Compacted)]


def manifest_of(directory: str) -> Manifest:
    manifest = load(STORAGE, directory)
    assert manifest is not None
    return manifest


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(5, 60), st.sampled_from((0, 3_000_000, 30_000_000)))
def test_every_answerable_moment_is_as_it_was(seed: int, steps: int, age_us: int) -> None:
    """State, the bytes of all that lives, and every event at or after the horizon."""
    with lived(seed, steps) as life:
        directory = life.directory
        before = answerable(directory)
        bodies = live_bodies(directory, before)
        outcome = compact(life, History(age_us=age_us))
        if not outcome.is_committed:
            return
        assert outcome.horizon is not None
        horizon = outcome.horizon.offset
        events = events_from(directory, horizon)
        assert verify(directory, config=LIVED).damage is None
        after = answerable(directory)
        assert min(after) == horizon - 1
        kept = {offset: state for offset, state in before.items() if offset >= horizon}
        assert {offset: after[offset] for offset in kept} == kept
        assert all(bodies.get(offset, body) == body for offset, body in live_bodies(directory, after).items())
        life.end()
        life.start()
        life.live(steps)
        life.settle_down()
        assert events_from(directory, horizon)[: len(events)] == events
        life.end()
        assert verify(directory, config=LIVED).damage is None
