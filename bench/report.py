"""The figures of a run as rows: a table, or JSON for programs."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from bench.brokers.ambermq import AmberMQ
from bench.brokers.artemis import Artemis
from bench.brokers.rabbitmq import RabbitMQ
from bench.interpreter import describe_interpreter
from bench.rounds import Outcome
from bench.scenarios import Bar, Metric

__all__ = ["Row", "print_json", "print_table", "rows"]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of AmberMQ and of its peers."""

    scenario: str
    metric: str
    unit: str
    ambermq: float | None
    artemis: float | None
    rabbitmq: float | None
    ratio: float | None
    """The figure of AmberMQ divided by that of Artemis, the peer of the goals."""
    bar: str
    """The goal as text; empty if there is none."""
    verdict: str
    """met, missed, not run; empty if there is no bar."""


def rows(outcome: Outcome) -> Iterator[Row]:
    """Yield a row for every metric of a scenario."""
    ours = outcome.figures.get(AmberMQ.name, {})
    peers = outcome.figures.get(Artemis.name, {})
    others = outcome.figures.get(RabbitMQ.name, {})
    for metric in outcome.scenario.metrics:
        ambermq, artemis = ours.get(metric.name), peers.get(metric.name)
        ratio = ambermq / artemis if ambermq is not None and artemis else None
        yield Row(
            outcome.scenario.title,
            metric.title,
            metric.unit,
            ambermq,
            artemis,
            others.get(metric.name),
            ratio,
            _goal(metric),
            _verdict(metric.bar, ambermq, artemis),
        )


def print_table(outcomes: list[Outcome], console: Console) -> None:
    """Print the figures and the failures as a table."""
    table = Table("scenario", "measure", "ambermq", "artemis", "rabbitmq", "ratio", "bar", "verdict")
    for outcome in outcomes:
        title = outcome.scenario.title
        for row in rows(outcome):
            figures = tuple(map(_figure, (row.ambermq, row.artemis, row.rabbitmq, row.ratio)))
            table.add_row(title, f"{row.metric}, {row.unit}", *figures, row.bar, row.verdict)
            title = ""
        table.add_section()
    console.print(table)
    console.print(f"measured with {describe_interpreter()}", markup=False, soft_wrap=True)
    for outcome in outcomes:
        for name, reason in outcome.failures.items():
            console.print(f"not run: {outcome.scenario.name} on {name}: {reason}", markup=False, soft_wrap=True)


def print_json(outcomes: list[Outcome]) -> None:
    """Print one JSON object: the interpreter, rows and failures."""
    failures = [
        {"scenario": outcome.scenario.name, "broker": name, "reason": reason}
        for outcome in outcomes
        for name, reason in outcome.failures.items()
    ]
    found = [asdict(row) for outcome in outcomes for row in rows(outcome)]
    print(json.dumps({"interpreter": describe_interpreter(), "rows": found, "failures": failures}))


def _goal(metric: Metric) -> str:
    bar = metric.bar
    if bar is None:
        return ""
    number = f"{bar.goal:g} x artemis" if bar.relative else f"{bar.goal:g} {metric.unit}"
    return f"{'at most' if bar.at_most else 'at least'} {number}"


def _verdict(bar: Bar | None, ours: float | None, peer: float | None) -> str:
    if bar is None:
        return ""
    met = None if ours is None else bar.is_met(ours, peer)
    return {True: "met", False: "missed", None: "not run"}[met]


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
