"""`ambermq check`: one line and an exit code, for probes and monitoring systems.

    0   ready, and no threshold is reached
    1   not ready, or a threshold of --crit is reached
    4   no broker answers

A warning, and a broker that is degraded, exit 0; with `--strict` they exit 1.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import click

from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.monitor.reading import monitoring, read_broker
from ambermq.tools.terminal.durations import duration_text
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_json, print_words

__all__ = ["Threshold", "check", "findings", "parse_threshold"]

_THRESHOLD: Final = re.compile(r"(depth)=([0-9]{1,18})|(age)=([0-9]{1,9})(s|m|h|d)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Threshold(NamedTuple):
    """The depth or age of a queue from which it is reported."""

    level: str
    """`warning` or `critical`."""
    what: str
    """`depth` in messages, or `age` in microseconds."""
    value: int


def parse_threshold(level: str, text: str) -> Threshold:
    """Return the threshold in a text such as `depth=1000` and `age=5m`; raise UsageError."""
    found = _THRESHOLD.fullmatch(text)
    if found is None:
        raise click.UsageError(f"a threshold is depth=N or age=N with s, m, h or d, found {text!r:.80}")
    if found[1]:
        return Threshold(level, "depth", int(found[2]))
    return Threshold(level, "age", int(found[4]) * _SECONDS[found[5]] * 1_000_000)


@click.command(epilog="Example: ambermq check --warn depth=1000 --crit age=10m --data ./data")
@click.option("--warn", multiple=True, metavar="WHAT=N", help="Warn of a queue: depth=N or age=5m. May be repeated.")
@click.option("--crit", multiple=True, metavar="WHAT=N", help="Fail for a queue: depth=N or age=5m. May be repeated.")
@click.option("--queue", "names", multiple=True, metavar="NAME", help="Queue to judge; may be repeated. Default: all.")
@click.option("--strict", is_flag=True, help="Fail for a warning and for a degraded broker too.")
@broker_options
@output_option
@click.pass_context
def check(
    context: click.Context,
    warn: Sequence[str],
    crit: Sequence[str],
    names: Sequence[str],
    strict: bool,
    url: str | None,
    data: str | None,
    output: str,
) -> None:
    """Judge the health of a broker and its queues, for probes.

    Exits 0 if the broker is ready and no threshold of --crit is reached, 1 otherwise, 4 if no broker answers.
    """
    thresholds = [parse_threshold("critical", text) for text in crit] + [parse_threshold("warning", t) for t in warn]
    with monitoring(broker_url(url, data)) as management:
        reading = read_broker(management, with_queues=bool(thresholds or names))
    found = findings(reading.figures, reading.queues, thresholds, names)
    level = next((one for one in ("critical", "warning") if any(level == one for level, _ in found)), "ok")
    if output == "json":
        rows = [{"level": level, "reason": reason} for level, reason in found]
        print_json({"level": level, "findings": rows}, indent=True)
    else:
        print_words(f"{level}: " + ("; ".join(reason for _, reason in found) or "ready"))
    if level == "critical" or (strict and level == "warning"):
        context.exit(ExitCode.FAILED)


def findings(
    figures: Mapping[str, Any],
    queues: Sequence[Mapping[str, Any]],
    thresholds: Sequence[Threshold],
    names: Sequence[str],
) -> list[tuple[str, str]]:
    """Return what is wrong, each with its level. A named queue that does not exist is critical."""
    found = _health(figures)
    rows = {str(row["name"]): row for row in queues if not names or row["name"] in names}
    found += [("critical", f"no queue {name!r}") for name in names if name not in rows]
    for name, row in rows.items():
        values = {"depth": int(row["available"]) + int(row["acquired"]), "age": int(row.get("oldest_age_us") or 0)}
        # The critical ones come first: a queue is reported once for each kind.
        reached = {one.what: one for one in reversed(thresholds) if values[one.what] >= one.value}
        found += [(one.level, _sentence(name, one, values[one.what])) for one in reached.values()]
    return found


def _health(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    health, reason = figures.get("health") or "unknown", figures.get("health_reason") or ""
    if health == "ready":
        return []
    return [("warning" if health == "degraded" else "critical", f"{health}: {reason}" if reason else str(health))]


def _sentence(name: str, threshold: Threshold, value: int) -> str:
    if threshold.what == "depth":
        return f"queue {name} has {value:,} messages, expected fewer than {threshold.value:,}"
    limit = duration_text(threshold.value)
    return f"the oldest message on queue {name} waits for {duration_text(value)}, expected less than {limit}"
