"""Whole segments go: by age, by size, and on a disk that fills up; never one that holds a live message."""

import errno
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachProducer, DeclareQueue, Publish, PurgeQueue
from ambermq.engine.compaction.plan import History
from ambermq.engine.events import Compacted
from ambermq.engine.history.past import open_past
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.manifest.manifest import Manifest, load
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.disk import DiskFile, DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.compaction.local_runner import LocalRunner
from ambermq.tools.compaction.preview import preview_compaction
from ambermq.tools.config.log_facts import LogFacts
from ambermq.tools.config.retention_schedule import RetentionConfig, RetentionSchedule
from tests.engine.lived import LIVED, Lived
from tests.tools.compactions import NONE, LivedBroker, answerable, compact, live_bodies
from tests.tools.conftest import Run

_DEADLINE_S = 240.0
_DISK_BYTES = 2_000_000


def manifest_of(directory: str | Path) -> Manifest:
    manifest = load(DiskStorage(), str(directory))
    assert manifest is not None
    return manifest


def lived(directory: Path, seed: int, steps: int) -> Lived:
    """A life with snapshots, all of it durable."""
    life = Lived(directory, seed)
    for number in range(4):
        life.live(steps)
        LivedBroker(life).take_snapshot(f"number-{number}", seals=number % 2 == 0)
    life.live(steps)
    life.settle_down()
    return life


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(5, 50), st.sampled_from((0, 3_000_000, 30_000_000)))
def test_what_history_answers_is_as_it_was(seed: int, steps: int, age_us: int) -> None:
    """State and the bytes of all that lives, at every moment that is answered for afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        life = lived(Path(directory), seed, steps)
        before = answerable(directory)
        bodies = live_bodies(directory, before)
        outcome = compact(life, History(age_us=age_us), whole_segments=True)
        if outcome.is_committed:
            assert outcome.horizon is not None
            after = answerable(directory)
            assert min(after) == outcome.horizon.offset - 1
            assert {one: after[one] for one in after if one in before} == {
                one: state for one, state in before.items() if one >= outcome.horizon.offset - 1
            }
            assert all(bodies.get(offset, body) == body for offset, body in live_bodies(directory, after).items())
        life.end()
        assert verify(directory, config=LIVED).damage is None


def test_a_segment_goes_as_a_whole_or_stays_as_it_is(tmp_path: Path) -> None:
    """No other segment is new but those that stand for some that went; those with a live message are the same files."""
    life = lived(tmp_path / "data", 5, 60)
    before = manifest_of(life.directory)
    outcome = compact(life, whole_segments=True)
    life.end()
    after = manifest_of(life.directory)
    assert outcome.dropped > 0
    assert outcome.rewritten == 0
    below = [one for one in after.sealed if one.next_offset <= before.sealed[-1].next_offset]
    new = [one for one in below if one not in before.sealed]
    assert new
    assert all(one.size == 4096 + 64 for one in new)
    assert outcome.bytes_after < outcome.bytes_before


def test_the_horizon_moves_and_history_says_so(tmp_path: Path) -> None:
    """History begins at a snapshot that is not the newest; the event tells of it, and nothing below is answered."""
    life = lived(tmp_path / "data", 5, 60)
    outcome = compact(life, whole_segments=True)
    life.settle_down()
    manifest = manifest_of(life.directory)
    assert manifest.horizon is not None
    assert manifest.horizon == outcome.horizon
    assert manifest.horizon.offset == manifest.snapshots[0].end
    assert len(manifest.snapshots) > 1
    with open_past(life.directory, LIVED, now_us=1 << 60) as past:
        (event,) = (one for one in past.events(past.horizon.offset, past.end - 1) if isinstance(one, Compacted))
    assert event.horizon == manifest.horizon.offset
    assert event.bytes_after < event.bytes_before
    life.end()


def test_what_has_died_below_the_horizon_goes_later(tmp_path: Path) -> None:
    """Where no more history may go, segments whose last messages were finished since still do."""
    life = Lived(tmp_path / "data", 7)
    _fill(life, 60)
    assert compact(life, whole_segments=True).dropped == 0
    _purge(life)
    for number in range(2):
        LivedBroker(life).take_snapshot(f"later-{number}", seals=True)
        life.settle_down()
    nothing = compact(life, History(), whole_segments=True)
    assert (nothing.is_committed, nothing.horizon) == (False, None)
    first = compact(life, whole_segments=True)
    assert first.dropped > 3
    horizon = manifest_of(life.directory).horizon
    assert not compact(life, History(), whole_segments=True).is_committed
    assert manifest_of(life.directory).horizon == horizon
    life.end()


def test_a_run_that_wins_nothing_leaves_nothing(tmp_path: Path) -> None:
    """Snapshots that were taken for it go again, so that runs of every minute do not fill the list of them."""
    life = Lived(tmp_path / "data", 7)
    _fill(life, 40)
    before = manifest_of(life.directory)
    for _ in range(3):
        assert not compact(life, whole_segments=True).is_committed
        life.settle_down()
    after = manifest_of(life.directory)
    assert after.snapshots == before.snapshots
    assert after.horizon is None
    life.end()


def test_a_full_disk_takes_messages_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where publishing has no room any more, whole dead segments make some, with no byte of room to rewrite in."""
    data = tmp_path / "data"
    _small_disk(monkeypatch, data)
    life = Lived(data, 7, config=replace(LIVED, ballast_bytes=400_000))
    log = life.loop.log
    for _ in range(1000):
        if not log.room_bytes():
            break
        _fill(life, 1)
        _purge(life)
        log._housekeeping_lane.wake()
        life.settle_down()
    assert log.room_bytes() == 0
    outcome = compact(life, whole_segments=True)
    assert outcome.is_committed
    for _ in range(3):
        log._housekeeping_lane.wake()
        life.settle_down()
    assert log.room_bytes() > _DISK_BYTES / 2
    life.end()
    assert verify(life.directory, config=LIVED).damage is None


