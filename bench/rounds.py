"""Rounds: each broker in turn, so other load of the machine affects both; the result is the median of the rounds."""

import statistics
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from bench.brokers.ambermq import AmberMQ
from bench.brokers.artemis import Artemis
from bench.brokers.broker import Broker, BrokerFailed
from bench.brokers.rabbitmq import RabbitMQ
from bench.load import LoadFailed, Window
from bench.scenarios import Scenario

__all__ = ["BrokerPool", "Outcome", "run_scenario"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The medians of a scenario by broker and metric, and the failures."""

    scenario: Scenario
    figures: dict[str, dict[str, float]]
    """Name of the broker -> name of the metric -> median; a broker that did not run is absent."""
    failures: dict[str, str]
    """Name of the broker -> reason of its failure."""


class BrokerPool:
    """The brokers that scenarios measure, below one directory; a context manager that kills them at the end."""

    def __init__(self, directory: Path, *, with_peer: bool) -> None:
        self.directory = directory
        self.with_peer = with_peer
        self._stack = ExitStack()
        self._running: dict[str, Broker] = {}
        self._failures: dict[str, str] = {}
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def brokers(self, *, has_peer: bool) -> dict[str, Callable[[], Broker]]:
        """Return a function for each broker that starts it: a shared one if a peer is measured too, else a new one."""
        if not has_peer:
            return {AmberMQ.name: self._new}
        kinds: dict[str, Callable[[Path], Broker]] = {AmberMQ.name: AmberMQ}
        if self.with_peer:
            kinds |= {Artemis.name: Artemis, RabbitMQ.name: RabbitMQ}
        return {name: partial(self._shared, name, kind) for name, kind in kinds.items()}

    def _new(self) -> Broker:
        """Kill all brokers and start a new one, so that no idle broker runs beside the measured one."""
        self._stack.close()
        self._running.clear()
        return self._start(AmberMQ)

    def _shared(self, name: str, kind: Callable[[Path], Broker]) -> Broker:
        if name in self._failures:
            raise BrokerFailed(self._failures[name])
        if name not in self._running:
            try:
                self._running[name] = self._start(kind)
            except BrokerFailed as failure:
                self._failures[name] = str(failure)
                raise
        return self._running[name]

    def _start(self, kind: Callable[[Path], Broker]) -> Broker:
        self._count += 1
        broker = kind(self.directory / f"broker-{self._count}")
        self._stack.callback(broker.kill)
        broker.start()
        return broker


def run_scenario(scenario: Scenario, pool: BrokerPool, window: Window, rounds: int) -> Outcome:
    """Measure a scenario; a broker that fails is skipped in the later rounds."""
    brokers = pool.brokers(has_peer=scenario.has_peer)
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in brokers}
    failures: dict[str, str] = {}
    for number in range(rounds if scenario.has_peer else 1):
        for name, acquire in brokers.items():
            if name in failures:
                continue
            print(f"{scenario.name}: {name}, round {number + 1}", file=sys.stderr, flush=True)
            try:
                measured[name].append(scenario.measure(acquire(), window, pool.directory))
            except (BrokerFailed, LoadFailed) as failure:
                failures[name] = str(failure)
    figures = {name: _medians(results) for name, results in measured.items() if name not in failures}
    return Outcome(scenario, figures, failures)


def _medians(results: Iterable[dict[str, float]]) -> dict[str, float]:
    columns: dict[str, list[float]] = {}
    for result in results:
        for name, value in result.items():
            columns.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in columns.items()}
