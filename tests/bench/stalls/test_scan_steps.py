"""The longest steps of scans are measured in a process of any age, each with its figure."""

import json

import pytest

from bench.stalls import scan_steps


def test_each_measure_has_a_longest_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All by default, one line of JSON for each."""
    for name, value in {
        "_RUN": 50,
        "_SELECTORS": 5,
        "_LONG": 10_000,
        "_BACKLOG": 20_000,
        "_RETURNED": 300,
        "_RETURNED_MANY": 20_000,
        "_EXCLUDED": 400,
        "_HITS": 60,
    }.items():
        monkeypatch.setattr(scan_steps, name, value)
    scan_steps.main([])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {name for line in told for name in line} == set(scan_steps.MEASURES)
    assert all(figures["ms"] >= 0 for line in told for figures in line.values())
