"""The progress of a long job on standard error, if that is a terminal: a bar for each stage, and the time left."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["ProgressBar", "progress_bar"]

ProgressBar = Callable[[str, int, int], None]
"""Called with a stage's name, how much of it is done, and its whole, in any unit."""


@contextmanager
def progress_bar(*, stays: bool = False) -> Iterator[ProgressBar]:
    """Yield the function that draws progress; it does nothing without a terminal.

    At the end of the block the bars are removed, or stay.
    """
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console  # noqa: PLC0415 - a fifth of a second that only a terminal needs
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description:<22}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=not stays) as bars:
        tasks: dict[str, TaskID] = {}

        def draw(stage: str, done: int, whole: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage)
            bars.update(tasks[stage], completed=done, total=whole)

        yield draw
