"""The reader of a stream, without Spark: where it begins, and what it says of events that are gone."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import move, rmtree

import pytest

from ambermq.tools.dataset.log_segments import open_history
from ambermq.tools.spark.data_source import EventSource, HistoryWarning
from ambermq.tools.spark.stream_source import EventStreamReader
from ambermq.tools.terminal.errors import ToolError
from tests.engine.lived import LIVED, Lived
from tests.tools.compactions import compact

_CONFIG = replace(LIVED, segment_bytes_min=1 << 14, segment_bytes_max=1 << 14)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Lived]:
    """A broker with sealed segments that a compaction may remove."""
    lived = Lived(tmp_path / "data", 5, config=_CONFIG)
    lived.live(80)
    lived.settle_down()
    yield lived
    lived.end()


def stream(directory: str, **options: str) -> EventStreamReader:
    """The reader of a stream over the columns offset and type."""
    source = EventSource({"path": directory, **options})
    reader = source.streamReader(EventSource.columns())
    assert isinstance(reader, EventStreamReader)
    reader._columns = ("offset", "type")
    return reader


def batch(reader: EventStreamReader, start: dict[str, int]) -> tuple[list[int], dict[str, int]]:
    """The offsets of the next micro-batch, and its end."""
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    parts = reader.partitions(start, end)
    rows = [row["offset"] for part in parts for one in reader.read(part) for row in one.to_pylist()]
    return rows, end


@contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_stream_that_lags_behind_a_compaction_ends(life: Lived) -> None:
    """By default it names what is gone, and skips nothing: not in a new batch, and not in one that was planned."""
    reader = stream(life.directory)
    start = reader.initialOffset()
    rows, planned = batch(reader, start)
    assert rows
    horizon = compact(life).horizon
    assert horizon is not None
    gone = rf"'default': the stream has lost events: expected events from offset 0 on, .* {horizon.offset:,} offsets"
    with pytest.raises(ToolError, match=gone):
        reader.latestOffset(start, reader.getDefaultReadLimit())
    with pytest.raises(ToolError, match="failOnDataLoss"):
        stream(life.directory).partitions(start, planned)


def test_a_stream_may_go_on_behind_a_compaction(life: Lived) -> None:
    """With failOnDataLoss false it warns once, with the count, and goes on at the horizon."""
    horizon = compact(life).horizon
    assert horizon is not None
    reader = stream(life.directory, failOnDataLoss="FALSE")
    with pytest.warns(HistoryWarning, match=rf"{horizon.offset:,} offsets, 0 to {horizon.offset - 1:,}") as warned:
        rows, end = batch(reader, {"default": 0})
    assert len(warned) == 1
    with open_history(life.directory) as log:
        assert end == {"default": log.end}
    assert min(rows) == horizon.offset
    with no_warning():
        assert batch(reader, end) == ([], end)


def test_a_stream_that_has_read_all_loses_nothing(life: Lived) -> None:
    """A compaction of events that were read before is no loss, nor one before a new stream."""
    reader = stream(life.directory)
    _, end = batch(reader, reader.initialOffset())
    compact(life)
    life.live(10)
    life.settle_down()
    with no_warning():
        rows, _ = batch(reader, end)
        assert rows
        assert batch(stream(life.directory), stream(life.directory).initialOffset())[0][-1] == rows[-1]


def test_live_messages_below_the_horizon_are_what_was_asked_for(life: Lived) -> None:
    """With below_horizon set to log a compaction is no loss."""
    horizon = compact(life).horizon
    assert horizon is not None
    reader = stream(life.directory, below_horizon="log")
    with no_warning():
        assert min(batch(reader, reader.initialOffset())[0]) < horizon.offset


def test_another_log_in_the_directory_is_a_loss(life: Lived, tmp_path: Path) -> None:
    """A log that ends before the stream's offset is another one: an error, or a warning and all of its events."""
    reader = stream(life.directory)
    _, end = batch(reader, reader.initialOffset())
    life.end()
    rmtree(life.directory)
    other = Lived(tmp_path / "other", 6, config=_CONFIG)
    other.live(5)
    other.settle_down()
    other.end()
    move(other.directory, life.directory)
    life.start()
    start = {"default": end["default"] + (8 << 20)}
    with pytest.raises(ToolError, match="another log"):
        reader.latestOffset(start, reader.getDefaultReadLimit())
    with pytest.warns(HistoryWarning, match="another log"):
        rows, _ = batch(stream(life.directory, failOnDataLoss="false"), start)
    assert min(rows) == 0


def test_a_virtual_host_that_is_deleted_is_a_loss(life: Lived) -> None:
    """A stream over a virtual host that is gone ends, or warns and goes on with the others."""
    start = stream(life.directory).initialOffset() | {"gone": 7}
    with pytest.raises(ToolError, match=r"'gone'.*deleted.*offset 7"):
        batch(stream(life.directory, vhost="*"), start)
    with pytest.warns(HistoryWarning, match="'gone'"):
        rows, end = batch(stream(life.directory, vhost="*", failOnDataLoss="false"), start)
    assert rows
    assert set(end) == {"default"}


def test_a_wrong_word_is_refused(life: Lived) -> None:
    """The option is true or false."""
    with pytest.raises(ToolError, match="failOnDataLoss: wrong option: expected true or false"):
        stream(life.directory, failOnDataLoss="perhaps")