def _small_disk(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """Limit the disk to so many bytes of files that are allocated ahead."""
    allocate = DiskFile.allocate

    def free_bytes(_storage: DiskStorage, _path: str) -> int:
        return max(0, _DISK_BYTES - sum(one.stat().st_size for one in data.rglob("*") if one.is_file()))

    def bounded(file: DiskFile, position: int, length: int, *, zero: bool) -> None:
        if length > free_bytes(DiskStorage(), ""):
            raise OSError(errno.ENOSPC, "No space left on device")
        allocate(file, position, length, zero=zero)

    monkeypatch.setattr(DiskStorage, "free_bytes", free_bytes)
    monkeypatch.setattr(DiskFile, "allocate", bounded)


def _fill(life: Lived, segments: int) -> None:
    """Publish segments of messages without a consumer."""
    life.loop.submit(DeclareQueue("key", "one", Settings()))
    life.loop.submit(AttachProducer("key", "one", "container", "to one"))
    life.settle_down()
    producer = max(life.loop.state.producers)
    for _ in range(segments * 8):
        life.loop.submit(Publish("link", producer, 0, [bytes(1000)], [1], 1000))
        life.settle_down()


def _purge(life: Lived) -> None:
    life.loop.submit(PurgeQueue("key", "one"))
    life.settle_down()


def test_what_would_go_is_told_beforehand(tmp_path: Path) -> None:
    """A dry run counts the segments that would go, and reads none of them."""
    life = lived(tmp_path / "data", 5, 60)
    before = manifest_of(life.directory)
    told = preview_compaction(
        life.directory, NONE, LocalRunner(), now_us=life.now_us, whole_segments=True, config=LIVED
    )
    assert manifest_of(life.directory) == before
    done = compact(life, whole_segments=True)
    life.end()
    assert 0 < told.dropped <= done.dropped


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (RetentionConfig(), ["--keep-history", "all"]),
        (RetentionConfig(age_s=60), ["--keep-history", "60s"]),
        (RetentionConfig(age_s=60, size_bytes=5), ["--keep-history", "60s", "--keep-history", "5B"]),
        (RetentionConfig(size_bytes=5, archive="/a"), ["--keep-history", "5B", "--archive", "/a"]),
    ],
)
def test_the_options_are_those_of_the_configuration(config: RetentionConfig, options: list[str]) -> None:
    """Both bounds go along; without any of them all history stays."""
    assert config.arguments() == ["--whole-segments", *options]


def test_age_is_looked_at_each_tenth_of_it() -> None:
    """Counted from the start and from each end, and once an hour at least."""
    schedule = RetentionSchedule(RetentionConfig(age_s=100, room_bytes_min=0, pause_s=1), 50.0)
    assert schedule.reason(59.0, LogFacts()) == ""
    assert schedule.reason(60.0, LogFacts()) == "age"
    schedule.ended(62.0, LogFacts())
    assert schedule.reason(71.0, LogFacts()) == ""
    assert schedule.reason(72.0, LogFacts()) == "age"
    assert RetentionSchedule(RetentionConfig(age_s=10**7), 0.0).reason(3600.0, LogFacts(room_bytes=1 << 40)) == "age"


