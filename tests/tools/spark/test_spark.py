"""History for Spark users: frames, streams, export and query, on the session that all tests of Spark share."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import DataFrame, SparkSession

from ambermq.log.manifest.manifest import Horizon, commit
from ambermq.log.read.log_reader import open_reader
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.cli import main
from ambermq.tools.dataset.archive_writer import write_archive
from ambermq.tools.dataset.arrow_table import event_columns
from ambermq.tools.dataset.log_segments import open_history
from ambermq.tools.dataset.schema import EVENT_COLUMNS
from ambermq.tools.spark import session as spark_session
from ambermq.tools.spark.data_source import register
from ambermq.tools.spark.errors import translating_spark
from ambermq.tools.spark.query_command import columns_in
from ambermq.tools.spark.session import STARTS_SOON, open_session
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.docs.pages import ROOT
from tests.engine.lived import LIVED, Lived

pytestmark = pytest.mark.spark

_COLUMNS = tuple(EVENT_COLUMNS)
_CONFIG = replace(LIVED, segment_bytes_min=1 << 16, segment_bytes_max=1 << 16)
"""Few segments: each is a task, and a task takes its time, whatever is in it."""
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    """A process has one session: these tests add their source to the one that all share."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    register(spark)


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """A directory with a random life in it, over several segments, at its end."""
    lived = Lived(tmp_path_factory.mktemp("spark") / "data", 7, config=_CONFIG)
    for _ in range(2):
        lived.live(200)
        lived.settle_down()
        lived.end()
        lived.start()
    lived.settle_down()
    lived.end()
    return lived


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command on the session of the tests."""

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(spark_session, "open_session", opened)
    return lambda *arguments: CliRunner().invoke(main, [str(one) for one in arguments], prog_name="ambermq")


def load(spark: SparkSession, directory: str, schema: str = "", **options: str) -> DataFrame:
    reader = spark.read.format("ambermq").options(**options)
    return (reader.schema(schema) if schema else reader).load(directory)


def told(directory: str, columns: tuple[str, ...] = _COLUMNS) -> list[tuple[Any, ...]]:
    """The rows that the source is made of, without Spark."""
    with open_history(directory) as log:
        batches = [one for part in log.segments for one in event_columns(part, columns, segments=log.segments)]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def got(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


def _comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Times as numbers: Spark's are of no zone here, and mean the session's, UTC."""
    return sorted(
        (tuple(one.timestamp() if hasattr(one, "timestamp") else one for one in row) for row in rows), key=repr
    )


def test_a_frame_is_the_events(spark: SparkSession, life: Lived) -> None:
    """Without a word more than the directory, all events are there with all common columns."""
    frame = load(spark, life.directory)
    assert frame.columns == list(_COLUMNS)
    assert _comparable(got(frame)) == _comparable(told(life.directory))


def test_a_schema_chooses_columns(spark: SparkSession, life: Lived) -> None:
    """Only the columns of a schema are made, contents of messages among them."""
    frame = load(spark, life.directory, "body binary, offset long, type string")
    rows = [(bytes(body) if body is not None else None, *rest) for body, *rest in got(frame)]
    assert sorted(rows, key=repr) == sorted(told(life.directory, ("body", "offset", "type")), key=repr)


def test_a_partition_is_a_segment(spark: SparkSession, life: Lived) -> None:
    """Spark reads as many parts as there are segments; bounds leave out those before and behind."""
    with open_reader(life.directory) as reader:
        bases = [info.base_offset for info in reader.segments() if info.size > 4096 and str(info.state) != "spare"]
    assert load(spark, life.directory).rdd.getNumPartitions() == len(bases)
    some = load(spark, life.directory, since=str(bases[1]), until=str(bases[2]))
    assert some.rdd.getNumPartitions() == 1
    expected = [row for row in told(life.directory) if bases[1] <= row[0] < bases[2]]
    assert _comparable(got(some)) == _comparable(expected)


