"""The cost of priorities and groups: the ratio of two rates of one run."""

import json
import tomllib
from typing import Any

import pytest

from ambermq.engine.model.queue_template import QueueTemplate
from ambermq.tools.config.template_settings import read_templates
from bench.costs import levels
from bench.costs.levels import main


def test_the_cost_is_the_ratio_of_the_rates(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queues of one side have both settings, those of the other have none."""
    sides: list[Any] = []

    def compare(found: list[Any], *_: Any, **__: Any) -> list[dict[str, float]]:
        sides.extend(found)
        return [{"rate": 100.0, "broker_cpu": 4.0}, {"rate": 98.0, "broker_cpu": 4.1}]

    monkeypatch.setattr(levels, "compare", compare)
    assert main(["--load", "one-100", "--output", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["cost"], row["cpu_cost"], row["is_met"]) == (pytest.approx(0.02), pytest.approx(0.025), True)
    without, with_levels = (_template(side.config) for side in sides)
    assert (without.settings.priorities, without.settings.groups) == (False, False)
    assert (with_levels.settings.priorities, with_levels.settings.groups) == (True, True)


def _template(config: str) -> QueueTemplate:
    return read_templates(tomllib.loads(config)["templates"], "file", []).for_queue("bench-1")
