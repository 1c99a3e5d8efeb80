"""The screen of `ambermq top`, drawn by textual: lines of the status, and a table of queues.

Rule 1. A thread reads the broker, so that keys are answered meanwhile. It is a daemon: a broker that does not answer
        does not hold the end of the command.
Rule 2. A broker that is away is a line at the top; the last reading stays below it. Any other error ends the screen.
Rule 3. The table keeps its position when it is drawn anew.
Rule 4. Ctrl-C is a key on a terminal in raw mode, and SIGINT is a signal: both end the screen with KeyboardInterrupt.
"""

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Final, final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.widgets import DataTable, Footer, Static

from ambermq.tools.monitor.reading import SORT_KEYS, BrokerReading
from ambermq.tools.monitor.status_command import QUEUE_COLUMNS, queue_rows
from ambermq.tools.terminal.output import printable

__all__ = ["TopScreen", "run_screen"]

Read = Callable[[], tuple[list[str], BrokerReading] | str]
"""Returns the lines of the status and the reading, or why the broker does not answer."""

_ORDERS: Final = tuple(SORT_KEYS)


@final
class TopScreen(App[None]):
    """The screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True),
        Binding("s", "sort", "Sort"),
    ]
    CSS = """
    #problem { height: auto; color: $error; display: none; }
    #status { height: auto; max-height: 60%; }
    #order { height: 1; text-style: bold; }
    #queues { height: 1fr; }
    """
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, read: Read, interval: float, count: int, sort: str = "depth") -> None:
        """Show what `read` returns, anew after each `interval` in seconds, with at most `count` queues."""
        super().__init__()
        self._read = read
        self._interval = interval
        self._count = count
        self.sort_key = sort
        """The order of the queues, one of SORT_KEYS."""
        self._reading: BrokerReading | None = None
        self._is_over = threading.Event()
        self.failure: Exception | None = None
        """The error that ended the screen."""
        self.is_interrupted = False
        """Whether Ctrl-C or SIGINT ended it."""

    def compose(self) -> ComposeResult:
        """Return the widgets."""
        yield Static(id="problem")
        yield Static(id="status")
        yield Static(id="order")
        yield DataTable(id="queues", show_cursor=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.action_interrupt)
        self.query_one(DataTable).add_columns(*QUEUE_COLUMNS)
        threading.Thread(target=self._run, name="top", daemon=True).start()

    def on_unmount(self) -> None:
        """End the thread after its present reading."""
        self._is_over.set()

    def action_interrupt(self) -> None:
        """End the screen as an interrupt ends a command."""
        self.is_interrupted = True
        self.exit()

    def action_sort(self) -> None:
        """Sort by the next column."""
        self.sort_key = _ORDERS[(_ORDERS.index(self.sort_key) + 1) % len(_ORDERS)]
        self._show_queues()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                found = self._read()
            except Exception as failure:  # noqa: BLE001 - the command reports it after the screen is restored
                self.failure = failure
                self._call(self.exit)
                return
            self._call(self._show, found)
            self._is_over.wait(self._interval)

    def _call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function in the thread of the screen, unless the screen has ended meanwhile."""
        if self._is_over.is_set():
            return
        try:
            self.call_from_thread(function, *arguments)
        except (RuntimeError, NoMatches):
            # The screen ends, and its widgets are gone.
            self._is_over.set()

    def _show(self, found: tuple[list[str], BrokerReading] | str) -> None:
        problem = self.query_one("#problem", Static)
        problem.display = isinstance(found, str)
        if isinstance(found, str):
            problem.update(Text(printable(found)))
            return
        lines, self._reading = found
        self.query_one("#status", Static).update(Text("\n".join(map(printable, lines))))
        self._show_queues()

    def _show_queues(self) -> None:
        if self._reading is None:
            return
        table = self.query_one(DataTable)
        position = table.scroll_offset
        table.clear()
        for row in queue_rows(self._reading, self._count, self.sort_key):
            table.add_row(*(Text(printable(_text(row[name]))) for name in QUEUE_COLUMNS))
        shown, count = table.row_count, len(self._reading.queues)
        self.query_one("#order", Static).update(f"{shown:,} of {count:,} queues by {self.sort_key}")
        table.scroll_to(position.x, position.y, animate=False)


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def run_screen(read: Read, interval: float, count: int, sort: str) -> None:
    """Show the screen until a key ends it.

    Raises the error of a reading that failed, and KeyboardInterrupt for Ctrl-C.
    """
    screen = TopScreen(read, interval, count, sort)
    screen.run()
    if screen.failure is not None:
        raise screen.failure
    if screen.is_interrupted:
        raise KeyboardInterrupt
