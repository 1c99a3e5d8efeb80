"""The overhead: what a scrape, audit and log lines cost is the ratio of two rates of one run."""

import json
from typing import Any

import pytest

from bench.costs import overhead
from bench.costs.overhead import main


def test_the_cost_is_the_ratio_of_the_rates(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One side is scraped and logs JSON, the other does not; both have the queues."""
    sides: list[Any] = []

    def compare(found: list[Any], *_: Any, **__: Any) -> list[dict[str, float]]:
        sides.extend(found)
        return [{"rate": 100.0, "broker_cpu": 4.0}, {"rate": 94.0, "broker_cpu": 4.2}]

    monkeypatch.setattr(overhead, "compare", compare)
    assert main(["--load", "one-1k", "--queues", "7", "--output", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["cost"] == pytest.approx(0.06)
    assert not row["is_met"]
    without, watched = sides
    assert (without.scraped, watched.scraped) == (0, 7)
    assert 'level = "error"' in without.config
    assert 'format = "json"' in watched.config