def test_size_must_have_grown_by_a_tenth() -> None:
    """Over the bound, or over what the last run had to leave."""
    schedule = RetentionSchedule(RetentionConfig(size_bytes=1000, room_bytes_min=0, pause_s=10), 0.0)
    assert schedule.reason(1.0, LogFacts(history_bytes=1099)) == ""
    assert schedule.reason(1.0, LogFacts(history_bytes=1100)) == "size"
    schedule.ended(2.0, LogFacts(history_bytes=2000))
    assert schedule.reason(11.0, LogFacts(history_bytes=9000)) == ""
    assert schedule.reason(12.0, LogFacts(history_bytes=2100)) == ""
    assert schedule.reason(12.0, LogFacts(history_bytes=2200)) == "size"


def full(room_bytes: int, next_offset: int, *, has_horizon: bool = True) -> LogFacts:
    return LogFacts(room_bytes=room_bytes, next_offset=next_offset, has_horizon=has_horizon)


def test_a_full_disk_asks_at_once_and_again_when_something_was_sealed() -> None:
    """What one run could not win the next cannot either, as long as the log is the same."""
    schedule = RetentionSchedule(RetentionConfig(room_bytes_min=100, pause_s=10), 0.0)
    assert schedule.reason(0.0, full(100, 5)) == ""
    assert schedule.reason(0.0, full(99, 0)) == ""
    assert schedule.reason(0.0, full(99, 5)) == "room"
    schedule.ended(1.0, full(50, 6))
    assert schedule.reason(10.0, full(0, 7)) == ""
    assert schedule.reason(99.0, full(0, 6)) == ""
    assert schedule.reason(11.0, full(0, 7)) == "room"


def test_free_space_decides_how_much_history_stays_after_the_grace() -> None:
    """A tenth more than the minimum is freed; without enough sealed history nothing is kept, and the rest is sealed."""
    config = RetentionConfig(room_bytes_min=100, pause_s=10)
    schedule = RetentionSchedule(config, 0.0, grace_s=600.0)
    facts = LogFacts(room_bytes=50, history_bytes=1000, active_bytes=7, next_offset=5)
    assert schedule.reason(599.0, facts) == ""
    assert schedule.reason(600.0, facts) == "room"
    assert schedule.kept_bytes(599.0, facts) is None
    assert schedule.kept_bytes(600.0, facts) == 1000 + 7 - (100 + 10 - 50)
    assert schedule.kept_bytes(600.0, replace(facts, history_bytes=60)) == 0
    assert RetentionSchedule(RetentionConfig(by_room=False), 0.0).reason(0.0, facts) == ""
    options = ["--whole-segments", "--keep-history", "9s", "--keep-history", "5B", "--keep-snapshots"]
    assert RetentionConfig(age_s=9, size_bytes=8).arguments(kept_bytes=5) == options
    assert RetentionConfig().room_min(1 << 30) == 1 << 28
    assert RetentionConfig().room_min(1 << 40) == 512 << 20
    assert RetentionConfig(room_bytes_min=1 << 50).room_min(1 << 30) == 1 << 50


def test_a_run_for_space_that_wins_nothing_is_repeated_with_less_history() -> None:
    """At once, with four times the bytes to free each time, until nothing is kept; then only a change makes it due."""
    schedule = RetentionSchedule(RetentionConfig(room_bytes_min=100, pause_s=10), 0.0)
    facts = LogFacts(room_bytes=100, history_bytes=1000, next_offset=5)
    low = replace(facts, room_bytes=90)
    kept = []
    for now_s in (1.0, 2.0, 3.0, 4.0):
        assert schedule.reason(now_s, low) == "room"
        kept.append(schedule.kept_bytes(now_s, low))
        schedule.ended(now_s, low, kept_bytes=kept[-1])
    assert kept == [980, 920, 680, 0]
    assert schedule.reason(100.0, low) == ""
    assert schedule.reason(100.0, replace(low, live_bytes=-1)) == "room"


