"""What a compaction archives: the log and its archive together say all that the log said before."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ambermq.log.manifest.manifest import Manifest, load
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.dataset import archive_writer
from ambermq.tools.dataset.archive_reader import archive_columns, archive_parts, known_from
from ambermq.tools.dataset.arrow_table import Selection, event_columns
from ambermq.tools.dataset.log_segments import open_history
from ambermq.tools.dataset.schema import EVENT_COLUMNS
from ambermq.tools.past.rate_limit import RateLimit
from ambermq.tools.spark import session as spark_session
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run
from tests.tools.sealing import load_until_sealed, sealed_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = tuple(EVENT_COLUMNS)
_SMALL = "[log]\nsegment_bytes_min = 262144\nsegment_bytes_max = 1048576\nballast_bytes = 0\n"
_DEADLINE_S = 240.0
_COUNT = "SELECT count(*) AS n, sum(count) AS messages FROM events WHERE type = 'published'"


@contextmanager
def running(tmp_path: Path, settings: str = "") -> Iterator[ChildBroker]:
    """A broker with small segments."""
    config = tmp_path / "config.toml"
    config.write_text(_SMALL + settings)
    broker = ChildBroker(tmp_path / "data", arguments=("--config", str(config)))
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def fill(run: Run, broker: ChildBroker) -> int:
    """Publish messages and settle some of them; return how many in all."""
    assert run("send", "stays", "--size", 900, "--count", 50, "--data", broker.directory).exit_code == 0
    return 50 + load_until_sealed(broker, sealed_count(broker) + 2)


def manifest_of(broker: ChildBroker) -> Manifest:
    manifest = load(DiskStorage(), str(broker.directory))
    assert manifest is not None
    return manifest


def rows_in_log(broker: ChildBroker) -> list[dict[str, Any]]:
    """Every event that is answered from the log."""
    horizon = manifest_of(broker).horizon
    with open_history(str(broker.directory)) as log:
        known = log.known()
        parts = (event_columns(part, _COLUMNS, segments=log.segments, known=known) for part in log.segments)
        rows = [row for batches in parts for batch in batches for row in batch.to_pylist()]
    return [row for row in rows if horizon is None or row["offset"] >= horizon.offset]


def rows_in_archive(broker: ChildBroker) -> list[dict[str, Any]]:
    """Every event that is answered from the archives."""
    with open_history(str(broker.directory)) as log:
        batches = [one for part in archive_parts(log) for one in archive_columns(part, _COLUMNS)]
    return [row for batch in batches for row in batch.to_pylist()]


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def test_log_and_archive_are_all_that_happened(tmp_path: Path, run: Run) -> None:
    """Two compactions after each other, and every event is there once: in an archive, or in the log."""
    archive = tmp_path / "archive"
    with running(tmp_path) as broker:
        for _ in range(2):
            fill(run, broker)
            before = rows_in_archive(broker) + rows_in_log(broker)
            result = run(
                "log", "compact", "--runner", "local", "--keep-history", "0s", "--archive", archive,
                "--data", broker.directory, "--output", "json",
            )  # fmt: skip
            assert result.exit_code == 0, result.stderr
            after = rows_in_archive(broker) + rows_in_log(broker)
            known = [row for row in after if row["offset"] <= before[-1]["offset"]]
            assert in_order(known) == in_order(before)
        assert len(manifest_of(broker).archive) == 2
        assert len(json.loads(result.stdout)["archive"]) == 1


def test_an_archive_gives_what_is_selected(tmp_path: Path, run: Run) -> None:
    """Offsets and times bound its rows as they do those of a log, whatever columns are asked for."""
    with running(tmp_path) as broker:
        fill(run, broker)
        archive_all(run, broker, "--archive", tmp_path / "archive")
        rows = rows_in_archive(broker)
        middle = rows[len(rows) // 2]
        selections = {
            Selection(first=middle["offset"]): lambda row: row["offset"] >= middle["offset"],
            Selection(end=middle["offset"]): lambda row: row["offset"] < middle["offset"],
            Selection(begin_us=micros(middle)): lambda row: row["timestamp"] >= middle["timestamp"],
            Selection(end_us=micros(middle)): lambda row: row["timestamp"] < middle["timestamp"],
        }
        with open_history(str(broker.directory)) as log:
            parts = list(archive_parts(log))
        for selection, is_wanted in selections.items():
            batches = [one for part in parts for one in archive_columns(part, ("type",), selection)]
            got = sorted(row["type"] for batch in batches for row in batch.to_pylist())
            assert got == sorted(row["type"] for row in rows if is_wanted(row))
            assert 0 < len(got) < len(rows)


def test_what_was_let_go_before_the_first_archive_is_known_to_be_gone(tmp_path: Path, run: Run) -> None:
    """Archives reach back as far as they do: what an earlier compaction did not archive is not in them."""
    with running(tmp_path) as broker:
        fill(run, broker)
        assert begin_of(broker) == 0
        archive_all(run, broker)
        horizon = manifest_of(broker).horizon
        assert horizon is not None
        assert begin_of(broker) == horizon.offset
        for _ in range(2):
            fill(run, broker)
            archive_all(run, broker, "--archive", tmp_path / "archive")
            assert begin_of(broker) == horizon.offset
        fill(run, broker)
        archive_all(run, broker)
        latest = manifest_of(broker).horizon
        assert latest is not None
        assert begin_of(broker) == latest.offset


def archive_all(run: Run, broker: ChildBroker, *options: object) -> None:
    """Compact and keep no history."""
    result = run("log", "compact", "--runner", "local", "--keep-history", "0s", "--data", broker.directory, *options)
    assert result.exit_code == 0, result.stderr


def begin_of(broker: ChildBroker) -> int:
    """Where what log and archives tell begins."""
    with open_history(str(broker.directory)) as log:
        return known_from(log)


def micros(row: dict[str, Any]) -> int:
    """A row's time in microseconds."""
    return round(row["timestamp"].timestamp() * 1_000_000)


