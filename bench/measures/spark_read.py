"""The speed of reading history with Spark: events a second of the Data Source, counted by queue, in a warm session.

The log is that of story_log.py: ten million events over ten queues, of a stopped broker. One event is one row. The
first read has four columns. The second has all common columns but the message-ids, which must be decoded from each
message. The third is one process without Spark, which is the upper limit of the source.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench.brokers.broker import Broker
from bench.load import LoadFailed, Window
from bench.measures.story_log import write_story_log

__all__ = ["measure_spark_read"]

_EVENTS: Final = 10_000_000
_ROUNDS: Final = 3
_MASTER: Final = "local[2]"
_FOUR: Final = "offset long, timestamp timestamp, queue string, type string"
_MANY: Final = (
    f"{_FOUR}, vhost string, message_offset long, outcome string, container string, count int, size long,"
    " durable boolean"
)


def measure_spark_read(broker: Broker, _window: Window, directory: Path) -> dict[str, float]:
    """Write and read the log; return events a second, medians of three warm runs; LoadFailed if counts differ."""
    from ambermq.tools.spark.data_source import register  # noqa: PLC0415
    from ambermq.tools.spark.session import open_session  # noqa: PLC0415 - Spark is slow to import, and only this scenario needs it

    broker.kill()
    data = directory / "spark-read"
    write_story_log(data, _EVENTS)
    alone, count = _alone(data)
    with open_session(_MASTER, name="bench") as spark:
        register(spark)
        four = _rate(lambda: _counted(spark, data, _FOUR), count)
        many = _rate(lambda: _counted(spark, data, _MANY), count)
    return {"four": four, "many": many, "alone": alone, "events": float(count)}


def _counted(spark: Any, data: Path, schema: str) -> int:
    frame = spark.read.format("ambermq").schema(schema).load(str(data))
    return sum(row["count"] for row in frame.groupBy("queue").count().collect())


def _rate(count: Callable[[], int], expected: int) -> float:
    """Return events a second, the median of the runs after a first one that warms the session."""
    seconds = []
    for _ in range(_ROUNDS + 1):
        began = time.monotonic()
        found = count()
        seconds.append(time.monotonic() - began)
        if found != expected:
            raise LoadFailed(f"wrong count of events: expected {expected}, found {found}")
    return expected / statistics.median(seconds[1:])


def _alone(data: Path) -> tuple[float, int]:
    """Return events a second of one process without Spark, and the number of events."""
    from ambermq.tools.dataset.arrow_table import event_columns  # noqa: PLC0415
    from ambermq.tools.dataset.log_segments import open_history  # noqa: PLC0415 - needs pyarrow

    columns = ("offset", "timestamp", "queue", "type")
    began = time.monotonic()
    with open_history(str(data)) as log:
        batches = (one for segment in log.segments for one in event_columns(segment, columns, segments=log.segments))
        count = sum(batch.num_rows for batch in batches)
    return count / (time.monotonic() - began), count
