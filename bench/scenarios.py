"""The scenarios, their metrics, and the bars: the goals of the figures.

A relative bar compares with the peer in the same run, so a slow machine is slow for both. An absolute bar is a number.
A relative bar without a measured peer is neither met nor missed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.brokers.broker import Broker
from bench.client.shapes import SHAPES
from bench.load import LOADS, Load, Window, drain_queue, fill_queue, hold_connections, run_load
from bench.measures.background_reads import measure_beside
from bench.measures.compaction import measure_compact
from bench.measures.message_story import measure_story
from bench.measures.online_compaction import measure_compact_online
from bench.measures.past_fold import measure_fold
from bench.measures.routing import measure_routing
from bench.measures.snapshot_pause import measure_pause
from bench.measures.spark_read import measure_spark_read

__all__ = ["SCENARIOS", "Bar", "Metric", "Scenario"]

_KIB, _MIB = 1024, 1024 * 1024
_BACKLOG_COUNT, _BACKLOG_BYTES = 1_000_000, 100
_IDLE_COUNT = 2_000
_CALM_SECONDS = 2.0
"""The time for a broker to finish its work before its memory is read."""

Measure = Callable[[Broker, Window, Path], dict[str, float]]


@dataclass(frozen=True, slots=True)
class Bar:
    """A goal: our figure, or our figure divided by the peer's, at least or at most a number."""

    goal: float
    at_most: bool
    relative: bool

    def is_met(self, ours: float, peer: float | None) -> bool | None:
        """Return whether a figure meets the bar; None if the peer's figure is needed and missing."""
        if self.relative:
            if not peer:
                return None
            ours /= peer
        return ours <= self.goal if self.at_most else ours >= self.goal


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a scenario."""

    name: str
    title: str
    unit: str
    bar: Bar | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One load on a broker, with its metrics."""

    name: str
    title: str
    measure: Measure
    metrics: tuple[Metric, ...]
    has_peer: bool = True
    """Whether the peer is measured too, in turn. If not, each measurement starts a new broker."""


def _throughput(load: Load, broker: Broker, window: Window, directory: Path) -> dict[str, float]:
    return run_load(broker, load, window, directory)


def _backlog(broker: Broker, _window: Window, directory: Path) -> dict[str, float]:
    time.sleep(_CALM_SECONDS)
    idle = broker.usage().rss_bytes
    seconds = fill_queue(broker, "bench-backlog", _BACKLOG_COUNT, _BACKLOG_BYTES, directory)
    time.sleep(_CALM_SECONDS)
    growth = broker.usage().rss_bytes - idle
    broker.kill()
    restart = broker.start()
    restarted = broker.usage().rss_bytes
    received = drain_queue(broker, "bench-backlog", _BACKLOG_COUNT, _BACKLOG_BYTES, directory)
    return {
        "growth": growth / _MIB,
        "restart": restart,
        "restarted": (restarted - idle) / _MIB,
        "filled": _BACKLOG_COUNT / seconds,
        "received": float(received),
    }


def _idle(bare: bool, broker: Broker, _window: Window, directory: Path) -> dict[str, float]:
    assert directory.is_dir()
    with hold_connections(broker, 1, bare=bare):
        time.sleep(_CALM_SECONDS)
    idle = broker.usage().rss_bytes
    with hold_connections(broker, _IDLE_COUNT, bare=bare):
        time.sleep(_CALM_SECONDS)
        growth = broker.usage().rss_bytes - idle
    return {"each": growth / _IDLE_COUNT / _KIB}


def _at_least(times: float) -> Bar:
    return Bar(times, at_most=False, relative=True)


def _at_most(share: float) -> Bar:
    return Bar(share, at_most=True, relative=True)


def _below(limit: float) -> Bar:
    return Bar(limit, at_most=True, relative=False)


def _above(limit: float) -> Bar:
    return Bar(limit, at_most=False, relative=False)


def _flow_metrics(rate: Bar | None, cpu: Bar | None) -> tuple[Metric, ...]:
    return (
        Metric("received", "throughput", "messages/s", rate),
        Metric("broker_cpu", "broker CPU", "us/message", cpu),
        Metric("sender_cpu", "sender CPU", "us/message"),
        Metric("receiver_cpu", "receiver CPU", "us/message"),
    )


def _flow(name: str, title: str, *, rate: float) -> Scenario:
    """Return a scenario at full speed, with the rate that is the goal, as a multiple of the peer's."""
    return Scenario(name, title, partial(_throughput, LOADS[name]), _flow_metrics(_at_least(rate), _at_most(0.4)))


