"""The text of `/metrics`, in parts: each part is the work of one turn of the event loop.

Rule 1. prometheus-client writes the metrics of broker and virtual hosts. The lines of queues are many: they are
        written here, in the same format, at a tenth of the time.
Rule 2. A state is read once. The queues of one text are of one moment of each virtual host.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from ambermq.engine.model.queue import Queue
from ambermq.protocol.http.histogram import Histogram
from ambermq.protocol.http.measured_vhost import MeasuredVhost
from ambermq.protocol.http.metric_table import (
    BROKER_METRICS,
    LAG_METRIC,
    PREFIX,
    QUEUE_METRICS,
    RECOVERY_METRICS,
    SYNC_METRIC,
    VHOST_METRICS,
    Metric,
    number_of,
)
from ambermq.protocol.http.queue_selection import QUEUES_PER_TURN, QueueSelection, values_of

__all__ = ["CONTENT_TYPE", "MeasuredBroker", "metrics_text", "recovery_text"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_DEFAULT: Final = "default"


class MeasuredBroker(Protocol):
    """The broker, as its metrics need it."""

    @property
    def vhosts(self) -> Mapping[str, MeasuredVhost]:
        """The virtual hosts by name."""

    @property
    def loop_lag(self) -> Histogram:
        """The delays of a timer of the event loop."""


class _Families(Collector):
    """A few metrics, as prometheus-client takes them."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        """Return them."""
        return self._families


def metrics_text(broker: MeasuredBroker, *, queues_max: int) -> Iterator[bytes]:
    """Yield the text of all metrics in parts. A part may be empty."""
    vhosts = dict(broker.vhosts)
    first = vhosts.get(_DEFAULT) or next(iter(vhosts.values()))
    families = [_family(metric, (), [((), _figure(first.figures, metric.name))]) for metric in BROKER_METRICS]
    yield _text([*families, _histograms(LAG_METRIC, (), {(): broker.loop_lag})])
    starved: dict[str, tuple[int, int]] = {}
    for name, vhost in vhosts.items():
        consumers = producers = 0
        for more_consumers, more_producers in vhost.starved():
            consumers, producers = consumers + more_consumers, producers + more_producers
            yield b""
        starved[name] = consumers, producers
    yield _text(_vhost_families(vhosts, starved))
    yield from _queue_text(vhosts, queues_max)


def recovery_text(scanned_bytes: int, total_bytes: int) -> bytes:
    """Return the text of the metrics of a broker that recovers."""
    values = (scanned_bytes, total_bytes)
    return _text(_family(metric, (), [((), value)]) for metric, value in zip(RECOVERY_METRICS, values, strict=True))


def _vhost_families(vhosts: Mapping[str, MeasuredVhost], starved: Mapping[str, tuple[int, int]]) -> Iterator[Family]:
    counted = {name: {"consumers_starved": starved[name][0], "producers_starved": starved[name][1]} for name in vhosts}
    for metric in VHOST_METRICS:
        yield _family(
            metric,
            ("vhost",),
            [
                ((name,), float(counted[name].get(metric.name, _figure(vhost.figures, metric.name))))
                for name, vhost in vhosts.items()
            ],
        )
    yield _histograms(SYNC_METRIC, ("vhost",), {(name,): vhost.sync_latency for name, vhost in vhosts.items()})


def _figure(figures: Mapping[str, Callable[[], object]], name: str) -> float:
    read = figures.get(name)
    return 0.0 if read is None else number_of(read())


def _family(metric: Metric, labels: Sequence[str], samples: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    kind: Any = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family: Family = kind(f"{PREFIX}{metric.name}", metric.text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)  # type: ignore[attr-defined]
    return family


def _histograms(
    metric: Metric, labels: Sequence[str], histograms: Mapping[tuple[str, ...], Histogram]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"{PREFIX}{metric.name}", metric.text, labels=labels)
    for values, histogram in histograms.items():
        family.add_metric(values, histogram.buckets(), sum_value=histogram.sum_us / 1e6)
    return family


def _text(families: Iterable[Family]) -> bytes:
    return generate_latest(_Families(families))


def _queue_text(vhosts: Mapping[str, MeasuredVhost], queues_max: int) -> Iterator[bytes]:
    selection = QueueSelection({name: vhost.state for name, vhost in vhosts.items()}, queues_max=queues_max)
    for _ in selection.visit():
        yield b""
    rows: list[tuple[str, Sequence[float | None]]] = []
    selected = iter(selection.selected())
    while part := list(islice(selected, QUEUES_PER_TURN)):
        rows += [(_labels(name, queue.name), _values(vhosts[name], queue)) for name, queue in part]
        yield b""
    rows += [(_labels(name, ""), (*sums, None)) for name, sums in selection.sums.items()]
    for index, metric in enumerate(QUEUE_METRICS):
        head = f"# HELP {metric.full_name} {metric.text}\n# TYPE {metric.full_name} {metric.kind}\n"
        yield "".join([head, *_lines(metric.full_name, index, rows)]).encode()


def _values(vhost: MeasuredVhost, queue: Queue) -> tuple[float | None, ...]:
    age_us = vhost.age_us(queue)
    return (*values_of(queue), None if age_us is None else age_us / 1e6)


def _lines(name: str, index: int, rows: Iterable[tuple[str, Sequence[float | None]]]) -> Iterator[str]:
    # A float, as prometheus-client writes every value. An age that is not known has no line.
    return (f"{name}{labels} {float(value)!r}\n" for labels, values in rows if (value := values[index]) is not None)


def _labels(vhost: str, queue: str) -> str:
    return f'{{queue="{_escaped(queue)}",vhost="{_escaped(vhost)}"}}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
