"""A compaction: what history says and what lives is the same before and after, and the rest is gone."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import DeleteSnapshot
from ambermq.engine.compaction.plan import History
from ambermq.engine.events import Compacted, Event
from ambermq.engine.history.past import PastError, open_past
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.snapshots.files import write_snapshot
from ambermq.log.compaction.job import base_path, jobs_path, lock_jobs
from ambermq.log.compaction.rewrite_tasks import CountTask, GroupTask, RewrittenSegment, SegmentCount
from ambermq.log.errors import DamageError
from ambermq.log.manifest.manifest import Manifest, load, segments_path
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.compaction.local_runner import LocalRunner
from ambermq.tools.compaction.preview import preview_compaction
from ambermq.tools.terminal.errors import ToolError
from tests.engine.lived import LIVED, Lived
from tests.tools.compactions import NONE, LivedBroker, answerable, compact, live_bodies

STORAGE = DiskStorage()


@contextmanager
def lived(seed: int, steps: int, *, has_snapshots: bool = True) -> Iterator[Lived]:
    """Some lives, with snapshots in between, all of it durable."""
    with tempfile.TemporaryDirectory() as directory:
        life = Lived(Path(directory), seed)
        for number in range(4):
            life.live(steps)
            if has_snapshots:
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


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 1 << 32),
    st.integers(5, 60),
    st.sampled_from((0, 3_000_000, 30_000_000)),
    st.booleans(),
    st.booleans(),
)
def test_every_answerable_moment_is_as_it_was(
    seed: int, steps: int, age_us: int, has_snapshots: bool, compresses: bool
) -> None:
    """State, the bytes of all that lives, and every event at or after the horizon."""
    with lived(seed, steps, has_snapshots=has_snapshots) as life:
        directory = life.directory
        before = answerable(directory)
        bodies = live_bodies(directory, before)
        outcome = compact(life, History(age_us=age_us), compresses=compresses)
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


def test_the_running_broker_reads_what_was_rewritten() -> None:
    """Bodies of live messages are the same before, during and after, also from the broker's own tables."""
    with lived(5, 50) as life:
        state = life.loop.state
        before = live_bodies(life.directory, {0: state})
        bodies = life.loop.log.bodies
        asked = list(before)[::2]
        bodies.fetch(asked)
        sealed_ids = {one.file_id for one in manifest_of(life.directory).sealed}
        outcome = compact(life)
        assert outcome.rewritten
        for offset, body in before.items():
            while (got := bodies.get(offset)) is None:
                life.loop.completed(life.now_us)
            assert bytes(got) == body
        assert len(before) > 20
        removed = sealed_ids - {one.file_id for one in manifest_of(life.directory).sealed}
        assert removed
        life.loop.log._housekeeping_lane.wake()
        life.settle_down()
        assert manifest_of(life.directory).removed == ()
        names = STORAGE.listdir(segments_path(life.directory))
        assert not {f"{file_id:016x}.log" for file_id in removed} & set(names)


def test_a_base_is_made_of_the_past_where_none_is_old_enough() -> None:
    """The job writes a snapshot at the begin of the history to keep, and removes older events."""
    with lived(2, 50, has_snapshots=False) as life:
        assert manifest_of(life.directory).snapshots == ()
        now_us, before = life.now_us, answerable(life.directory)
        outcome = compact(life, History(age_us=30_000_000))
        assert outcome.is_committed
        assert outcome.horizon is not None
        assert outcome.horizon.time_us <= now_us - 30_000_000
        base, newest = manifest_of(life.directory).snapshots
        assert base.end == outcome.horizon.offset < newest.end
        assert verify(life.directory, config=LIVED).damage is None
        with open_past(life.directory, LIVED, now_us=1 << 60) as past:
            assert past.state_at(base.end - 1) == before[max(one for one in before if one < base.end)]
            with pytest.raises(PastError, match=f"from offset {base.end} "):
                past.state_at(base.end - 2)


def test_the_newest_bytes_stay() -> None:
    """A bound in bytes keeps at least so many of the newest segments, and a tighter one makes the other idle."""
    with lived(2, 50, has_snapshots=False) as life:
        outcome = compact(life, History(age_us=1 << 60, size=60_000))
        assert outcome.horizon is not None
        kept = [one for one in manifest_of(life.directory).sealed if one.base_offset >= outcome.horizon.offset]
        assert 50_000 < sum(one.size for one in kept) < 80_000


