"""The stages of a long job on standard error, where somebody watches: each with its bytes and the time that is left."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["stage_bar"]

_COUNTED_MIN = 1 << 10
"""A stage of fewer steps than that is no stage of bytes."""


@contextmanager
def stage_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Yield what hears the stage, how much of it is done, and of how much; it is silent where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console  # noqa: PLC0415 - a fifth of a second that only a watched run needs
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from ambermq.tools.terminal.sizes import size_text  # noqa: PLC0415

    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def hear(stage: str, done: int, whole: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=whole, told="")
            is_bytes = whole >= _COUNTED_MIN
            told = f"{size_text(done)} of {size_text(whole)}" if is_bytes else f"{done} of {whole}"
            bar.update(tasks[stage], completed=done, total=whole, told=told)

        yield hear
