"""`ambermq log query`: Spark SQL over the history of a data directory and its archives, as the view `events`.

Rule 1. Below the horizon the archives are read, from the horizon on the log: so every event is read once.
Rule 2. Only the columns that a query names are read, since Spark would build all of them. A query by names takes a
fraction of the time of one with a star. Contents of messages are read only if the query names them.
"""

import base64
import csv
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import click

from ambermq.engine.history.timestamps import iso_time
from ambermq.tools.client.broker_option import directory_option
from ambermq.tools.past.moment_option import WHEN_HELP
from ambermq.tools.spark.export_command import history_directory
from ambermq.tools.terminal.output import print_json, print_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ambermq.tools.dataset.arrow_table import Selection
    from ambermq.tools.dataset.log_segments import HistoryLog

__all__ = ["OUTPUTS", "columns_in", "query", "query_rows"]

OUTPUTS: Final = ("table", "json", "ndjson", "csv")
_COUNT_ALL: Final = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)
_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'")
_SELECTS: Final = re.compile(r"\s*(select|with|from|values|\()", re.IGNORECASE)


@click.command(
    "query",
    epilog='Example: ambermq log query --data ./data "SELECT queue, type, sum(count) FROM events GROUP BY queue, type"',
)
@click.argument("sql")
@directory_option
@click.option("--vhost", metavar="V", default="*", show_default=True, help="Virtual host, or * for all of them.")
@click.option("--since", metavar="WHEN", default="", help=f"Only events from this moment on. {WHEN_HELP}")
@click.option("--until", metavar="WHEN", default="", help="Only events before this moment, written as for --since.")
@click.option("--master", default="local[*]", show_default=True, metavar="URL", help="Spark master.")
@click.option(
    "--output",
    type=click.Choice(OUTPUTS),
    default="table",
    show_default=True,
    help="Format; json and ndjson print one row a line.",
)
def query(sql: str, data: str | None, vhost: str, since: str, until: str, master: str, output: str) -> None:
    """Run a Spark SQL query over the events of log and archives.

    The view is called `events`.
    """
    from ambermq.tools.spark.errors import translating_spark  # noqa: PLC0415 - what only these commands need
    from ambermq.tools.spark.session import check_packages, open_session  # noqa: PLC0415

    check_packages("pyspark", "pyarrow", "numpy")
    from ambermq.tools.dataset.arrow_table import selection_between  # noqa: PLC0415
    from ambermq.tools.dataset.log_segments import open_histories  # noqa: PLC0415

    # Checked here: a query that reads no events would accept a wrong moment.
    wanted = selection_between(since, until, now_us=time.time_ns() // 1000)
    options = {"path": history_directory(data), "vhost": vhost, "below_horizon": "archive"}
    options |= {name: text for name, text in (("since", since), ("until", until)) if text}
    with (
        open_histories(options["path"], vhost) as logs,  # pins the files until the query ends
        open_session(master, name="ambermq log query") as spark,
        translating_spark(),
    ):
        _print_beginnings(logs, wanted)
        columns, rows = query_rows(spark, sql, options)
        _print(columns, rows, output)


def _print_beginnings(logs: "Sequence[HistoryLog]", wanted: "Selection") -> None:
    """Print the begin of history if earlier events were compacted; Spark hides the warnings of the source."""
    from ambermq.tools.dataset.archive_reader import known_from  # noqa: PLC0415 - needs pyarrow

    for log in logs:
        begin = known_from(log)
        if begin > wanted.first:
            note = f"{log.directory} was compacted: history begins at offset {begin}; only archives have earlier events"
            sys.stderr.write(f"note: {note}\n")


def query_rows(
    spark: "SparkSession", sql: str, options: Mapping[str, str]
) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """Return the columns of a query's result, and its rows as JSON values; `options` are those of the source."""
    from ambermq.tools.spark.data_source import EventSource, register  # noqa: PLC0415 - needs pyspark, which runs by now

    register(spark)
    wanted = columns_in(sql)
    whole = {field.name: field.dataType.simpleString() for field in EventSource.columns()}
    schema = ", ".join(f"`{name}` {whole[name]}" for name in wanted)
    spark.read.format(EventSource.name()).options(**options).schema(schema).load().createOrReplaceTempView("events")
    result = spark.sql(sql)
    rows = (
        {name: _plain(value) for name, value in zip(result.columns, row, strict=True)}
        for row in result.toLocalIterator()
    )
    return result.columns, rows


def columns_in(sql: str) -> tuple[str, ...]:
    """Return the columns that a query may need: those that it names, all common ones if it has a star."""
    from ambermq.tools.dataset.schema import CONTENT_COLUMNS, EVENT_COLUMNS  # noqa: PLC0415 - needs pyarrow

    text = _COUNT_ALL.sub("", _LITERAL.sub("''", sql))
    words = {word.lower() for word in re.findall(r"\w+", text)}
    has_star = "*" in text or not _SELECTS.match(sql)
    common = tuple(name for name in EVENT_COLUMNS if has_star or name in words)
    contents = tuple(name for name in CONTENT_COLUMNS if name in words)
    return (*common, *contents) or ("offset",)


def _print(columns: list[str], rows: Iterator[dict[str, Any]], output: str) -> None:
    if output == "table":
        print_rows(rows, columns, "table")
    elif output in ("json", "ndjson"):
        for row in rows:
            print_json(row)
    else:
        writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _plain(value: Any) -> Any:
    """Return a value of Spark as a JSON value: times in ISO 8601, bytes as text or base64."""
    match value:
        case datetime():
            return iso_time(round(value.timestamp() * 1_000_000))
        case date():
            return value.isoformat()
        case bytes() | bytearray():
            content = bytes(value)
            return content.decode() if content.isascii() else base64.b64encode(content).decode()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case dict():
            return {str(_plain(key)): _plain(item) for key, item in value.items()}
        case tuple() if hasattr(value, "asDict"):
            return {str(name): _plain(item) for name, item in value.asDict().items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
