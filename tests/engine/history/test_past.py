"""Any moment of a log can be asked for, exactly; any other is refused and told why."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.events import Published
from ambermq.engine.history.past import Past, PastError, PastKind, open_past
from ambermq.engine.model.state import State
from ambermq.engine.records.event_fields import next_after
from ambermq.engine.snapshots.files import write_snapshot
from ambermq.log.errors import DamageError
from ambermq.log.manifest.manifest import Horizon, Snapshot, load, snapshot_path, snapshots_path, store
from ambermq.log.read.body_store import DAMAGED
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import InlineWorkers
from tests.engine.lived import LIVED, Lived, singles, states_of

FAR = 1 << 62


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """Three lives; the last one ended."""
    lived = Lived(tmp_path_factory.mktemp("lived"), seed=7)
    for cleanly in (True, False, True):
        lived.live(60)
        lived.settle_down()
        lived.end(cleanly=cleanly)
        if cleanly is not True or lived.loop.log.epoch < 3:
            lived.start()
    return lived


@pytest.fixture
def past(lived: Lived) -> Iterator[Past]:
    """Its past."""
    with open_past(lived.directory, LIVED) as past:
        yield past


def check(past: Past, states: dict[int, State], offset: int) -> None:
    """The state at an offset is that after the last event at or before it."""
    last = max(known for known in states if known <= offset)
    assert past.state_at(offset) == states[last]


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1 << 32), lives=st.lists(st.booleans(), min_size=1, max_size=3), data=st.data())
def test_the_state_at_an_offset_is_the_fold_of_all_events_up_to_it(
    seed: int, lives: list[bool], data: st.DataObject
) -> None:
    """For random histories and any offset, in the middle of runs and between epochs too."""
    with tempfile.TemporaryDirectory() as directory:
        lived = Lived(Path(directory), seed)
        for number, cleanly in enumerate(lives):
            lived.live(40)
            lived.end(cleanly=cleanly)
            if number < len(lives) - 1:
                lived.start()
        events = lived.events()
        states = states_of(events)
        with open_past(directory, LIVED) as past:
            assert past.end == next_after(events[-1])
            for offset in data.draw(st.lists(st.sampled_from(sorted(states)), min_size=1, max_size=8)):
                check(past, states, offset)
            check(past, states, data.draw(st.integers(0, past.end - 1)))


def name_snapshots(directory: str, states: dict[int, State], ends: list[int], **changes: Any) -> list[Path]:
    """Write snapshots with these ends, and name them; return their files."""
    storage = DiskStorage()
    manifest = load(storage, directory)
    assert manifest is not None
    storage.makedirs(snapshots_path(directory))
    named = []
    for file_id, end in enumerate(sorted(ends), start=100):
        state, path = states[end - 1], snapshot_path(directory, file_id)
        size = write_snapshot(storage, path, state, log_id=manifest.log_id, end=end)
        named.append(Snapshot(file_id, f"s{end}", end, state.time_us, state.time_us, size, is_automatic=True))
    store(storage, directory, replace(manifest, snapshots=tuple(named), **changes))
    return [Path(snapshot_path(directory, one.file_id)) for one in named]


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_snapshots_change_no_answer(seed: int, data: st.DataObject) -> None:
    """Whether there are snapshots, and whether the newest one is damaged: the states are the same."""
    with tempfile.TemporaryDirectory() as directory:
        lived = Lived(Path(directory), seed)
        lived.live(60)
        lived.end()
        states = states_of(lived.events())
        offsets = st.sampled_from(sorted(states))
        ends = data.draw(st.lists(offsets.map(lambda offset: offset + 1), min_size=1, max_size=3, unique=True))
        paths = name_snapshots(directory, states, ends)
        asked = [*data.draw(st.lists(offsets, min_size=1, max_size=5)), *(end - 1 for end in ends), ends[0]]
        for harm in (False, True):
            if harm:
                paths[-1].write_bytes(paths[-1].read_bytes()[:-9])
            with open_past(directory, LIVED) as past:
                for offset in asked:
                    if offset < past.end:
                        check(past, states, offset)


def test_before_the_horizon_only_snapshots_are_left(tmp_path: Path) -> None:
    """At the horizon all goes on; below it the retained snapshots are the points that can be asked for, and named."""
    lived = Lived(tmp_path, 5)
    lived.live(60)
    lived.end()
    states = states_of(lived.events())
    offsets = sorted(states)
    early, base = offsets[10], offsets[30]
    horizon = Horizon(base + 1, states[base].time_us)
    paths = name_snapshots(str(tmp_path), states, [early + 1, base + 1], horizon=horizon)
    with open_past(str(tmp_path), LIVED) as past:
        assert past.horizon == horizon
        for offset in (early, base, base + 1, offsets[-1]):
            check(past, states, offset)
        assert past.offset_at(horizon.time_us) >= base
        points = f"the log goes from offset {base + 1} .*, and it has snapshots at offset {early}"
        for refused in (
            lambda: past.state_at(offsets[20]),
            lambda: past.events(offsets[20], base + 5),
            lambda: past.offset_at(horizon.time_us - 1),
        ):
            with pytest.raises(PastError, match=points) as refusal:
                refused()
            assert refusal.value.kind is PastKind.BEFORE_HORIZON
        paths[1].write_bytes(paths[1].read_bytes()[:-9])
        with pytest.raises(DamageError, match=paths[1].name):
            past.state_at(offsets[-1])


def test_events_are_those_between_two_offsets_with_runs_cut(past: Past, lived: Lived) -> None:
    """For any two offsets: the same as cutting a list of single events."""
    whole = singles(lived.events())
    offsets = [event.offset for event in whole]
    for first in offsets[::5]:
        for last in offsets[::7]:
            expected = [event for event in whole if first <= event.offset <= last]
            assert singles(list(past.events(first, last))) == expected


def test_an_event_is_found_by_its_offset(past: Past, lived: Lived) -> None:
    """Alone, also out of a run; where there is none, none."""
    for event in singles(lived.events()):
        assert past.event_at(event.offset) == event
    assert past.event_at(past.end) is None
    assert past.event_at((1 << 20) - 1) is None


def test_a_time_is_the_last_event_at_or_before_it(past: Past, lived: Lived) -> None:
    """For every event's time, a little before and a little after."""
    whole = singles(lived.events())
    times = sorted({event.time_us for event in whole})
    for time_us in {moment + away for moment in times for away in (-1, 0, 1)}:
        expected = [event.offset for event in whole if event.time_us <= time_us]
        if expected:
            assert past.offset_at(time_us) == max(expected)
    assert past.time_at(past.end - 1) == times[-1]


