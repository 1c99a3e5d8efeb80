"""The curve of settle times over the rate: its points and its picture."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.curve import Point, draw, main

TREE = Path(__file__).parents[2]


def test_the_picture_has_two_lines_for_each_side() -> None:
    """The median and the 99 % point, higher for longer times, and within the picture whatever the time."""
    points = [Point("ambermq", rate, rate, 0.5, 1000.0, 100.0) for rate in (100, 1000)]
    points += [Point("artemis", rate, rate, 2.0, 0.01, 100.0) for rate in (100, 1000)]
    root = ET.fromstring(draw(points))
    lines = [
        path.get("d") or "" for path in root.iter("{http://www.w3.org/2000/svg}path") if path.get("fill") == "none"
    ]
    assert len(lines) == 4
    heights = [float(line.split("L")[0].split()[1]) for line in lines]
    assert heights[0] > heights[2], "0.5 ms is below 2 ms"
    assert all(60 <= height <= 360 for height in heights)


def test_each_rate_has_a_point_for_each_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line of JSON each, and the picture in its file."""
    words = [str(TREE), "--rates", "50", "200", "--turns", "2", "--window", "0.3", "--warm", "0.1", "--output", "json"]
    assert main([*words, "--picture", str(tmp_path / "curve.svg")]) == 0
    points = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [point["rate"] for point in points] == [50, 200]
    assert all(0 < point["settle_p50"] <= point["settle_p99"] for point in points)
    assert (tmp_path / "curve.svg").read_text(encoding="ascii").startswith("<svg")
