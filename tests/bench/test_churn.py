"""The churn: connections come from several addresses, are replaced, and are gone at the end."""

import json
from pathlib import Path

import pytest

from bench.churn import main


def test_a_short_churn_has_all_figures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A few connections for a second; the bars are those of ratios."""
    assert main(["--connections", "40", "--rate", "20", "--seconds", "1", "--runs", "1", "--output", "json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["opened_a_second"] > 10
    assert figures["p99_ratio"] == figures["p99_beside_ms"] / figures["p99_alone_ms"]
    assert figures["rss_ratio"] == figures["rss_after_bytes"] / figures["rss_before_bytes"]
    assert set(figures["bars"]) == {"p99_ratio", "churn_rss_ratio", "rss_ratio", "blocks_ratio"}
