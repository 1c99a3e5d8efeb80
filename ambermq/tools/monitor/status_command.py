"""`ambermq status`: one screen that tells how a broker is."""

import time
from collections.abc import Mapping
from typing import Any, Final

import click

from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.monitor.reading import BrokerReading, deepest, monitoring, queues_by, rates_between, read_broker
from ambermq.tools.terminal.durations import duration_text
from ambermq.tools.terminal.output import output_option, print_json, print_rows, print_words
from ambermq.tools.terminal.sizes import size_text

__all__ = ["QUEUE_COLUMNS", "queue_rows", "status", "status_lines"]

QUEUE_COLUMNS: Final = ("queue", "available", "acquired", "consumers", "oldest")
_LABEL: Final = 12


@click.command(epilog="Example: ambermq status --data ./data")
@click.option(
    "--limit", "queues", type=click.IntRange(0, 1000), default=10, show_default=True, help="Deepest queues to show."
)
@click.option(
    "--interval", type=click.FloatRange(0.1, 60), default=1.0, show_default=True, help="Seconds to measure rates over."
)
@broker_options
@output_option
def status(queues: int, interval: float, url: str | None, data: str | None, output: str) -> None:
    """Show the health of a broker, its rates, and its deepest queues.

    The command measures rates over a second. It exits 0 whatever the health is; `ambermq check` judges it.
    """
    broker = broker_url(url, data)
    with monitoring(broker) as management:
        before = read_broker(management, with_queues=False)
        time.sleep(interval)
        after = read_broker(management)
    rates = rates_between(before, after)
    if output == "json":
        rows = deepest(after, queues)
        print_json({"figures": after.figures, "rates": rates, "queues": rows}, indent=True)
        return
    for line in status_lines(after.figures, rates):
        print_words(line)
    if queues and after.queues:
        print_words("")
        print_rows(queue_rows(after, queues), QUEUE_COLUMNS, output)


def status_lines(figures: Mapping[str, Any], rates: Mapping[str, float]) -> list[str]:
    """Return the screen without the queues, as lines of at most 80 columns, but for a long reason."""
    reason = figures.get("health_reason")
    return [
        _line("health", f"{figures.get('health') or 'unknown'}{f': {reason}' if reason else ''}"),
        _line("in", _rate(rates, "in", "refused", "unroutable")),
        _line("out", _rate(rates, "out", "accepted", "redelivered")),
        _line("returned", ", ".join(f"{name} {rates[f'messages_{name}']:,.0f}/s" for name in _RETURNED)),
        _line("links", _links(figures)),
        *_suspended(figures),
        *_annotations(figures),
        _line("disk", _disk(figures)),
        _line("memory", f"{_size(figures, 'memory_bytes')} of {_size(figures, 'memory_bytes_max')} held for peers"),
        _line("process", _process(figures)),
        _line("resources", _resources(figures)),
        _line("sync", _sync(figures)),
        _line("snapshot", _snapshot(figures)),
        _line("compaction", _compaction(figures)),
    ]


_RETURNED: Final = ("released", "failed", "rejected")


def queue_rows(reading: BrokerReading, count: int, key: str = "depth") -> list[dict[str, Any]]:
    """Return the first rows of the queues in the order of one of SORT_KEYS: by default the deepest queues."""
    return [
        {
            "queue": row["name"],
            "available": row["available"],
            "acquired": row["acquired"],
            "consumers": row["consumers"],
            "oldest": _age(row.get("oldest_age_us")),
        }
        for row in queues_by(reading, key)[:count]
    ]


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"


def _rate(rates: Mapping[str, float], way: str, *others: str) -> str:
    words = [f"{rates[f'messages_{way}']:,.0f} messages/s", f"{size_text(int(rates[f'bytes_{way}']))}/s"]
    return ", ".join([*words, *(f"{name} {rates[f'messages_{name}']:,.0f}/s" for name in others)])


def _links(figures: Mapping[str, Any]) -> str:
    count, limit = figures.get("connections") or 0, figures.get("connections_max") or 0
    producers, consumers = figures.get("producers") or 0, figures.get("consumers") or 0
    return f"{count:,} of {limit:,} connections, {producers:,} producers, {consumers:,} consumers"


def _suspended(figures: Mapping[str, Any]) -> list[str]:
    """Return a line if there are suspended links."""
    count, held = figures.get("suspended_links") or 0, figures.get("suspended_deliveries") or 0
    return [_line("suspended", f"{count:,} links, which keep {held:,} deliveries")] if count else []


def _annotations(figures: Mapping[str, Any]) -> list[str]:
    """Return a line if outcomes have left descriptions or annotations on messages."""
    held = _size(figures, "outcome_annotations_bytes")
    text = f"{held} of {_size(figures, 'outcome_annotations_bytes_max')} from outcomes"
    return [_line("annotations", text)] if figures.get("outcome_annotations_bytes") else []


def _disk(figures: Mapping[str, Any]) -> str:
    text = f"{_size(figures, 'room_bytes')} of {_size(figures, 'disk_bytes')} free"
    return f"{text}, history {_size(figures, 'history_bytes')}"


def _process(figures: Mapping[str, Any]) -> str:
    memory = f"{_size(figures, 'process_memory_bytes')} of memory"
    free, limit = figures.get("descriptors_free"), figures.get("descriptors_max") or 0
    return memory if free is None else f"{memory}, {limit - free:,} of {limit:,} descriptors open"


def _resources(figures: Mapping[str, Any]) -> str:
    low = figures.get("resources_low")
    return f"low: {', '.join(map(str, low))}; producers are held back" if low else "none is low"


def _sync(figures: Mapping[str, Any]) -> str:
    median_us, tail_us = figures.get("sync_p50_us"), figures.get("sync_p99_us")
    if median_us is None or tail_us is None:
        return "none yet"
    unsynced = _size(figures, "unsynced_bytes")
    return f"half within {duration_text(median_us)}, 99 % within {duration_text(tail_us)}, {unsynced} unsynced"


def _snapshot(figures: Mapping[str, Any]) -> str:
    count = figures.get("snapshots") or 0
    expected, written = figures.get("snapshot_bytes_expected") or 0, figures.get("snapshot_bytes_written") or 0
    running = f", one is being written: {min(100 * written // expected, 99)} %" if expected else ""
    return f"{_ago(figures.get('snapshot_us'))}, {count:,} kept{running}"


def _compaction(figures: Mapping[str, Any]) -> str:
    if figures.get("compaction_is_running"):
        stage = figures.get("compaction_stage")
        return f"running: {stage} {figures.get('compaction_percent') or 0} %" if stage else "running"
    failed = figures.get("compactions_failed") or 0
    return f"{_ago(figures.get('compaction_us'))}{f', {failed:,} failed' if failed else ''}"


def _ago(time_us: int | None) -> str:
    if not time_us:
        return "none"
    return f"{duration_text(max(0, time.time_ns() // 1000 - time_us))} ago"


def _age(age_us: int | None) -> str | None:
    return None if age_us is None else duration_text(age_us) if age_us else "-"


def _size(figures: Mapping[str, Any], name: str) -> str:
    return size_text(int(figures.get(name) or 0))
