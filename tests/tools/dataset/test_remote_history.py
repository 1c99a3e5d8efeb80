"""History that lies elsewhere than on this disk: where fsspec reaches, an S3 look-alike among it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from fsspec.registry import _registry
from moto.server import ThreadedMotoServer

from ambermq.tools.cli import main
from ambermq.tools.dataset.archive_reader import archive_columns, archive_parts
from ambermq.tools.dataset.archive_writer import write_archive
from ambermq.tools.dataset.arrow_table import event_columns
from ambermq.tools.dataset.file_systems import joined, place_of
from ambermq.tools.dataset.log_segments import HistoryLog, open_histories, open_history
from ambermq.tools.dataset.schema import EVENT_COLUMNS
from ambermq.tools.spark import session as spark_session
from ambermq.tools.spark.data_source import register
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.engine.lived import LIVED, Lived

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = tuple(EVENT_COLUMNS)
_KEY = "testing"
_BUCKET = "history"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3 look-alike within this process, with an empty bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client(f"http://{host}:{port}").mkdir(_BUCKET)
    yield f"{host}:{port}"
    server.stop()


def client(url: str) -> Any:
    return fsspec.filesystem("s3", endpoint_url=url, key=_KEY, secret=_KEY)


def url_of(endpoint: str, below: str) -> str:
    return f"s3://{_KEY}:{_KEY}@{_BUCKET}/{below}?endpoint_override={endpoint}&scheme=http&region=us-east-1"


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    config = replace(LIVED, segment_bytes_min=1 << 15, segment_bytes_max=1 << 15)
    lived = Lived(tmp_path_factory.mktemp("remote") / "data", 3, config=config)
    lived.live(200)
    lived.settle_down()
    lived.end()
    return lived


@pytest.fixture(scope="module")
def remote(endpoint: str, life: Lived) -> str:
    """The same data directory, copied to a bucket."""
    bucket = client(f"http://{endpoint}")
    for path in Path(life.directory).rglob("*"):
        if path.is_file():
            bucket.pipe_file(f"{_BUCKET}/data/{path.relative_to(life.directory)}", path.read_bytes())
    return url_of(endpoint, "data")


def rows(log: HistoryLog) -> list[dict[str, Any]]:
    batches = (one for part in log.segments for one in event_columns(part, _COLUMNS, segments=log.segments))
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_copy_in_a_bucket_reads_as_the_directory(life: Lived, remote: str) -> None:
    """History is read wherever the files lie, the tail of the active segment too."""
    with open_histories(life.directory) as [local], open_histories(remote, "*") as [copy]:
        assert len(copy.segments) > 1
        assert rows(copy) == rows(local)


def test_an_export_may_go_to_a_bucket(endpoint: str, remote: str, life: Lived) -> None:
    """From a bucket into a bucket, by the command."""
    target = url_of(endpoint, "exported")
    result = CliRunner().invoke(
        main, ["log", "export", "--data", remote, "--parquet", target, "--runner", "local"], prog_name="ambermq"
    )
    assert result.exit_code == 0, result.output
    place = place_of(target)
    table = ds.dataset(place.path, filesystem=place.filesystem, partitioning="hive").to_table(columns=["offset"])
    with open_history(life.directory) as log:
        assert sorted(table["offset"].to_pylist()) == sorted(row["offset"] for row in rows(log))


def test_an_archive_may_lie_in_a_bucket(endpoint: str, life: Lived) -> None:
    """Its listing names files that are found beside it."""
    with open_history(life.directory) as log:
        middle = rows(log)[100]["offset"]
        listing, archive = write_archive(life.directory, 0, middle, url_of(endpoint, "archive"))
        archived = [
            row
            for part in archive_parts(_naming(log, listing))
            for batch in archive_columns(part, _COLUMNS)
            for row in batch.to_pylist()
        ]
        expected = [row for row in rows(log) if row["offset"] <= middle]
    assert archive.rows == len(expected)
    assert sorted(archived, key=repr) == sorted(expected, key=repr)


def _naming(log: HistoryLog, listing: str) -> HistoryLog:
    return replace(log, manifest=replace(log.manifest, archive=(listing,)))


def test_what_fsspec_reaches_is_read_and_exported_to(life: Lived) -> None:
    """Any scheme that fsspec has a file system for, with no options of ours."""
    memory = fsspec.filesystem("memory")
    for path in Path(life.directory).rglob("*"):
        if path.is_file():
            memory.pipe_file(f"/data/{path.relative_to(life.directory)}", path.read_bytes())
    with open_histories(life.directory) as [local], open_histories("memory://data") as [copy]:
        expected = rows(local)
        assert rows(copy) == expected
    result = CliRunner().invoke(
        main, ["log", "export", "--data", "memory://data", "--parquet", "memory://out", "--runner", "local"]
    )
    assert result.exit_code == 0, result.output
    place = place_of("memory://out")
    table = ds.dataset(place.path, filesystem=place.filesystem, partitioning="hive").to_table(columns=["offset"])
    assert sorted(table["offset"].to_pylist()) == sorted(row["offset"] for row in expected)


def test_the_marker_of_an_empty_directory_is_not_in_it(endpoint: str) -> None:
    """Consoles of S3 make a directory as an empty object whose key ends with a slash."""
    client(f"http://{endpoint}").call_s3("put_object", Bucket=_BUCKET, Key="made/", Body=b"")
    place = place_of(url_of(endpoint, "made/"))
    assert place.storage.exists(place.path)
    assert place.storage.listdir(place.path) == []


@pytest.mark.spark
def test_spark_reads_and_asks_a_bucket(
    spark: "SparkSession", remote: str, life: Lived, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a frame and by SQL on the command line: tasks open the bucket themselves."""

    @contextmanager
    def opened(*_: object, **__: object) -> "Iterator[SparkSession]":
        yield spark

    with open_history(life.directory) as log:
        offsets = sorted(row["offset"] for row in rows(log))
    register(spark)
    frame = spark.read.format("ambermq").schema("offset long").load(remote)
    assert sorted(row["offset"] for row in frame.collect()) == offsets
    monkeypatch.setattr(spark_session, "open_session", opened)
    sql = "SELECT count(*) AS n, max(offset) AS last FROM events"
    result = CliRunner().invoke(main, ["log", "query", sql, "--data", remote, "--output", "csv"])
    assert (result.exit_code, result.stdout) == (0, f"n,last\n{len(offsets)},{offsets[-1]}\n")