def _paced(name: str, title: str, *, settle_p50: float, broker_cpu: float, settle_p99: float | None = None) -> Scenario:
    """Return a scenario at a fixed rate, with the goals as shares of the peer's figures."""
    metrics = (
        Metric("settle_p50", "settle p50", "ms", _at_most(settle_p50)),
        Metric("settle_p99", "settle p99", "ms", None if settle_p99 is None else _at_most(settle_p99)),
        Metric("delivery_p50", "delivery p50", "ms"),
        Metric("delivery_p99", "delivery p99", "ms"),
        Metric("broker_cpu", "broker CPU", "us/message", _at_most(broker_cpu)),
        Metric("received", "throughput", "messages/s"),
    )
    return Scenario(name, title, partial(_throughput, LOADS[name]), metrics)


def _client_shape(client: str) -> Scenario:
    name, title = f"{client}-100", f"default messages of {client}, 100 B"
    return Scenario(name, title, partial(_throughput, LOADS[name]), _flow_metrics(None, None), has_peer=False)


SCENARIOS: tuple[Scenario, ...] = (
    # First: after a load at full speed, a broker still has work from it.
    _paced("paced", "1,000 messages/s, 1 KiB", settle_p50=1.2, broker_cpu=0.65),
    _paced("paced-100", "100 messages/s, 1 KiB", settle_p50=1.2, broker_cpu=0.7),
    _paced("slow-200", "200 senders, each 5 messages/s, 1 KiB", settle_p50=1.2, broker_cpu=0.7),
    _paced("paced-5k", "5,000 messages/s, 1 KiB", settle_p50=1, settle_p99=0.5, broker_cpu=0.4),
    _paced("paced-20k", "20,000 messages/s, 1 KiB", settle_p50=1, settle_p99=0.5, broker_cpu=0.4),
    _flow("one-100", "one sender, queue, receiver, 100 B", rate=3),
    _flow("one-1k", "one sender, queue, receiver, 1 KiB", rate=1.5),
    _flow("one-1k-4m", "the same, bursts of 4 MiB", rate=2),
    _flow("one-64k", "one sender, queue, receiver, 64 KiB", rate=1.3),
    _flow("ten-1k", "ten of each, 1 KiB", rate=2),
    _flow("hundred-100", "a hundred of each, 100 B", rate=3),
    *(_client_shape(client) for client in SHAPES),
    Scenario(
        "backlog",
        "1,000,000 messages of 100 B waiting",
        _backlog,
        (
            Metric("growth", "more than idle", "MiB", _below(32)),
            Metric("restart", "ready after SIGKILL", "s", _below(5)),
            Metric("restarted", "more than idle, restarted", "MiB"),
            Metric("filled", "filled with", "messages/s"),
            Metric("received", "received afterwards", "messages"),
        ),
        has_peer=False,
    ),
    Scenario(
        "idle",
        "2,000 idle connections",
        partial(_idle, True),
        (Metric("each", "memory a connection", "KiB", _below(24)),),
        has_peer=False,
    ),
    Scenario(
        "idle-links",
        "2,000 idle connections, session and receiver",
        partial(_idle, False),
        (Metric("each", "memory a connection", "KiB", _below(64)),),
        has_peer=False,
    ),
    Scenario(
        "story",
        "the story of one message among 10,000,000 events",
        measure_story,
        (
            Metric("story", "a new process, median of 9 messages", "s", _below(1)),
            Metric("longest", "longest of them", "s"),
            Metric("unknown", "an id that no message has", "s"),
            Metric("messages", "messages in the log", "messages"),
        ),
        has_peer=False,
    ),
    Scenario(
        "moment",
        "the state at a past moment, folded without a snapshot",
        measure_fold,
        (
            Metric("event", "an event about one message", "us"),
            Metric("run", "an event about 500 messages", "us"),
            Metric("offset", "an offset of such a run", "us"),
        ),
        has_peer=False,
    ),
    Scenario(
        "spark-read",
        "10,000,000 events counted by queue with Spark, local[2], warm",
        measure_spark_read,
        (
            Metric("four", "four columns", "events/s", _above(3_000_000)),
            Metric("many", "all common columns but message-ids", "events/s"),
            Metric("alone", "four columns, one process without Spark", "events/s"),
            Metric("events", "events in the log", "events"),
        ),
        has_peer=False,
    ),
    Scenario(
        "snapshot",
        "snapshots of 5,000,000 messages in 100 queues, at half the top rate",
        measure_pause,
        (
            Metric("rate", "throughput meanwhile", "messages/s"),
            Metric("snapshots", "snapshots taken", ""),
            Metric("snapshot_s", "each took", "s"),
            Metric("pause_without", "longest pause without", "ms"),
            Metric("pause_with", "longest pause with", "ms"),
            Metric("pause", "longer with, by", "ms", _below(5)),
            Metric("p99_without", "delivery p99 without", "ms"),
            Metric("p99_with", "delivery p99 with", "ms"),
            Metric("p99", "delivery p99, with to without", "", _below(1.5)),
            Metric("bytes", "size, a message", "B", _below(10)),
            Metric("restart", "ready after SIGKILL", "s", _below(3)),
        ),
        has_peer=False,
    ),
    Scenario(
        "beside",
        "reading the log of a running broker, at a fifth of the top rate",
        measure_beside,
        (
            Metric("rate", "throughput meanwhile", "messages/s"),
            Metric("alone", "delivery p99 alone", "ms"),
            Metric("export", "beside snapshot export", "ms"),
            Metric("list", "beside queue list and browse --at", "ms"),
            Metric("history", "beside history", "ms"),
            Metric("p99_export", "beside snapshot export, to alone", "", _below(1.5)),
            Metric("p99_list", "beside queue list and browse --at, to alone", "", _below(1.5)),
            Metric("p99_history", "beside history, to alone", "", _below(1.5)),
            Metric("commands", "commands run", ""),
        ),
        has_peer=False,
    ),
    Scenario(
        "routing",
        "publishing with 100,000 attachments, 10,000 known destinations",
        measure_routing,
        (
            Metric("publish-wild-destination-ratio", "published by patterns: rate, to that of one", "", _above(0.5)),
            Metric("publish-wild-destination-known", "a message, known destination", "us"),
            Metric("publish-wild-destination-unseen", "a message, new destination", "us"),
            Metric("publish-property-ratio", "published by properties: rate, to that of one", "", _above(0.5)),
            Metric("publish-property-known", "a message", "us"),
            Metric("publish-fan-out-log", "1 KiB to 1,000 queues: log", "KiB", _below(20)),
            Metric("wild-destination-ratio", "patterns matched: rate, to that of one", ""),
            Metric("wild-destination-known", "a known destination", "us"),
            Metric("wild-destination-unseen", "a new destination", "us", _below(1000)),
            Metric("wild-destination-new", "a new attachment, longest", "ms", _below(50)),
            Metric("wild-destination-bytes", "memory an attachment", "B", _below(400)),
            Metric("property-ratio", "properties matched: rate, to that of one", ""),
            Metric("property-known", "a message", "us"),
            Metric("property-new", "a new attachment, longest", "ms", _below(50)),
            Metric("property-bytes", "memory an attachment", "B", _below(400)),
            Metric("selector-evaluations", "1,000 selectors evaluated", "/s", _above(20_000)),
        ),
        has_peer=False,
    ),
    Scenario(
        "compact",
        "a compaction of 1 GiB of 1 KiB messages, nine tenths finished",
        measure_compact,
        (
            Metric("rate", "Spark, counting and rewriting", "MB/s", _above(300)),
            Metric("local", "two processes without Spark", "MB/s"),
            Metric("ratio", "Spark's time to theirs", "", _below(2)),
            Metric("whole", "Spark, with snapshots and commit", "MB/s"),
            Metric("left", "bytes left, of 1", ""),
            Metric("start", "a session to open", "s"),
        ),
        has_peer=False,
    ),
    Scenario(
        "compact-online",
        "the same beside half load",
        measure_compact_online,
        (
            Metric("rate", "throughput meanwhile", "messages/s"),
            Metric("seconds", "the command took", "s"),
            Metric("p99_without", "delivery p99 without", "ms"),
            Metric("p99_with", "delivery p99 with", "ms"),
            Metric("p99", "delivery p99, with to without", "", _below(3)),
            Metric("pause_without", "longest pause without", "ms"),
            Metric("pause_with", "longest pause before the commit", "ms"),
            Metric("pause_commit", "longest pause in the commit", "ms"),
            Metric("commit_s", "the commit took", "s"),
            Metric("commit", "longer in the commit than without, by", "ms", _below(5)),
        ),
        has_peer=False,
    ),
)