def test_a_refusal_names_the_archive(tmp_path: Path, run: Run) -> None:
    """Below the horizon nothing is answered from the log; where the answer lies is said."""
    with running(tmp_path) as broker:
        data = ("--data", broker.directory)
        run("send", "q", "gone", "--id", "gone", *data)
        run("receive", "q", *data)
        run("send", "q", "kept", "--id", "kept", *data)
        load_until_sealed(broker, 1)
        done = run("log", "compact", "--runner", "local", "--keep-history", "0s", "--archive", tmp_path / "a", *data)
        assert done.exit_code == 0, done.stderr
        for asked in (("queue", "list", "--at", 5), ("log", "dump", "--until", 5), ("history", "message", "gone")):
            refused = run(*asked, *data)
            assert refused.exit_code != 0
            assert "archive" in refused.stderr
        assert "compacted at" in run("history", "message", "kept", *data).stdout
        assert "archived" in run("history", "message", "kept", *data).stdout


def test_an_export_begins_at_the_horizon(tmp_path: Path, run: Run) -> None:
    """A note says so; messages that live below it are no event of then, and are left out."""
    with running(tmp_path) as broker:
        fill(run, broker)
        data = ("--data", broker.directory)
        done = run("log", "compact", "--runner", "local", "--keep-history", "0s", "--archive", tmp_path / "a", *data)
        assert done.exit_code == 0, done.stderr
        # What is durable is told by then.
        broker.stop()
        exported = run("log", "export", "--runner", "local", "--parquet", tmp_path / "out", *data, "--output", "json")
        expected = rows_in_log(broker)
    assert json.loads(exported.stdout)["events"] == len(expected)
    assert expected
    note = f"history begins at offset {expected[0]['offset']}; earlier events are archived as Parquet already"
    assert note in exported.stderr


def test_whole_segments_are_archived_too(tmp_path: Path, run: Run) -> None:
    """Segments that are not counted are read for the archive; an unchanged horizon archives nothing twice."""
    with running(tmp_path) as broker:
        fill(run, broker)
        before = rows_in_log(broker)
        for _ in range(2):
            result = run(
                "log", "compact", "--whole-segments", "--keep-history", "0s", "--archive", tmp_path / "archive",
                "--data", broker.directory,
            )  # fmt: skip
            assert result.exit_code == 0, result.stderr
        after = rows_in_archive(broker) + rows_in_log(broker)
    known = [row for row in after if row["offset"] <= before[-1]["offset"]]
    assert in_order(known) == in_order(before)