@pytest.mark.parametrize("history", [History(age_us=1 << 50), History(size=1 << 40), History()])
def test_where_nothing_is_old_enough_nothing_changes(history: History) -> None:
    """No snapshot is taken, nothing is read, nothing committed."""
    with lived(3, 30, has_snapshots=False) as life:
        before = manifest_of(life.directory)
        outcome = compact(life, history)
        assert (outcome.is_committed, outcome.horizon, outcome.segments) == (False, None, 0)
        assert manifest_of(life.directory) == before


def test_one_at_a_time() -> None:
    """The second compaction fails and changes nothing."""
    with lived(3, 30) as life:
        before = manifest_of(life.directory)
        with lock_jobs(STORAGE, life.directory, "{pid: 1}"):
            STORAGE.makedirs(f"{jobs_path(life.directory)}/of-the-first")
            with pytest.raises(ToolError, match=r"another compaction runs: found \{pid: 1\}"):
                compact(life)
            assert STORAGE.listdir(jobs_path(life.directory)) == ["lock", "of-the-first"]
        assert manifest_of(life.directory) == before


def test_what_would_be_done_is_what_is_done_and_changes_nothing() -> None:
    """The same horizon, segments and records; no snapshot is taken for it."""
    with lived(4, 50) as life:
        before = manifest_of(life.directory)
        foreseen, all_gone = (
            preview_compaction(life.directory, history, LocalRunner(), now_us=life.now_us, config=LIVED)
            for history in (History(age_us=30_000_000), NONE)
        )
        assert manifest_of(life.directory) == before
        done = compact(life, History(age_us=30_000_000))
        for name in ("horizon", "segments", "untouched", "dropped", "rewritten", "records_before", "records_after"):
            assert getattr(foreseen, name) == getattr(done, name)
        assert all_gone.segments > foreseen.segments


def test_what_is_foreseen_counts_the_segment_that_is_written_to() -> None:
    """Where no history is kept a compaction seals it first: what a young log holds is not passed over."""
    with lived(4, 50, has_snapshots=False) as life:
        foreseen = preview_compaction(life.directory, NONE, LocalRunner(), now_us=life.now_us, config=LIVED)
        done = compact(life)
        for name in ("horizon", "segments", "untouched", "dropped", "rewritten", "records_before", "records_after"):
            assert getattr(foreseen, name) == getattr(done, name)


class _Spoiled:
    """A runner beside which something happens before the first group is written."""

    def __init__(self, happen: Callable[[], None]) -> None:
        self._happen = happen
        self._local = LocalRunner()

    def count(self, tasks: Sequence[CountTask]) -> Iterator[SegmentCount]:
        return self._local.count(tasks)

    def rewrite(self, tasks: Sequence[GroupTask]) -> Iterator[RewrittenSegment]:
        yield from list(self._local.rewrite(tasks))[:1]
        self._happen()
        yield from list(self._local.rewrite(tasks))[1:]

    def close(self) -> None: ...


def test_whatever_ends_a_job_the_log_is_as_it_was_and_the_next_one_succeeds() -> None:
    """A task that fails, a full disk: nothing is left in the jobs' directory."""

    def fail() -> None:
        raise OSError(28, "No space left on device")

    with lived(4, 50) as life:
        before = answerable(life.directory)
        with pytest.raises(OSError, match="No space"):
            compact(life, History(age_us=30_000_000), runner=_Spoiled(fail))
        assert answerable(life.directory) == before
        assert STORAGE.listdir(jobs_path(life.directory)) == ["lock"]
        assert compact(life, History(age_us=30_000_000)).is_committed


def test_a_base_that_is_gone_by_now_is_refused() -> None:
    """If a client deletes the snapshot during the job, the broker refuses the commit and nothing changes."""
    with lived(4, 50) as life:
        before = manifest_of(life.directory).sealed

        def delete() -> None:
            for one in manifest_of(life.directory).snapshots[:-1]:
                life.loop.submit(DeleteSnapshot("key", one.name))
            life.settle_down()

        with pytest.raises(ToolError, match="the log is as it was: two snapshots are needed"):
            compact(life, History(age_us=30_000_000), runner=_Spoiled(delete))
        assert manifest_of(life.directory).sealed == before
        assert manifest_of(life.directory).horizon is None