def _conditions(middle: dict[str, Any]) -> list[tuple[str, Callable[[dict[str, Any]], bool]]]:
    """Conditions around a row, and what they say."""
    offset, moment = middle["offset"], middle["timestamp"]
    return [
        (f"offset >= {offset}", lambda row: row["offset"] >= offset),
        (
            f"offset < {offset} AND type = 'published'",
            lambda row: row["offset"] < offset and row["type"] == "published",
        ),
        ("queue IN ('one', 'two')", lambda row: row["queue"] in {"one", "two"}),
        ("queue = 'two' AND type <> 'settled'", lambda row: row["queue"] == "two" and row["type"] != "settled"),
        (f"timestamp <= timestamp '{moment:%Y-%m-%d %H:%M:%S.%f}'", lambda row: row["timestamp"] <= moment),
        ("queue IS NULL AND type = 'nothing'", lambda row: False),
    ]


@pytest.mark.parametrize("is_pushed", [False, True])
def test_filters_give_the_same_rows_pushed_or_not(spark: SparkSession, life: Lived, is_pushed: bool) -> None:
    """Whether Spark pushes filters or not, the rows are those that it would have filtered itself."""
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in told(life.directory)]
    middle = rows[len(rows) // 2]
    spark.conf.set(_PUSHDOWN, str(is_pushed).lower())
    try:
        for condition, keeps in _conditions(middle):
            frame = load(spark, life.directory, filters="push" if is_pushed else "spark").filter(condition)
            assert sorted(row["offset"] for row in frame.collect()) == [r["offset"] for r in rows if keeps(r)], (
                condition
            )
    finally:
        spark.conf.unset(_PUSHDOWN)


def test_pushed_filters_leave_out_segments(spark: SparkSession, life: Lived) -> None:
    """A filter on offsets is not only applied: segments without any of them are not read."""
    spark.conf.set(_PUSHDOWN, "true")
    try:
        last = max(row[0] for row in told(life.directory))
        frame = load(spark, life.directory, filters="push").filter(f"offset = {last}")
        assert frame.rdd.getNumPartitions() == 1
        assert frame.count() == len([row for row in told(life.directory) if row[0] == last])
    finally:
        spark.conf.unset(_PUSHDOWN)


def test_a_frame_may_be_used_again_with_other_filters(spark: SparkSession, life: Lived) -> None:
    """Unless one asks for pushed filters nothing is left over from one use to the next, whatever Spark keeps."""
    spark.conf.set(_PUSHDOWN, "true")
    try:
        frame = load(spark, life.directory, "offset long, type string")
        count = frame.count()
        assert frame.filter("type = 'nothing'").count() == 0
        assert frame.count() == count
        both = frame.filter("type = 'published'").union(frame.filter("type = 'settled'")).count()
        assert both == len([row for row in told(life.directory, ("type",)) if row[0] in {"published", "settled"}])
    finally:
        spark.conf.unset(_PUSHDOWN)


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"colour": "red"}, "", "ambermq: colour: wrong option"),
        ({"damaged": "perhaps"}, "", "expected error or rows, found perhaps"),
        ({"vhost": "nowhere"}, "", "no virtual host 'nowhere'"),
        ({"since": "some day"}, "", "invalid moment"),
        ({}, "offset int", "offset: wrong type of a column of history: expected int64, found int32"),
        ({}, "colour string", "no such column of history: colour"),
    ],
)
def test_a_wrong_read_is_told_in_our_words(
    spark: SparkSession, life: Lived, options: dict[str, str], schema: str, message: str
) -> None:
    """What is wrong with options and columns is one message, out of whatever Spark wraps it in."""
    with pytest.raises(ToolError) as caught, translating_spark():
        load(spark, life.directory, schema, **options).count()
    assert message in caught.value.message


