"""Files by day and queue: all rows are in them, in their order, whatever limit splits them."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ambermq.tools.dataset import partition_writer
from ambermq.tools.dataset.parquet_files import ParquetFile, write_events
from ambermq.tools.dataset.partition_writer import partition_name
from ambermq.tools.dataset.schema import schema_of

COLUMNS = ("offset", "timestamp", "queue", "body")
DAY_US = 86_400_000_000


def batches(count: int, *, queues: int, size: int = 10) -> Iterator[pa.RecordBatch]:
    """Yield batches of 8 rows of all queues in turn, of a second day from the middle on."""
    for start in range(0, count, 8):
        rows = [
            {"offset": n, "timestamp": DAY_US * (2 * n // count), "queue": f"q{n % queues}", "body": bytes(size)}
            for n in range(start, min(start + 8, count))
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=schema_of(COLUMNS))


def rows_of(target: Path, files: list[ParquetFile]) -> dict[tuple[str, str], list[int]]:
    """Return the offsets of each day and queue, in the order of its files."""
    found: dict[tuple[str, str], list[int]] = {}
    for file in sorted(files, key=lambda one: (one.date, one.queue, int(one.path.split("-")[-1].split(".")[0]))):
        offsets = pq.read_table(target / file.path, partitioning=None).column("offset").to_pylist()
        assert len(offsets) == file.rows
        found.setdefault((file.date, str(file.queue)), []).extend(offsets)
    return found


def groups_of(target: Path, files: list[ParquetFile]) -> int:
    """Return how many row groups files have."""
    return sum(pq.ParquetFile(target / one.path).num_row_groups for one in files)


@pytest.mark.parametrize(
    ("limit", "value"), [("_BUFFERED_BYTES_MAX", 800), ("_OPEN_FILES_MAX", 2), ("_KEPT_BYTES_MAX", 400_000)]
)
def test_every_row_is_in_a_file_of_its_day_and_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    """In order; bytes above the limit are written before, and more files than may be open are closed and go on."""
    whole = write_events(batches(80, queues=5), COLUMNS, str(tmp_path / "whole"), attempt="x")
    assert (len(whole), groups_of(tmp_path / "whole", whole)) == (10, 10)
    monkeypatch.setattr(partition_writer, limit, value)
    if limit != "_BUFFERED_BYTES_MAX":
        monkeypatch.setattr(partition_writer, "_BUFFERED_BYTES_MAX", 0)
    split = write_events(batches(80, queues=5), COLUMNS, str(tmp_path / "split"), attempt="x")
    assert groups_of(tmp_path / "split", split) > 10
    assert (len(split) > 10) is (limit != "_BUFFERED_BYTES_MAX")
    expected = {
        (f"1970-01-0{1 + day}", f"q{queue}"): [n for n in range(40 * day, 40 * day + 40) if n % 5 == queue]
        for day in range(2)
        for queue in range(5)
    }
    assert rows_of(tmp_path / "whole", whole) == expected
    assert rows_of(tmp_path / "split", split) == expected


def test_the_bytes_that_are_buffered_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many queues there are, and however large their rows."""
    for limit in ("_BUFFERED_BYTES_MAX", "_KEPT_BYTES_MAX"):
        monkeypatch.setattr(partition_writer, limit, 1 << 20)
    before, most = pa.total_allocated_bytes(), 0

    def noted() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for batch in batches(160, queues=20, size=100_000):
            most = max(most, pa.total_allocated_bytes() - before)
            yield batch

    files = write_events(noted(), COLUMNS, str(tmp_path), attempt="x")
    assert sum(one.rows for one in files) == 160
    assert most < 6 << 20


def test_a_failure_is_told(tmp_path: Path) -> None:
    """The open files are closed."""

    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(8, queues=2)
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        write_events(failing(), COLUMNS, str(tmp_path), attempt="x")


@pytest.mark.parametrize("name", ["q" * 250, "q" * 240 + "/1", "\u00e9" * 100, "/" * 127, "plain", "a~b"])
def test_any_name_of_a_queue_is_the_name_of_a_directory(tmp_path: Path, name: str) -> None:
    """Of at most 255 bytes; two long names with one beginning have two directories, and short names stay readable."""
    short, other = partition_name(name), partition_name(name + "x")
    assert len(short) < 256
    assert short != other
    assert name.startswith(unquote(short).partition("~")[0])
    assert (unquote(short) == name) is (len(quote(name, safe="")) <= 200)
    row = {"offset": 1, "timestamp": 0, "queue": name, "body": b""}
    (file,) = write_events(
        [pa.RecordBatch.from_pylist([row], schema=schema_of(COLUMNS))], COLUMNS, str(tmp_path), attempt="x"
    )
    assert (tmp_path / file.path).is_file()
    assert file.partition == short
