"""`ambermq top`: the status of a broker, refreshed on a terminal until a key or Ctrl-C ends it.

Rule 1. It needs a terminal. Without one it refuses, since nothing would end it; `ambermq status` is for programs.
Rule 2. textual draws the screen. Where textual is not installed, the screen is cleared and printed anew.
Rule 3. The first reading must succeed. Later a broker may go away and return: the screen says so, and tries again.
"""

import sys
import time
from collections.abc import Callable
from typing import Final

import click

from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.monitor.reading import SORT_KEYS, BrokerReading, BrokerWatch
from ambermq.tools.monitor.status_command import QUEUE_COLUMNS, queue_rows, status_lines
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import print_line, print_rows, print_words

__all__ = ["top"]

_CLEAR: Final = "\x1b[2J\x1b[H"
_RETURNS: Final = (ExitCode.CANNOT_CONNECT, ExitCode.TIMEOUT, ExitCode.FAILED, ExitCode.NOT_FOUND)
"""The exit codes of failures that a broker causes which ends, starts, or stands still."""

Screen = tuple[list[str], BrokerReading]
"""The lines of the status, and the reading with the queues."""


@click.command(epilog="Example: ambermq top --interval 2 --data ./data")
@click.option(
    "--limit", "queues", type=click.IntRange(1, 1000), default=20, show_default=True, help="Most queues to show."
)
@click.option(
    "--sort", type=click.Choice(tuple(SORT_KEYS)), default="depth", show_default=True, help="Order of the queues."
)
@click.option(
    "--interval", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds between two readings."
)
@broker_options
def top(queues: int, sort: str, interval: float, url: str | None, data: str | None) -> None:
    """Watch the health, the rates and the deepest queues of a broker.

    Needs a terminal; q ends it, Ctrl-C ends it with exit code 130, s sorts by the next column. A broker that goes away
    is awaited. For programs use `ambermq status --output json`.
    """
    # The screen is drawn on standard error, so that nothing else gets into it.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise ToolError(
            "top needs a terminal",
            where="standard input, output and error",
            advice="use `ambermq status --output json`",
            code=ExitCode.USAGE,
        )
    watch = BrokerWatch(_url_reader(url, data))
    watch.read()
    _draw(lambda: _screen(watch), interval, queues, sort)


def _url_reader(url: str | None, data: str | None) -> Callable[[], str]:
    """Return a function of the URL of the broker, for another thread: click's context is one of a thread."""
    context = click.get_current_context()

    def read_url() -> str:
        with context.scope(cleanup=False):
            return broker_url(url, data)

    return read_url


def _screen(watch: BrokerWatch) -> Screen | str:
    """Return the next screen, or why there is none; raise ToolError for a failure that does not pass by itself."""
    try:
        reading, rates = watch.read()
    except ToolError as error:
        if error.exit_code not in _RETURNS:
            raise
        return f"no answer: {error.format_message()}"
    return status_lines(reading.figures, rates), reading


def _draw(read: Callable[[], Screen | str], interval: float, count: int, sort: str) -> None:
    try:
        from ambermq.tools.monitor.top_screen import run_screen  # noqa: PLC0415 - a slow import, which may be missing
    except ImportError:
        _draw_plain(read, interval, count, sort)
    else:
        run_screen(read, interval, count, sort)


def _draw_plain(
    read: Callable[[], Screen | str],
    interval: float,
    count: int,
    sort: str,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    while True:
        screen = read()
        if isinstance(screen, str):
            print_words(screen)
        else:
            print_line(_CLEAR)
            for line in screen[0]:
                print_words(line)
            print_words("")
            print_rows(queue_rows(screen[1], count, sort), QUEUE_COLUMNS, "table")
        pause(interval)