def _damaged(directory: Path) -> Lived:
    lived = Lived(directory, 9, config=_CONFIG)
    lived.live(300)
    lived.settle_down()
    lived.end()
    with open_reader(lived.directory) as reader:
        batch = [one.batch for one in reader.batches() if one.batch.header.count][3]
        path = next(info.path for info in reader.segments() if info.file_id == batch.file_id)
    with Path(path).open("r+b") as file:
        file.seek(batch.position + 80)
        file.write(b"\xff\xff\xff")
    return lived


def test_damage_ends_a_query_or_is_rows(spark: SparkSession, tmp_path: Path) -> None:
    """A damaged batch in a sealed segment is an error with its file and position, or by option a row."""
    lived = _damaged(tmp_path / "data")
    with pytest.raises(ToolError, match="is damaged at position") as caught, translating_spark():
        load(spark, lived.directory).count()
    assert caught.value.exit_code == ExitCode.DAMAGED
    frame = load(spark, lived.directory, damaged="rows")
    assert frame.filter("type = 'unreadable'").count() == 1
    assert frame.count() > 1


def _follow(spark: SparkSession, directory: str, target: Path, **options: str) -> list[int]:
    """Run a stream over all that is there now; return the rows of its micro-batches."""
    stream = spark.readStream.format("ambermq").options(**options).schema("offset long, type string").load(directory)
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(target / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(target / "rows"))
    query.awaitTermination()
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def test_a_stream_gives_each_event_once(spark: SparkSession, tmp_path: Path) -> None:
    """A stream takes what is durable, in micro-batches of bounded size, and goes on where it ended before."""
    lived = Lived(tmp_path / "data", 11, config=_CONFIG)
    lived.live(60)
    lived.settle_down()
    sizes = _follow(spark, lived.directory, tmp_path, events_max="60")
    before = told(lived.directory, ("offset", "type"))
    assert len(sizes) > 1
    assert sum(sizes) == len(before)
    lived.live(60)
    lived.settle_down()
    more = _follow(spark, lived.directory, tmp_path)
    lived.end()
    everything = told(lived.directory, ("offset", "type"))
    assert more == [len(everything) - len(before)]
    rows = got(spark.read.parquet(str(tmp_path / "rows")))
    assert sorted(rows) == sorted(everything)


def test_a_stream_that_has_lost_events_ends(spark: SparkSession, tmp_path: Path) -> None:
    """Spark ends the query with our words; with failOnDataLoss false it goes on at the horizon."""
    lived = Lived(tmp_path / "data", 11, config=_CONFIG)
    lived.live(60)
    lived.settle_down()
    _follow(spark, lived.directory, tmp_path)
    lived.live(60)
    lived.settle_down()
    lived.end()
    last = told(lived.directory, ("offset",))[-1][0]
    _compacted(lived, tmp_path, last, is_archived=False)
    with pytest.raises(ToolError, match=r"the stream has lost events.*failOnDataLoss"), translating_spark():
        _follow(spark, lived.directory, tmp_path)
    assert _follow(spark, lived.directory, tmp_path, failOnDataLoss="false") == [1]


def _compacted(lived: Lived, tmp_path: Path, horizon: int, *, is_archived: bool = True) -> None:
    """Begin the history at a horizon and archive what was before; the log keeps it, as if it was live."""
    listing, archive = write_archive(lived.directory, 0, horizon - 1, str(tmp_path / "archive"))
    assert archive.rows == len([row for row in told(lived.directory) if row[0] < horizon])
    commit(
        DiskStorage(),
        lived.directory,
        lambda manifest: replace(
            manifest,
            generation=manifest.generation + 1,
            archive=(listing,) if is_archived else (),
            horizon=Horizon(horizon, lived.now_us),
        ),
    )