@pytest.mark.parametrize(
    "change", [{"history_bytes": 900}, {"log_bytes": 900}, {"live_bytes": 5}, {"requested_end": -1}, {"next_offset": 6}]
)
def test_a_run_for_space_is_due_again_where_it_may_win_something(change: dict[str, int]) -> None:
    """The last run deleted something, or messages, a requested snapshot or a segment changed since."""
    schedule = RetentionSchedule(RetentionConfig(room_bytes_min=100, pause_s=10), 0.0)
    facts = LogFacts(room_bytes=50, log_bytes=1000, history_bytes=1000, live_bytes=9, requested_end=3, next_offset=5)
    assert schedule.reason(0.0, facts) == "room"
    schedule.ended(1.0, facts)
    assert schedule.reason(20.0, facts) == ""
    if change.keys() & {"history_bytes", "log_bytes"}:
        schedule.reason(20.0, facts)
        schedule.ended(21.0, replace(facts, **change))
    assert schedule.reason(40.0, replace(facts, **change)) == "room"


@pytest.mark.parametrize("change", [{"live_bytes": 5}, {"requested_end": -1}])
def test_what_is_freed_beside_a_run_makes_the_next_one_due(change: dict[str, int]) -> None:
    """The run may have looked at the log before that, and kept what may be deleted now."""
    schedule = RetentionSchedule(RetentionConfig(room_bytes_min=100, pause_s=10), 0.0)
    facts = LogFacts(room_bytes=50, log_bytes=1000, history_bytes=1000, live_bytes=9, requested_end=3, next_offset=5)
    freed = replace(facts, **change)
    assert schedule.reason(0.0, facts) == "room"
    schedule.ended(1.0, freed)
    assert schedule.reason(20.0, freed) == "room"
    schedule.ended(21.0, freed)
    assert schedule.reason(40.0, freed) == ""


def test_a_full_disk_asks_for_nothing_that_cannot_be() -> None:
    """Where all history is to stay, and always did, there is nothing to win."""
    kept = RetentionConfig(by_room=False)
    assert RetentionSchedule(kept, 0.0).reason(0.0, full(0, 5, has_horizon=False)) == ""
    assert RetentionSchedule(kept, 0.0).kept_bytes(0.0, full(0, 5)) is None
    for config in (RetentionConfig(age_s=10**6), RetentionConfig(size_bytes=10**9)):
        assert RetentionSchedule(config, 0.0).reason(0.0, full(0, 5, has_horizon=False)) == "room"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("size_bytes = 2000000", "size"),
        ("size_bytes = 2000000\nroom_bytes_min = 1152921504606846976", "room"),
        ("age_s = 1", "age"),
    ],
)
def test_a_broker_lets_segments_go_by_itself(tmp_path: Path, run: Run, how: str, reason: str) -> None:
    """Too old, too long, or a disk that has less room than wanted; what waits on queues is still delivered."""
    config = tmp_path / "config.toml"
    # Of larger ones the active one may grow by more than is sent here, whenever the next one is ready.
    small = "[log]\nsegment_bytes_min = 1048576\nsegment_bytes_max = 4194304\nballast_bytes = 0\n"
    config.write_text(f"{small}[retention]\n{how}\npause_s = 1\n[compaction]\ncheck_s = 1\n")
    broker = ChildBroker(tmp_path / "data", arguments=("--config", str(config)))
    broker.start()
    data = ("--data", broker.directory)
    try:
        for _ in range(5):
            done = run("bench", "--size", 1000, "--count", 1200, *data)
            assert done.exit_code == 0, done.stderr
        assert run("send", "q", "--size", 1000, "--count", 100, *data).exit_code == 0
        event = _compaction(broker, run)
        assert event.bytes_after < event.bytes_before
        assert len(run("receive", "q", "--all", "--timeout", 1, *data).stdout.splitlines()) == 100
        assert f"reason={reason}" in broker.stderr_path.read_text()
        assert run("log", "verify", *data).exit_code == 0
    finally:
        broker.kill()


def _compaction(broker: ChildBroker, run: Run) -> Compacted:
    """Wait until the log tells of one; something goes on meanwhile, else nothing gets older or sealed."""
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        with open_past(str(broker.directory)) as past:
            events = past.events(past.horizon.offset, past.end - 1)
            found = [event for event in events if isinstance(event, Compacted)]
        if found:
            return found[0]
        assert run("bench", "--size", 1000, "--count", 100, "--data", broker.directory).exit_code == 0
    raise AssertionError(broker.last_log_line())