def test_the_last_event_counts_between_epochs(past: Past, lived: Lived) -> None:
    """A gap is no event, so state and time there are those before it."""
    events = lived.events()
    before = max(event.offset for event in singles(events) if event.offset < 1 << 20)
    assert past.state_at((1 << 20) - 1) == past.state_at(before)
    assert past.time_at((1 << 20) - 1) == past.time_at(before)


def test_bodies_are_found_without_a_scan(past: Past, lived: Lived) -> None:
    """Every message that was published, small or in pieces, comes back byte for byte."""
    found = {
        bytes(past.body(event.offset, event.chunks)) for event in singles(lived.events()) if type(event) is Published
    }
    assert found <= set(lived.bodies)
    assert any(len(body) > 1500 for body in found)
    assert len(found) > 50


def test_a_damaged_body_is_told(past: Past, lived: Lived) -> None:
    """The bytes are never shown; the heads around them still are."""
    event = next(event for event in reversed(lived.events()) if type(event) is Published and event.size > 300)
    found = past.reader.find(event.offset)
    assert found is not None
    batch, record = found
    path = Path(batch._part.path)
    content = bytearray(path.read_bytes())
    at = batch.batch.position + record.body_position
    content[at] ^= 1
    path.write_bytes(content)
    try:
        assert past.body(event.offset) is DAMAGED
        assert past.event_at(event.offset) is not None
    finally:
        content[at] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda past: past.state_at(past.end), PastKind.IN_FUTURE),
        (lambda past: past.time_at(FAR), PastKind.IN_FUTURE),
        (lambda past: past.events(0, past.end), PastKind.IN_FUTURE),
        (lambda past: past.offset_at(past.now_us + 1_000_000), PastKind.IN_FUTURE),
        (lambda past: past.offset_at(1), PastKind.BEFORE_HORIZON),
        (lambda past: past.state_at(-1), PastKind.NO_SUCH_OFFSET),
        (lambda past: past.body(past.end), PastKind.NO_SUCH_OFFSET),
        (lambda past: past.body((1 << 20) - 1), PastKind.NO_SUCH_OFFSET),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(
    past: Past, ask: Callable[[Past], object], kind: PastKind
) -> None:
    """Never rounded: the kind tells why, the message names the first and last moments."""
    with pytest.raises(PastError) as refusal:
        ask(past)
    assert refusal.value.kind is kind
    if kind is not PastKind.IN_FUTURE or "now" not in str(refusal.value):
        assert "the log goes from offset 0 (2023-11-14T" in str(refusal.value)
        assert f"to {past.end - 1} (" in str(refusal.value)


def test_a_written_log_ends_where_it_is_durable(tmp_path: Path) -> None:
    """Beside a running broker only durable events are shown; without a broker all valid events."""
    lived = Lived(tmp_path, seed=3)
    lived.live(30)
    lived.settle_down()
    lived.loop.log._lock.write('{"pid": 1, "url": "amqp://127.0.0.1:1"}')
    with open_past(str(tmp_path), LIVED) as past:
        assert past.end == past.reader.survey.durable_end < past.reader.survey.valid_end
        assert past.last_offset is not None
        assert past.last_offset < past.end
    lived.end(cleanly=False)
    with open_past(str(tmp_path), LIVED) as past:
        assert past.end == past.reader.survey.valid_end == lived.loop.log.log_end


def test_a_log_in_which_nothing_happened_has_no_past(tmp_path: Path) -> None:
    """Every moment is refused, and the message says why."""
    Recovery.open(DiskStorage(), str(tmp_path), LIVED, 1).log(InlineWorkers()).close()
    with open_past(str(tmp_path), LIVED) as past:
        assert past.last_offset is None
        with pytest.raises(PastError, match="the log has no event yet"):
            past.state_at(0)
        with pytest.raises(PastError, match="the log has no event yet"):
            past.offset_at(past.now_us)