def test_log_and_archive_together_are_all_that_happened(
    spark: SparkSession, run: Callable[..., Result], tmp_path: Path
) -> None:
    """With the archive every event is there once, whatever the log still holds of what was compacted."""
    lived = Lived(tmp_path / "data", 13, config=_CONFIG)
    lived.live(150)
    lived.settle_down()
    lived.end()
    everything = told(lived.directory)
    horizon = everything[len(everything) // 2][0]
    _compacted(lived, tmp_path, horizon)
    together = load(spark, lived.directory)
    assert _comparable(got(together)) == _comparable(everything)
    above = load(spark, lived.directory, below_horizon="nothing")
    assert _comparable(got(above)) == _comparable([row for row in everything if row[0] >= horizon])
    answer = run("log", "query", "SELECT count(*) AS n FROM events", "--data", lived.directory, "--output", "json")
    assert (answer.exit_code, answer.stdout) == (0, f'{{"n":{len(everything)}}}\n')


def test_without_an_archive_history_begins_at_the_horizon(spark: SparkSession, tmp_path: Path) -> None:
    """Live messages below the horizon are read only on request, in a stream too."""
    lived = Lived(tmp_path / "data", 13, config=_CONFIG)
    lived.live(150)
    lived.settle_down()
    lived.end()
    everything = told(lived.directory, ("offset", "type"))
    horizon = everything[len(everything) // 2][0]
    _compacted(lived, tmp_path, horizon, is_archived=False)
    kept = sorted(row for row in everything if row[0] >= horizon)
    schema = "offset long, type string"
    assert sorted(got(load(spark, lived.directory, schema))) == kept
    assert sorted(got(load(spark, lived.directory, schema, below_horizon="log"))) == sorted(everything)
    assert sum(_follow(spark, lived.directory, tmp_path)) == len(kept)
    assert sorted(got(spark.read.parquet(str(tmp_path / "rows")))) == kept


def test_an_archive_that_is_gone_or_changed_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """What the manifest names must be there and as it was written."""
    lived = Lived(tmp_path / "data", 13, config=_CONFIG)
    lived.live(60)
    lived.settle_down()
    lived.end()
    _compacted(lived, tmp_path, told(lived.directory)[-1][0])
    listing = next((tmp_path / "archive").glob("*.archive"))
    listing.write_bytes(listing.read_bytes().replace(b'"rows"', b'"rowz"', 1))
    with pytest.raises(ToolError, match="crc32c") as caught, translating_spark():
        load(spark, lived.directory).count()
    assert caught.value.exit_code == ExitCode.DAMAGED


@pytest.mark.parametrize("runner", ["spark", "local"])
def test_an_export_is_the_events_by_date_and_queue(
    run: Callable[..., Result], life: Lived, tmp_path: Path, runner: str
) -> None:
    """Either runner writes all rows into directories by date and queue, which any reader of Parquet understands."""
    target = tmp_path / "out"
    result = run(
        "log", "export", "--data", life.directory, "--parquet", target, "--runner", runner, "--contents",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    table = ds.dataset(target, partitioning="hive").to_table(columns=list(_COLUMNS))
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert _comparable(rows) == _comparable(told(life.directory))
    assert {path.parent.name for path in target.rglob("*.parquet")} >= {
        "queue_partition=one",
        "queue_partition=two",
    }


def test_an_export_into_something_is_refused(run: Callable[..., Result], life: Lived, tmp_path: Path) -> None:
    """Rows that are there already would be there twice."""
    (tmp_path / "old.parquet").write_bytes(b"")
    result = run("log", "export", "--data", life.directory, "--parquet", tmp_path, "--runner", "local")
    assert result.exit_code == ExitCode.USAGE
    assert "the target is not empty" in result.stderr


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_a_query_prints_rows(run: Callable[..., Result], life: Lived, output: str) -> None:
    """The view `events` can be asked anything that Spark SQL can."""
    sql = "SELECT type, count(*) AS n FROM events WHERE type = 'queue-declared' GROUP BY type"
    count = len([row for row in told(life.directory, ("type",)) if row[0] == "queue-declared"])
    result = run("log", "query", sql, "--data", life.directory, "--output", output)
    assert result.exit_code == 0, result.output
    expected = {
        "table": ["type", "n", "queue-declared", str(count)],
        "json": [f'{{"type":"queue-declared","n":{count}}}'],
        "csv": ["type,n", f"queue-declared,{count}"],
    }
    assert result.stdout.split() == expected[output]


@pytest.mark.parametrize(
    ("sql", "message"),
    [("SELEC 1", "PARSE_SYNTAX_ERROR"), ("SELECT colour FROM events", "UNRESOLVED_COLUMN")],
)
def test_a_wrong_query_is_one_message(run: Callable[..., Result], life: Lived, sql: str, message: str) -> None:
    """What Spark says of a query comes without plans and tracebacks."""
    result = run("log", "query", sql, "--data", life.directory)
    assert result.exit_code == ExitCode.USAGE
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_query_since_no_moment_is_refused_at_once(run: Callable[..., Result], life: Lived) -> None:
    """Even where it reads no events, which would find that out."""
    result = run("log", "query", "SELECT 1", "--data", life.directory, "--since", "nonsense")
    assert result.exit_code == ExitCode.USAGE
    assert "nonsense" in result.stderr


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT count(*) FROM events", ("offset",)),
        ("SELECT Queue, sum(size) FROM events GROUP BY 1", ("queue", "size")),
        ("SELECT * FROM events WHERE queue = 'body'", _COLUMNS),
        ("SELECT *, body FROM events", (*_COLUMNS, "body")),
        ("DESCRIBE events", _COLUMNS),
    ],
)
def test_a_query_reads_what_it_names(sql: str, columns: tuple[str, ...]) -> None:
    """Only the columns that a query may need are made."""
    assert columns_in(sql) == columns


def test_a_second_session_is_refused(spark: SparkSession) -> None:
    """Spark has one session in a process: a second one fails, and the first continues."""
    with pytest.raises(ToolError, match="open in this process already"), open_session("local[1]"):
        pass
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    ("master", "message", "code"),
    [
        ("nonsense", "wrong Spark master", ExitCode.USAGE),
        ("local[0]", "wrong Spark master", ExitCode.USAGE),
        ("spark://127.0.0.1:1", "the Spark master cannot be reached", ExitCode.CANNOT_CONNECT),
    ],
)
def test_an_unknown_master_is_one_message(master: str, message: str, code: ExitCode) -> None:
    """No Java is started for a master that there cannot be."""
    with pytest.raises(ToolError, match=message) as caught, open_session(master):
        pass
    assert caught.value.exit_code == code


def test_a_missing_package_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the error says how to install it."""
    monkeypatch.setattr(spark_session, "find_spec", lambda name: None)
    with pytest.raises(ToolError, match=r"pip install 'ambermq\[spark\]'") as caught, open_session("local[1]"):
        pass
    assert caught.value.exit_code == ExitCode.NOT_INSTALLED


def test_a_command_is_quiet_and_leaves_nothing(spark: SparkSession, life: Lived, tmp_path: Path) -> None:
    """Nothing of Spark's reaches the terminal, and no file is left where the command ran or for temporary ones."""
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    command = [sys.executable, "-m", "ambermq", "log", "query", "SELECT count(*) AS n FROM events", "--output", "csv"]
    # Java takes a third less of the processor if it hardly compiles. Its note on the variable must not be shown either.
    environment = {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT), "JDK_JAVA_OPTIONS": STARTS_SOON}
    result = subprocess.run(
        [*command, "--data", life.directory, "--master", "local[1]"],
        cwd=work,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (result.stdout, result.stderr) == (f"n\n{len(told(life.directory))}\n", "")
    assert list(work.iterdir()) == []
    assert list(temporary.iterdir()) == []
