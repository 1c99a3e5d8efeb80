"""`python -m bench.curve SIDE SIDE... --picture FILE`: settle time and CPU over the rate, of several brokers in turn.

At each rate the sides are measured as by `bench.paired`, with one sender and messages of 1 KiB. The table goes to
standard output, one row a rate and side, and the picture to an SVG file: the median and the 99 % point of the settle
time in milliseconds, both axes logarithmic.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.brokers.broker import BrokerFailed
from bench.load import Load, LoadFailed
from bench.paired import Side, compare

__all__ = ["Point", "draw", "main"]

RATES: Final = (100, 1000, 2000, 5000, 10_000, 20_000, 50_000)
_BODY_BYTES: Final = 1024
_COLORS: Final = ("#b45309", "#1d4ed8", "#15803d", "#6b7280")
_SVG: Final = "http://www.w3.org/2000/svg"
_WIDTH, _HEIGHT, _MARGIN = 720, 420, 60
_TIMES_MS: Final = (0.1, 100.0)
"""The least and the greatest time of the picture."""


class Point(NamedTuple):
    """One side at one rate."""

    side: str
    rate: int
    sent: float
    """Messages a second that arrived."""
    settle_p50: float
    """In milliseconds, as p99."""
    settle_p99: float
    broker_cpu: float
    """In microseconds a message."""


def _points(sides: Sequence[Side], options: argparse.Namespace) -> Iterator[Point]:
    for rate in options.rates:
        loads = [Load(_BODY_BYTES, rate=rate)] * len(sides)
        measured = compare(sides, loads, turns=options.turns, window_seconds=options.window, warm_seconds=options.warm)
        for side, one in zip(sides, measured, strict=True):
            name = side.word if side.tree is None else "ambermq" if side.word == "." else side.word
            yield Point(name, rate, one["rate"], one["settle_p50"], one["settle_p99"], one["broker_cpu"])


def draw(points: Sequence[Point]) -> str:
    """Return the picture as SVG."""
    rates = sorted({one.rate for one in points})
    names = list(dict.fromkeys(one.side for one in points))
    lines = [
        f'<svg xmlns="{_SVG}" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_WIDTH / 2:g}" y="20" text-anchor="middle">settle time over the rate, messages of 1 KiB</text>',
    ]
    for rate in rates:
        x = _x(rate, rates)
        lines.append(f'<path d="M{x:.1f} {_MARGIN}V{_HEIGHT - _MARGIN}" stroke="#e5e7eb"/>')
        lines.append(f'<text x="{x:.1f}" y="{_HEIGHT - _MARGIN + 18}" text-anchor="middle">{rate:,}/s</text>')
    for exponent in range(round(math.log10(_TIMES_MS[0])), round(math.log10(_TIMES_MS[1])) + 1):
        y = _y(10.0**exponent)
        lines.append(f'<path d="M{_MARGIN} {y:.1f}H{_WIDTH - _MARGIN}" stroke="#e5e7eb"/>')
        lines.append(f'<text x="{_MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**exponent:g} ms</text>')
    for number, name in enumerate(names):
        color = _COLORS[number % len(_COLORS)]
        own = sorted((one for one in points if one.side == name), key=lambda one: one.rate)
        for attribute, dashes in (("settle_p50", ""), ("settle_p99", ' stroke-dasharray="5 4"')):
            path = "L".join(f"{_x(one.rate, rates):.1f} {_y(getattr(one, attribute)):.1f}" for one in own)
            lines.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"{dashes}/>')
        lines.append(
            f'<text x="{_MARGIN + 8}" y="{_MARGIN - 18 + 16 * number}" fill="{color}">{name}: p50, dashed p99</text>'
        )
    return "\n".join([*lines, "</svg>\n"])


def _x(rate: int, rates: Sequence[int]) -> float:
    low, high = math.log10(rates[0]), math.log10(rates[-1])
    part = (math.log10(rate) - low) / (high - low) if high > low else 0.5
    return _MARGIN + part * (_WIDTH - 2 * _MARGIN)


def _y(time_ms: float) -> float:
    low, high = map(math.log10, _TIMES_MS)
    part = (math.log10(min(max(time_ms, _TIMES_MS[0]), _TIMES_MS[1])) - low) / (high - low)
    return _HEIGHT - _MARGIN - part * (_HEIGHT - 2 * _MARGIN)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print all points, and write the picture; return 0, or 1 if a side failed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.curve", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("side", nargs="+", type=Side.parse, help="artemis, rabbitmq, or DIRECTORY[,OPTION]...")
    parser.add_argument("--picture", type=Path, help="the SVG file to write")
    parser.add_argument("--rates", type=int, nargs="+", default=RATES, help="messages a second")
    parser.add_argument("--turns", type=int, default=12, help="number of windows for each side and rate")
    parser.add_argument("--window", type=float, default=1.0, help="seconds of a window")
    parser.add_argument("--warm", type=float, default=15.0, help="seconds of load on each side before the first turn")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    points: list[Point] = []
    if options.output == "table":
        print(f"{'rate':>8} {'side':16} {'arrived':>9} {'p50 ms':>8} {'p99 ms':>8} {'CPU us':>8}")
    try:
        for point in _points(options.side, options):
            points.append(point)
            print(_line(point) if options.output == "table" else json.dumps(point._asdict()), flush=True)
    except (BrokerFailed, LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    if options.picture is not None:
        options.picture.write_text(draw(points), encoding="ascii")
    return 0


def _line(point: Point) -> str:
    times = f"{point.settle_p50:8.2f} {point.settle_p99:8.2f} {point.broker_cpu:8.1f}"
    return f"{point.rate:8,} {point.side:16} {point.sent:9,.0f} {times}"


if __name__ == "__main__":
    sys.exit(main())
