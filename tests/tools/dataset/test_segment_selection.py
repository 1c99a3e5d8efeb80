"""Which segments a bound in time opens: only those that may hold an event within it, whatever the clock did."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql.datasource import GreaterThan, LessThan

from ambermq.engine.loop import durable_loop
from ambermq.log.format.time_range import TimeRange
from ambermq.log.manifest.manifest import SealedSegment, load, store
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage
from ambermq.tools.cli import main
from ambermq.tools.dataset import arrow_table, segment_selection
from ambermq.tools.dataset.arrow_table import Selection, event_columns
from ambermq.tools.dataset.log_segments import HistorySegment, open_history
from ambermq.tools.dataset.segment_selection import possible_segments
from ambermq.tools.spark.data_source import EventSource, PushingReader
from ambermq.tools.spark.stream_source import EventStreamReader
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.engine.lived import LIVED, Lived

_CONFIG = replace(LIVED, segment_bytes_min=1 << 14, segment_bytes_max=1 << 14)
_STORAGE = DiskStorage()
Row = tuple[int, int]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """A broker that has ended, with many segments, and a restart between them."""
    lived = Lived(tmp_path_factory.mktemp("times") / "data", 5, config=_CONFIG)
    for _ in range(2):
        lived.live(120)
        lived.settle_down()
        lived.end()
        lived.start()
    lived.end()
    return lived


@pytest.fixture
def back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lived:
    """A broker whose clock was set back an hour in the middle, and whose events say so."""
    monkeypatch.setattr(durable_loop, "max", lambda now_us, _: now_us, raising=False)
    lived = Lived(tmp_path / "data", 5, config=_CONFIG)
    lived.live(120)
    lived.now_us -= 3_600_000_000
    lived.live(120)
    lived.settle_down()
    lived.end()
    return lived


@pytest.fixture
def old(life: Lived, tmp_path: Path) -> str:
    """The same directory as version 0.1.0 would have left it: the manifest has no times of segments."""
    copy = tmp_path / "old"
    for path in Path(life.directory).rglob("*"):
        if path.is_file() and path.name != "lock":
            (copy / path.relative_to(life.directory)).parent.mkdir(parents=True, exist_ok=True)
            (copy / path.relative_to(life.directory)).write_bytes(path.read_bytes())
    manifest = load(_STORAGE, str(copy))
    assert manifest is not None
    sealed = tuple(SealedSegment(one.file_id, one.base_offset, one.next_offset, one.size) for one in manifest.sealed)
    store(_STORAGE, str(copy), replace(manifest, sealed=sealed, generation=manifest.generation + 1))
    return str(copy)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The file ids of the segments whose events are read, or that are searched for a moment."""
    file_ids: list[int] = []
    original = arrow_table.open_segment

    def counted(segment: HistorySegment, storage: Storage | None = None) -> Any:
        file_ids.append(segment.file_id)
        return original(segment, storage)

    monkeypatch.setattr(arrow_table, "open_segment", counted)
    monkeypatch.setattr(segment_selection, "open_segment", counted)
    return file_ids


def rows_of(directory: str) -> list[Row]:
    """Offset and time of every row, in order."""
    with open_history(directory) as log:
        batches = [one for part in log.segments for one in event_columns(part, ("offset", "timestamp"))]
    return [_row(row) for batch in batches for row in batch.to_pylist()]


def _row(row: dict[str, Any]) -> Row:
    return row["offset"], round(row["timestamp"].timestamp() * 1_000_000)


