"""Brokers of two checkouts measured in turn."""

import argparse
import json
import sys
from pathlib import Path

import pytest

from bench.paired import Side, main

TREE = Path(__file__).parents[2]


def test_a_side_is_a_checkout_with_options() -> None:
    """Tables go into the configuration, `python` starts it."""
    side = Side.parse(f"{TREE},engine.lazy_write_ms=20,log.batch_bytes_target=65536,python=/opt/python")
    assert side.tree == TREE
    assert side.config == "engine.lazy_write_ms = 20\nlog.batch_bytes_target = 65536\n"
    assert side.python == "/opt/python"
    assert Side.parse(str(TREE)).python == sys.executable


@pytest.mark.parametrize(("word", "why"), [("{tree}/tests", "no checkout"), ("{tree},mark_ms=20", "TABLE.KEY=VALUE")])
def test_what_is_no_side_is_told(word: str, why: str) -> None:
    """One sentence, before anything is started."""
    with pytest.raises(argparse.ArgumentTypeError, match=why):
        Side.parse(word.format(tree=TREE))


def test_two_sides_are_measured_in_turn(capsys: pytest.CaptureFixture[str]) -> None:
    """Each has figures of its own, of the windows in which it was sent to alone."""
    sides = [str(TREE), f"{TREE},engine.lazy_write_ms=20"]
    assert main([*sides, "--turns", "2", "--window", "0.3", "--warm", "0.1", "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["side"] for row in rows] == sides
    for row in rows:
        assert row["rate"] > 0
        assert row["broker_cpu"] > 0
        assert row["settle_p50"] <= row["settle_p99"]


def test_a_side_that_does_not_start_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With what the broker said."""
    assert main([f"{TREE},engine.no_such_limit=1", "--turns", "1"]) == 1
    assert "no_such_limit" in capsys.readouterr().err
