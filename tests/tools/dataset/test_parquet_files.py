"""Parquet files that other programs read: an export has the same rows for each of them, the queue among the columns."""

import importlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from ambermq.tools.cli import main
from ambermq.tools.dataset.archive_reader import Archive, ArchivePart, archive_columns, may_hold, store_archive
from ambermq.tools.dataset.archive_writer import write_archive
from ambermq.tools.dataset.arrow_table import Selection, event_columns
from ambermq.tools.dataset.log_segments import open_history
from ambermq.tools.dataset.parquet_files import NO_QUEUE, ParquetFile, write_events
from ambermq.tools.dataset.schema import EVENT_COLUMNS, schema_of
from tests.engine.lived import LIVED, Lived

_COLUMNS = tuple(EVENT_COLUMNS)
Counts = Counter[str | None]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """A life over several segments, with events of queues and events of none."""
    config = replace(LIVED, segment_bytes_min=1 << 16, segment_bytes_max=1 << 16)
    lived = Lived(tmp_path_factory.mktemp("parquet") / "data", 7, config=config)
    lived.live(150)
    lived.settle_down()
    lived.end()
    return lived


@pytest.fixture(scope="module")
def counts(life: Lived) -> Counts:
    """How many rows each queue has in the log, None for no queue."""
    with open_history(life.directory) as log:
        batches = [one for part in log.segments for one in event_columns(part, ("queue",), segments=log.segments)]
    return Counter(row["queue"] for batch in batches for row in batch.to_pylist())


def _pyarrow_table(target: str) -> Counts:
    return Counter(pq.read_table(target).column("queue").to_pylist())


def _pyarrow_dataset(target: str) -> Counts:
    return Counter(ds.dataset(target, partitioning="hive").to_table(columns=["queue"]).column("queue").to_pylist())


def _pandas(target: str) -> Counts:
    pandas: Any = importlib.import_module("pandas")
    queues = pandas.read_parquet(target)["queue"]
    return Counter(None if pandas.isna(one) else one for one in queues)


def _duckdb(target: str) -> Counts:
    duckdb: Any = importlib.import_module("duckdb")
    files = f"read_parquet('{target}/**/*.parquet', hive_partitioning = true)"
    return Counter(dict(duckdb.sql(f"SELECT queue, count(*) FROM {files} GROUP BY queue").fetchall()))


@pytest.mark.parametrize(
    ("package", "read"),
    [("pyarrow", _pyarrow_table), ("pyarrow", _pyarrow_dataset), ("pandas", _pandas), ("duckdb", _duckdb)],
)
@pytest.mark.parametrize("contents", [False, True])
def test_every_reader_has_the_same_rows(
    life: Lived, counts: Counts, tmp_path: Path, package: str, read: Callable[[str], Counts], contents: bool
) -> None:
    """The rows of each queue and those of none, by the column `queue`, without an option for the reader."""
    pytest.importorskip(package)
    target = str(tmp_path / "out")
    command = ["log", "export", "--data", life.directory, "--parquet", target, "--runner", "local"]
    done = CliRunner().invoke(main, [*command, *(("--contents",) if contents else ())])
    assert done.exit_code == 0, done.output
    assert counts[None] > 0
    assert read(target) == counts


def test_an_archive_is_read_by_other_programs_too(life: Lived, counts: Counts, tmp_path: Path) -> None:
    """An archive has the form of an export; its listing beside the files does not disturb a reader of a pattern."""
    _, archive = write_archive(life.directory, 0, 1 << 40, str(tmp_path))
    paths = [str(tmp_path / one.path) for one in archive.files]
    assert Counter(ds.dataset(paths).to_table(columns=["queue"]).column("queue").to_pylist()) == counts


def _rows(queues: list[str | None]) -> pa.RecordBatch:
    rows = [{"offset": number, "timestamp": 0, "queue": queue} for number, queue in enumerate(queues)]
    return pa.RecordBatch.from_pylist(rows, schema=schema_of(_COLUMNS))


def test_a_queue_of_the_name_for_no_queue_is_told_apart(tmp_path: Path) -> None:
    """A queue may have the name of the partition: the rows are those of the column, and no filter misses them."""
    files = write_events([_rows([NO_QUEUE, None, "a b/c"])], _COLUMNS, str(tmp_path), attempt="x")
    assert sorted(str(one.queue) for one in files) == ["a b/c", NO_QUEUE]
    parts = [ArchivePart(str(tmp_path), one, 0, 2) for one in files]
    wanted = Selection(queues=frozenset({NO_QUEUE}))
    batches = [batch for part in parts if may_hold(part, wanted) for batch in archive_columns(part, ("queue",), wanted)]
    assert [row["queue"] for batch in batches for row in batch.to_pylist()] == [NO_QUEUE, None]


def test_an_archive_of_an_older_version_has_its_queues(tmp_path: Path) -> None:
    """The files of 0.1.0 have the queue only in their paths, and no queue as `__HIVE_DEFAULT_PARTITION__`."""
    dated = _rows(["one", "one", None])
    schema = pa.unify_schemas([dated.schema, pa.schema([("date", pa.string())])])
    paths: list[str] = []
    ds.write_dataset(
        [pa.RecordBatch.from_arrays([*dated.columns, pa.array(["1970-01-01"] * 3)], schema=schema)],
        str(tmp_path),
        schema=schema,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("date", pa.string()), ("queue", pa.string())]), flavor="hive"),
        file_visitor=lambda written: paths.append(written.path.removeprefix(f"{tmp_path}/")),
    )
    files = tuple(ParquetFile(path, 1, 1, 1) for path in sorted(paths))
    archive = Archive(1, "00", "default", 0, 2, _COLUMNS, files)
    store_archive(archive, str(tmp_path), attempt="old")
    parts = [ArchivePart(str(tmp_path), one, 0, 2) for one in archive.files]
    batches = [batch for part in parts for batch in archive_columns(part, ("queue",))]
    assert Counter(row["queue"] for batch in batches for row in batch.to_pylist()) == {"one": 2, None: 1}
    assert [may_hold(one, Selection(queues=frozenset({"one"}))) for one in parts] == [False, True]