def test_a_damaged_segment_ends_it() -> None:
    """File and position are told; nothing is committed."""
    with lived(4, 50) as life:
        before = manifest_of(life.directory).sealed
        path = Path(before[0].at(life.directory).path)
        content = bytearray(path.read_bytes())
        content[4096 + 70] ^= 1
        path.write_bytes(content)
        with pytest.raises(DamageError, match=path.name):
            compact(life, History(age_us=30_000_000))
        assert manifest_of(life.directory).sealed == before


def test_what_goes_is_archived_before_and_named_in_the_same_edit() -> None:
    """The archive hears from where to where, while all of it is still there."""
    heard = []

    def archive(directory: str, first: int, last: int) -> list[str]:
        heard.append((first, last, manifest_of(directory).horizon))
        return ["archive/1"]

    with lived(4, 50) as life:
        outcome = compact(life, History(age_us=30_000_000), archive=archive)
        assert outcome.horizon is not None
        assert heard == [(0, outcome.horizon.offset - 1, None)]
        assert manifest_of(life.directory).archive == ("archive/1",)


def test_processes_beside_write_the_same() -> None:
    """Two processes and this one come to segments as large, and to the same records."""
    with lived(4, 50) as life, lived(4, 50) as twin:
        with closing(LocalRunner(processes=2)) as runner:
            compact(life, History(age_us=30_000_000), runner=runner)
        compact(twin, History(age_us=30_000_000))
        contents = [
            [Path(one.at(each.directory).path).read_bytes()[4096:] for one in manifest_of(each.directory).sealed]
            for each in (life, twin)
        ]
        sizes = [[len(content) for content in each] for each in contents]
        assert sizes[0] == sizes[1]
        found, other = (live_bodies(each.directory, {0: each.loop.state}) for each in (life, twin))
        assert found == other


def test_a_reader_across_a_compaction_is_refused_below_the_horizon() -> None:
    """Never half of what happened, though some of those segments may still be whole."""
    with lived(4, 50) as life:
        outcome = compact(life, History(age_us=30_000_000))
        assert outcome.horizon is not None
        assert outcome.untouched
        horizon = outcome.horizon.offset
        with pytest.raises(PastError, match=f"was compacted: the log begins at offset {horizon} "):
            life.loop.replay(horizon - 1).read(events_max=9, bytes_max=999)
        events, _ = life.loop.replay(horizon).read(events_max=9, bytes_max=999)
        assert events[0].offset >= horizon


@pytest.mark.parametrize("job", ["nothing-there", "../segments", "lock"])
def test_a_job_that_is_none_is_refused_and_costs_nothing(job: str) -> None:
    """Whatever a request names, the broker goes on."""
    with lived(3, 30) as life:
        before, broker = manifest_of(life.directory), LivedBroker(life)
        with pytest.raises(ToolError):
            broker.commit(job)
        with pytest.raises(ToolError):
            broker.name_snapshot(job, "past")
        assert manifest_of(life.directory) == before
        assert compact(life).is_committed


def test_a_snapshot_of_the_past_must_end_where_a_segment_begins() -> None:
    """A fold from it would miss other events of its batch."""
    with lived(3, 30) as life:
        manifest, job = manifest_of(life.directory), "1-a"
        path = base_path(life.directory, job)
        for end, why in ((manifest.sealed[1].base_offset + 1, "no segment begins at offset"), (0, "")):
            STORAGE.makedirs(f"{jobs_path(life.directory)}/{job}")
            write_snapshot(STORAGE, path, EMPTY_STATE, log_id=manifest.log_id, end=end)
            if why:
                with pytest.raises(ToolError, match=why):
                    LivedBroker(life).name_snapshot(job, "past")
                Path(path).unlink()
        LivedBroker(life).name_snapshot(job, "past")
        assert manifest_of(life.directory).snapshots[0].name == "past"
        write_snapshot(STORAGE, path, EMPTY_STATE, log_id=manifest.log_id, end=0)
        with pytest.raises(ToolError, match="there is a snapshot 'past' already"):
            LivedBroker(life).name_snapshot(job, "past")
