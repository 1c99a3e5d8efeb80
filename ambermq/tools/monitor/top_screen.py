"""The screen of `ambermq top`, drawn by textual: lines of the status, and a table of queues.

Rule: a thread reads the broker, so that keys are answered meanwhile. An error of the reading ends the screen.
"""

from collections.abc import Callable
from typing import Any, ClassVar, final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import DataTable, Footer, Static

from ambermq.tools.monitor.status_command import QUEUE_COLUMNS
from ambermq.tools.terminal.output import printable

__all__ = ["TopScreen", "run_screen"]

Read = Callable[[], tuple[list[str], list[dict[str, Any]]]]


@final
class TopScreen(App[None]):
    """The screen."""

    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "Quit")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, read: Read, interval: float) -> None:
        """Show what `read` returns, anew after each `interval` in seconds."""
        super().__init__()
        self._read = read
        self._interval = interval
        self.failure: Exception | None = None
        """The error that ended the screen."""

    def compose(self) -> ComposeResult:
        """Return the widgets."""
        yield Static(id="status")
        yield DataTable(id="queues", show_cursor=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one(DataTable).add_columns(*QUEUE_COLUMNS)
        self.set_interval(self._interval, self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        if not self.workers:
            self.run_worker(self._take, thread=True)

    def _take(self) -> None:
        try:
            lines, rows = self._read()
        except Exception as failure:  # noqa: BLE001 - the command reports it after the screen is restored
            self.failure = failure
            self.call_from_thread(self.exit)
            return
        self.call_from_thread(self._show, lines, rows)

    def _show(self, lines: list[str], rows: list[dict[str, Any]]) -> None:
        self.query_one("#status", Static).update(Text("\n".join(map(printable, lines))))
        table = self.query_one(DataTable)
        table.clear()
        for row in rows:
            table.add_row(*(Text(printable(_text(row[name]))) for name in QUEUE_COLUMNS))


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def run_screen(read: Read, interval: float) -> None:
    """Show the screen until a key ends it; raise the error of a reading that failed."""
    screen = TopScreen(read, interval)
    screen.run()
    if screen.failure is not None:
        raise screen.failure
