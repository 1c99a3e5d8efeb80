"""The text of `/metrics`: what Prometheus reads of it, in which parts, and of how many queues."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.queue import Queue
from ambermq.protocol.http.histogram import LAG_BOUNDS_US, SYNC_BOUNDS_US, Histogram
from ambermq.protocol.http.metric_table import METRICS, QUEUE_METRICS, RECOVERY_METRICS
from ambermq.protocol.http.metrics_text import metrics_text, recovery_text
from ambermq.protocol.http.queue_selection import QueueSelection, values_of

_STRANGE = 'a"b\\c\nd'


def queue(name: str, depth: int, lifetime: Lifetime = Lifetime.PERMANENT) -> Any:
    """Return a queue with messages."""
    counts = {"rejected": 1, "released": 2, "failed": 3, "purged": 4, "discarded": 6, "damaged": 5}
    counters = SimpleNamespace(**counts, dead_lettered=7, moved=8, duplicates=0)
    return SimpleNamespace(
        name=name,
        available=depth,
        acquired_count=1,
        depth=depth + 1,
        size=10 * depth,
        consumers=2,
        published=100,
        delivered=90,
        accepted=80,
        counters=counters,
        aside=SimpleNamespace(count=9),
        delayed=SimpleNamespace(count=10),
        scheduled=SimpleNamespace(count=11),
        lifetime=lifetime,
    )


class _Vhost:
    """A virtual host of some queues."""

    def __init__(self, *queues: Any) -> None:
        self.state: Any = SimpleNamespace(queues=dict(enumerate(queues)))
        self.figures: Mapping[str, Any] = {
            "connections": lambda: 3,
            "messages_in": lambda: 7,
            "room_keeper": lambda: "x",
        }
        self.sync_latency = Histogram(SYNC_BOUNDS_US)

    def age_us(self, one: Queue) -> int | None:
        return None if one.name == "unknown" else 1_500_000

    def starved(self) -> Iterator[tuple[int, int]]:
        yield 1, 0
        yield 1, 2


def text_of(vhosts: Mapping[str, Any], queues_max: int = 1000) -> str:
    """Return the whole text."""
    broker: Any = SimpleNamespace(vhosts=vhosts, loop_lag=Histogram(LAG_BOUNDS_US))
    return b"".join(metrics_text(broker, queues_max=queues_max)).decode()


def samples_of(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return the values by name and labels, as a reader of the format finds them."""
    families = text_string_to_metric_families(text)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for each in families for one in each.samples}


def test_a_reader_of_the_format_finds_each_metric() -> None:
    """With the label values that were meant, whatever characters they have."""
    text = text_of({"default": _Vhost(queue(_STRANGE, 5))})
    found = samples_of(text)
    names = {name for name, _ in found}
    for metric in METRICS:
        if metric not in RECOVERY_METRICS:
            assert metric.full_name in names or f"{metric.full_name}_bucket" in names
            assert f"# TYPE {metric.full_name} {metric.kind}\n" in text
    labels = (("queue", _STRANGE), ("vhost", "default"))
    values = [found[metric.full_name, labels] for metric in QUEUE_METRICS]
    assert values == [*values_of(queue(_STRANGE, 5)), 1.5]
    assert found["ambermq_connections", ()] == 3
    assert found["ambermq_messages_in_total", (("vhost", "default"),)] == 7
    assert found["ambermq_room_keeper", (("vhost", "default"),)] == 1
    assert found["ambermq_consumers_starved", (("vhost", "default"),)] == 2
    assert found["ambermq_producers_starved", (("vhost", "default"),)] == 2


def test_only_the_deepest_queues_have_metrics_of_their_own() -> None:
    """The others and the temporary ones are summed under an empty name, for each virtual host."""
    temporary = queue("$temporary.1", 1000, Lifetime.ON_CLOSE)
    vhosts = {"default": _Vhost(queue("a", 1), queue("b", 3), temporary), "other": _Vhost(queue("c", 2))}
    found = samples_of(text_of(vhosts, queues_max=2))
    depths = {labels: value for (name, labels), value in found.items() if name == "ambermq_queue_available_messages"}
    assert {dict(labels)["queue"] or dict(labels)["vhost"]: value for labels, value in depths.items()} == {
        "b": 3,
        "c": 2,
        "default": 1001,
        "other": 0,
    }


def test_an_age_that_is_not_known_has_no_line() -> None:
    """A number would raise an alert, or hide one."""
    text = text_of({"default": _Vhost(queue("unknown", 1))})
    assert 'ambermq_queue_oldest_age_seconds{queue="unknown"' not in text


def test_a_part_visits_a_limited_number_of_queues() -> None:
    """So a scrape does not hold the event loop."""
    state: Any = SimpleNamespace(queues=dict(enumerate(queue(str(number), number) for number in range(2500))))
    selection = QueueSelection({"default": state}, queues_max=10)
    assert sum(1 for _ in selection.visit()) == 3
    assert [int(one.name) for _, one in selection.selected()] == list(range(2490, 2500))


def test_a_histogram_counts_up_to_its_bounds() -> None:
    """A bound is included; the last bucket has all."""
    histogram = Histogram((10, 100))
    for duration_us in (5, 10, 11, 1000):
        histogram.observe(duration_us)
    assert histogram.counts == [2, 1, 1]
    assert histogram.buckets() == [("1e-05", 2.0), ("0.0001", 3.0), ("+Inf", 4.0)]
    assert (histogram.count, histogram.sum_us) == (4, 1026)
    assert (histogram.quantile_us(0.5), histogram.quantile_us(0.99)) == (10, 100)
    assert Histogram((10,)).quantile_us(0.5) is None


def test_a_recovery_shows_how_far_it_is() -> None:
    """Two gauges, before the broker serves."""
    found = samples_of(recovery_text(10, 100).decode())
    assert [found[metric.full_name, ()] for metric in RECOVERY_METRICS] == [10, 100]


def test_no_two_metrics_have_one_name() -> None:
    """Of all kinds together."""
    assert len({metric.full_name for metric in METRICS}) == len(METRICS)
