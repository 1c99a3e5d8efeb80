"""The progress of a long job on standard error, if that is a terminal: a bar for each stage, and the time left.

Rule: bars come after a second, so a short job draws nothing. A job of unknown length has a bar that moves.
"""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["ProgressBar", "parse_progress", "progress_bar", "progress_lines", "waiting_bar"]

_WORD: Final = "progress"
_LINE: Final = re.compile(rb"progress ([a-z][a-z0-9 -]{0,40}) ([0-9]{1,19}) ([0-9]{1,19})")

ProgressBar = Callable[[str, int, int], None]
"""Called with a stage's name, how much of it is done, and its whole, in any unit."""
_DELAY_SECONDS: Final = 1.0
_LINE_SECONDS: Final = 0.2


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
def progress_lines() -> Iterator[ProgressBar]:
    """Yield the function that prints progress for a parent process: `progress STAGE DONE WHOLE` a line.

    A new stage has a line at once; within a stage there are a few a second.
    """
    last, next_s = "", 0.0

    def tell(stage: str, done: int, whole: int) -> None:
        nonlocal last, next_s
        now_s = time.monotonic()
        if stage == last and now_s < next_s:
            return
        last, next_s = stage, now_s + _LINE_SECONDS
        sys.stdout.write(f"{_WORD} {stage} {done} {whole}\n")
        sys.stdout.flush()

    yield tell


def parse_progress(line: bytes) -> tuple[str, int] | None:
    """Return stage and per cent of a line of `progress_lines`, None for any other line."""
    found = _LINE.fullmatch(line.rstrip(b"\n"))
    if found is None:
        return None
    done, whole = int(found[2]), int(found[3])
    return found[1].decode(), min(100 * done // whole, 100) if whole else 0


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
