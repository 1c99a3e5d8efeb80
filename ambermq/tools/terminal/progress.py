"""The progress of a long job on standard error, if that is a terminal: a bar for each stage, and the time left.

Rule: bars come after a second, so a short job draws nothing. A job of unknown length has a bar that moves.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["ProgressBar", "progress_bar", "waiting_bar"]

ProgressBar = Callable[[str, int, int], None]
"""Called with a stage's name, how much of it is done, and its whole, in any unit."""
_DELAY_SECONDS: Final = 1.0


@contextmanager
def progress_bar(*, stays: bool = False) -> Iterator[ProgressBar]:
    """Yield the function that draws progress; it does nothing without a terminal, or before a second has passed.

    At the end of the block the bars are removed, or stay.
    """
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console  # noqa: PLC0415 - a fifth of a second that only a terminal needs
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description:<22}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bars = Progress(*columns, console=Console(stderr=True), transient=not stays)
    tasks: dict[str, TaskID] = {}
    begin_s = time.monotonic() + _DELAY_SECONDS

    def draw(stage: str, done: int, whole: int) -> None:
        if time.monotonic() < begin_s:
            return
        bars.start()
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage)
        bars.update(tasks[stage], completed=done, total=whole)

    try:
        yield draw
    finally:
        bars.stop()


@contextmanager
def waiting_bar(text: str) -> Iterator[None]:
    """Draw a moving bar and the time that has passed while the block runs, from its second second on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description:<22}"), BarColumn(), TimeElapsedColumn())
    bars = Progress(*columns, console=Console(stderr=True), transient=True)
    bars.add_task(text, total=None)
    timer = threading.Timer(_DELAY_SECONDS, bars.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        bars.stop()