def test_no_log_in_a_bucket_is_one_message(endpoint: str) -> None:
    """A place that can be reached but holds no log is told as a directory would be, without the secret."""
    with pytest.raises(ToolError, match="no log here") as caught, open_histories(url_of(endpoint, "nothing")):
        pass
    assert caught.value.exit_code == ExitCode.NOT_FOUND
    assert f":{_KEY}@" not in caught.value.message


def test_an_unknown_scheme_is_one_message() -> None:
    """What fsspec does not reach is said so."""
    with pytest.raises(ToolError, match="no file system reaches this place") as caught:
        place_of("carrier-pigeon://loft/data")
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/data?region=x", "s3://bucket/data/vhosts/a?region=x"),
        ("s3://bucket/data/", "s3://bucket/data/vhosts/a"),
        ("/var/what?", "/var/what?/vhosts/a"),
    ],
)
def test_what_lies_below_a_place_keeps_its_options(url: str, expected: str) -> None:
    """The query of a URL belongs to the file system, a question mark in a path to the path."""
    assert joined(url, "vhosts/a") == expected


def test_a_missing_bucket_is_made_only_on_request(endpoint: str, life: Lived) -> None:
    """A mistyped name is an error, as `allow_bucket_creation` is false by default."""
    target = url_of(endpoint, "x").replace(_BUCKET, "mistyped")
    with open_history(life.directory) as log, pytest.raises(OSError, match="bucket"):
        write_archive(life.directory, 0, rows(log)[9]["offset"], target)
    assert not client(f"http://{endpoint}").exists("mistyped")
    with open_history(life.directory) as log:
        write_archive(life.directory, 0, rows(log)[9]["offset"], f"{target}&allow_bucket_creation=true")
    assert client(f"http://{endpoint}").exists("mistyped")


def test_a_server_that_is_not_there_is_an_os_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3's libraries raise errors of their own; commands print an OSError as one message."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    place = place_of(url_of("127.0.0.1:1", "data"))
    with pytest.raises(OSError, match=r"127\.0\.0\.1:1"):
        place.storage.exists(place.path)


@pytest.mark.parametrize(
    ("url", "missing", "advice"),
    [
        ("s3://bucket/data", "fsspec", r"pip install 'ambermq\[spark\]'"),
        ("s3://bucket/data", "s3fs", r"pip install 'ambermq\[spark\]'"),
        ("memory://data", "fsspec", r"pip install 'ambermq\[spark\]'"),
        ("gs://bucket/data", "gcsfs", "gcsfs.*install the package of fsspec for this scheme"),
    ],
)
def test_a_missing_package_is_named(url: str, missing: str, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 7, and what to install."""
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(_registry, "s3", raising=False)
    with pytest.raises(ToolError, match=advice) as caught:
        place_of(url)
    assert caught.value.exit_code == ExitCode.NOT_INSTALLED


def test_a_plain_path_needs_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a path nor file:// imports fsspec."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert place_of(str(tmp_path)).path == place_of(f"file://{tmp_path}").path == str(tmp_path)
