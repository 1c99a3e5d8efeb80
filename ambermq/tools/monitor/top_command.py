"""`ambermq top`: the status of a broker, refreshed on a terminal until a key or Ctrl-C ends it.

Rule 1. It needs a terminal. Without one it refuses, since nothing would end it; `ambermq status` is for programs.
Rule 2. textual draws the screen. Where textual is not installed, the screen is cleared and printed anew.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import click

from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.client.management_client import Management
from ambermq.tools.monitor.reading import BrokerReading, monitoring, rates_between, read_broker
from ambermq.tools.monitor.status_command import QUEUE_COLUMNS, queue_rows, status_lines
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import print_line, print_rows, print_words

__all__ = ["top"]

_CLEAR: Final = "\x1b[2J\x1b[H"
Screen = tuple[list[str], list[dict[str, Any]]]
"""The lines of the status, and the rows of the queues."""


@click.command(epilog="Example: ambermq top --interval 2 --data ./data")
@click.option("--queues", type=click.IntRange(1, 1000), default=20, show_default=True, help="Deepest queues to show.")
@click.option(
    "--interval", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds between two readings."
)
@broker_options
def top(queues: int, interval: float, url: str | None, data: str | None) -> None:
    """Watch the health, the rates and the deepest queues of a broker.

    Needs a terminal; q or Ctrl-C ends it. For programs use `ambermq status --output json`.
    """
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        raise ToolError(
            "top needs a terminal",
            where="standard input and output",
            advice="use `ambermq status --output json`",
            code=ExitCode.USAGE,
        )
    with monitoring(broker_url(url, data)) as management:
        screens = _screens(management, queues)
        next(screens)
        try:
            _draw(screens, interval)
        except KeyboardInterrupt:
            return


def _screens(management: Management, queues: int) -> Iterator[Screen]:
    before: BrokerReading | None = None
    while True:
        after = read_broker(management)
        yield status_lines(after.figures, rates_between(before or after, after)), queue_rows(after, queues)
        before = after


def _draw(screens: Iterator[Screen], interval: float) -> None:
    try:
        from ambermq.tools.monitor.top_screen import run_screen  # noqa: PLC0415 - a slow import, which may be missing
    except ImportError:
        _draw_plain(screens, interval)
    else:
        run_screen(lambda: next(screens), interval)


def _draw_plain(screens: Iterator[Screen], interval: float, pause: Callable[[float], None] = time.sleep) -> None:
    for lines, rows in screens:
        print_line(_CLEAR)
        for line in lines:
            print_words(line)
        print_words("")
        print_rows(rows, QUEUE_COLUMNS, "table")
        pause(interval)
