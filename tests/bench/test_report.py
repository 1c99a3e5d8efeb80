"""How figures are held against their bars."""

import pytest

from bench.report import rows
from bench.rounds import Outcome
from bench.scenarios import SCENARIOS, Bar, Scenario


def _scenario(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


@pytest.mark.parametrize(
    ("bar", "ours", "peer", "met"),
    [
        (Bar(3, at_most=False, relative=True), 300.0, 100.0, True),
        (Bar(3, at_most=False, relative=True), 299.0, 100.0, False),
        (Bar(0.2, at_most=True, relative=True), 20.0, 100.0, True),
        (Bar(0.2, at_most=True, relative=True), 21.0, 100.0, False),
        (Bar(3, at_most=False, relative=True), 300.0, None, None),
        (Bar(32, at_most=True, relative=False), 32.0, None, True),
        (Bar(32, at_most=True, relative=False), 33.0, None, False),
    ],
)
def test_a_bar_is_met_missed_or_not_run(bar: Bar, ours: float, peer: float | None, met: bool | None) -> None:
    """A relative bar divides by the peer, and without the peer says nothing."""
    assert bar.is_met(ours, peer) is met


def test_a_missing_peer_never_passes() -> None:
    """Without the peer's figures a relative bar is not run."""
    outcome = Outcome(_scenario("one-100"), {"ambermq": {"received": 1e9, "broker_cpu": 0.1}}, {"artemis": "absent"})
    assert [row.verdict for row in rows(outcome)] == ["not run", "not run", "", ""]


def test_a_failed_broker_never_passes() -> None:
    """Without our own figures no bar is met, absolute ones included."""
    outcome = Outcome(_scenario("idle"), {}, {"ambermq": "it fell over"})
    assert [row.verdict for row in rows(outcome)] == ["not run"]


def test_figures_stand_beside_each_other() -> None:
    """A row has all figures, ours divided by those of Artemis, the goal in words and the verdict."""
    figures = {"ambermq": {"received": 60_000.0}, "artemis": {"received": 15_000.0}, "rabbitmq": {"received": 6000.0}}
    row = next(rows(Outcome(_scenario("one-1k"), figures, {})))
    assert (row.ambermq, row.artemis, row.rabbitmq, row.ratio) == (60_000.0, 15_000.0, 6000.0, 4.0)
    assert (row.bar, row.verdict) == ("at least 1.5 x artemis", "met")