@pytest.mark.parametrize(("rate", "mib"), [((), 32), (("--disk-rate", 5), 5), (("--disk-rate", 0), None)])
@pytest.mark.parametrize("kept", ["0s", "1ms"])
def test_an_archive_has_the_rate_and_the_priority_of_a_compaction(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, rate: tuple[object, ...], mib: int | None, kept: str
) -> None:
    """Beside the tasks: what the command itself reads is limited, the fold of a base too, at a low priority."""
    spent, rates, told = [0], set(), list[str]()
    original, written = RateLimit.__init__, archive_writer.write_archive

    def noted(limit: RateLimit, bytes_per_s: int, **options: Any) -> None:
        rates.add(bytes_per_s)
        original(limit, bytes_per_s, **options)

    def writing(*arguments: Any, **options: Any) -> Any:
        told.append("archive")
        return written(*arguments, **options)

    def spend(_: RateLimit, length: int) -> None:
        # The runner's thread has its own limit; pyarrow may read in a thread of its own.
        spent[0] += length * (not threading.current_thread().name.startswith("ThreadPoolExecutor"))

    monkeypatch.setattr(os, "setpriority", lambda *how: told.append(f"nice {how[-1]}"))
    monkeypatch.setattr(archive_writer, "write_archive", writing)
    monkeypatch.setattr(RateLimit, "__init__", noted)
    monkeypatch.setattr(RateLimit, "spend", spend)
    with running(tmp_path) as broker:
        fill(run, broker)
        load_until_sealed(broker, sealed_count(broker) + 2)
        told.clear()
        before = sum(one.size for one in manifest_of(broker).sealed)
        result = run(
            "log", "compact", "--runner", "local", "--keep-history", kept, "--archive", tmp_path / "archive",
            "--data", broker.directory, *rate, "--output", "json",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["archive"]
    assert told[0] == "nice 10"
    assert "archive" in told
    assert rates == {0 if mib is None else mib << 20}
    assert (spent[0] >= before // 2) is (mib is not None)


def test_an_archive_that_cannot_be_written_ends_it(tmp_path: Path, run: Run) -> None:
    """One message, and the log is as it was: nothing goes that is not archived."""
    (tmp_path / "file").write_text("")
    with running(tmp_path) as broker:
        fill(run, broker)
        before = manifest_of(broker).sealed
        result = run(
            "log", "compact", "--runner", "local", "--keep-history", "0s", "--archive", tmp_path / "file" / "below",
            "--data", broker.directory,
        )  # fmt: skip
        assert result.exit_code == ExitCode.FAILED
        assert len(result.stderr.splitlines()) == 1
        assert manifest_of(broker).horizon is None
        assert set(before) <= set(manifest_of(broker).sealed)


@pytest.mark.spark
def test_a_broker_compacts_with_spark_and_archives_by_itself(
    tmp_path: Path, run: Run, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """From end to end; SQL over log and archive together counts all that was ever published."""
    due = "garbage_percent = 10\ngarbage_bytes_min = 1\ncheck_s = 1\npause_s = 10000"
    settings = f'[compaction]\n{due}\nkeep_history_s = 0\narchive = "{tmp_path}/archive"\n'
    with running(tmp_path, settings) as broker:
        count = fill(run, broker)
        wait_for_horizon(broker)
        assert manifest_of(broker).archive
        data = ("--data", broker.directory)
        assert len(run("receive", "stays", "--all", "--timeout", 2, *data).stdout.splitlines()) == 50
        assert run("log", "verify", *data).exit_code == 0
        monkeypatch.setattr(spark_session, "open_session", opened(spark))
        answer = run("log", "query", _COUNT, *data, "--output", "json")
        assert answer.exit_code == 0, answer.stderr
        assert json.loads(answer.stdout) == {"n": count, "messages": count}
        assert answer.stderr == ""
        answer = run("log", "query", "SELECT max(offset) AS n FROM events", *data, "--until", 1, "--output", "json")
        assert json.loads(answer.stdout) == {"n": 0}


def opened(spark: "SparkSession") -> Any:
    """The session of all tests in place of one for a command."""

    @contextmanager
    def open_session(*_: object, **__: object) -> "Iterator[SparkSession]":
        yield spark

    return open_session


def wait_for_horizon(broker: ChildBroker) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while manifest_of(broker).horizon is None:
        if time.monotonic() > deadline:
            pytest.fail(broker.last_log_line())
        time.sleep(0.2)