def moments(rows: list[Row]) -> tuple[int, int]:
    """Two times near the end of the log, and in it."""
    times = sorted(time for _, time in rows)
    return times[-len(times) // 10], times[-len(times) // 20]


def text_of(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).isoformat()


def counts_of(directory: str) -> tuple[int, int]:
    """How many segments there are, and the most that two moments near the end should open."""
    with open_history(directory) as log:
        return len(log.segments), len(log.segments) // 3


def batch(directory: str, **options: str) -> list[Row]:
    reader = EventSource({"path": directory, **options}).reader(EventSource.columns())
    return _read(reader)


def _read(reader: Any, *ends: dict[str, int]) -> list[Row]:
    reader._columns = ("offset", "timestamp")
    parts = reader.partitions(*ends)
    return sorted(_row(row) for part in parts for one in reader.read(part) for row in one.to_pylist())


def stream(directory: str, **options: str) -> list[Row]:
    reader = EventSource({"path": directory, **options}).streamReader(EventSource.columns())
    assert isinstance(reader, EventStreamReader)
    start = reader.initialOffset()
    return _read(reader, start, reader.latestOffset(start, reader.getDefaultReadLimit()))


def between(rows: list[Row], low_us: int, high_us: int) -> list[Row]:
    return sorted(row for row in rows if low_us <= row[1] < high_us)


@pytest.mark.parametrize("read", [batch, stream])
def test_both_bounds_open_only_what_may_hold_events(life: Lived, opened: list[int], read: Any) -> None:
    """A batch and a stream between two moments give their rows from a few segments, those at the end."""
    rows = rows_of(life.directory)
    low, high = moments(rows)
    count, few = counts_of(life.directory)
    assert count > 8
    for options, expected in (
        ({"since": text_of(low)}, between(rows, low, 1 << 60)),
        ({"since": text_of(low), "until": text_of(high)}, between(rows, low, high)),
    ):
        opened.clear()
        assert read(life.directory, **options) == expected
        assert 0 < len(set(opened)) <= few
    opened.clear()
    early = sorted(time for _, time in rows)[len(rows) // 20]
    assert read(life.directory, until=text_of(early)) == between(rows, 0, early)
    assert 0 < len(set(opened)) <= few


def test_pushed_filters_on_the_time_leave_out_segments(life: Lived, opened: list[int]) -> None:
    """`timestamp >` and `timestamp <` are bounds like the options."""
    rows = rows_of(life.directory)
    low, high = moments(rows)
    reader = EventSource({"path": life.directory, "filters": "push"}).reader(EventSource.columns())
    assert isinstance(reader, PushingReader)
    bounds = [datetime.fromtimestamp(one / 1_000_000, UTC) for one in (low, high)]
    list(reader.pushFilters([GreaterThan(("timestamp",), bounds[0]), LessThan(("timestamp",), bounds[1])]))
    opened.clear()
    assert _read(reader) == between(rows, low + 1, high)
    assert 0 < len(set(opened)) <= counts_of(life.directory)[1]


@pytest.mark.parametrize("bounds", ["--since", "--until"])
def test_an_export_opens_only_what_may_hold_events(life: Lived, opened: list[int], tmp_path: Path, bounds: str) -> None:
    """`log export` between two moments reads the segments between them."""
    rows = rows_of(life.directory)
    times = sorted(time for _, time in rows)
    bound = times[-len(times) // 10] if bounds == "--since" else times[len(times) // 10]
    command = ["log", "export", "--data", life.directory, "--parquet", str(tmp_path / "out"), "--runner", "local"]
    opened.clear()
    done = CliRunner().invoke(main, [*command, "--output", "json", bounds, text_of(bound)])
    assert done.exit_code == 0, done.output
    expected = between(rows, bound, 1 << 60) if bounds == "--since" else between(rows, 0, bound)
    assert f'"events":{len(expected)},' in done.stdout.replace(" ", "").replace("\n", "")
    assert 0 < len(set(opened)) <= counts_of(life.directory)[1]


@pytest.mark.parametrize(("since", "until"), [("9", "5"), ("2026-11-22T00:00:00Z", "2026-11-21T00:00:00Z")])
def test_an_export_refuses_bounds_in_the_wrong_order(life: Lived, tmp_path: Path, since: str, until: str) -> None:
    """A moment of --until before that of --since is a mistake, and nothing is written; equal ones select nothing."""
    target = tmp_path / "out"
    command = ["log", "export", "--data", life.directory, "--parquet", str(target), "--runner", "local"]
    done = CliRunner().invoke(main, [*command, "--since", since, "--until", until])
    assert (done.exit_code, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr == f"error: {since} to {until}: `until` lies before `since`\n"
    assert not target.exists()
    done = CliRunner().invoke(main, [*command, "--since", since, "--until", since, "--output", "json"])
    assert done.exit_code == ExitCode.OK, done.stderr
    assert '"events":0,' in done.stdout.replace(" ", "").replace("\n", "")


def test_a_directory_of_an_older_version_is_bounded_too(old: str, opened: list[int]) -> None:
    """Without times in the manifest the heads of two neighbours bound a segment, as its times never fell."""
    rows = rows_of(old)
    low, high = moments(rows)
    opened.clear()
    assert batch(old, since=text_of(low), until=text_of(high)) == between(rows, low, high)
    assert 0 < len(set(opened)) <= counts_of(old)[1] + 1


def test_a_clock_that_was_set_back_loses_no_row(back: Lived) -> None:
    """Every bound gives the rows of its times, though later segments, batches and rows have earlier times."""
    rows = rows_of(back.directory)
    times = [time for _, time in rows]
    assert times != sorted(times)
    for at in range(0, len(times), len(times) // 12):
        bound = times[at]
        assert batch(back.directory, since=text_of(bound)) == between(rows, bound, 1 << 60)
        assert batch(back.directory, until=text_of(bound)) == between(rows, 0, bound)


def test_a_stream_after_a_step_back_begins_at_the_first_event_of_its_time(back: Lived) -> None:
    """A stream is in order of offsets: it begins and ends where a time first passes the bound."""
    rows = rows_of(back.directory)
    low = max(time for _, time in rows) - 1_000_000
    first = min(offset for offset, time in rows if time >= low)
    assert stream(back.directory, since=text_of(low)) == sorted(row for row in rows if row[0] >= first)
    assert stream(back.directory, until=text_of(low)) == sorted(row for row in rows if row[0] < first)


def _segment(number: int, times: TimeRange | None, **more: Any) -> HistorySegment:
    return HistorySegment(
        "/none", "default", b"", number, 10 * number, 10 * number + 10, 8192, 1000, times=times, **more
    )


def test_bounds_compare_both_times_of_a_segment() -> None:
    """A segment behind a step back is neither before nor behind its neighbours; what is unknown is read."""
    segments = [
        _segment(0, TimeRange(10, 20)),
        _segment(1, TimeRange(5, 8)),
        _segment(2, None, is_compacted=True),
        _segment(3, TimeRange(30, 40)),
    ]
    for selection, expected in (
        (Selection(begin_us=9), [0, 2, 3]),
        (Selection(end_us=9), [1, 2]),
        (Selection(begin_us=20, end_us=30), [0, 2]),
        (Selection(first=15, begin_us=8), [1, 2, 3]),
        (Selection(first=20, end=30), [2]),
        (Selection(), [0, 1, 2, 3]),
    ):
        assert [one.file_id for one in possible_segments(segments, selection)] == expected
