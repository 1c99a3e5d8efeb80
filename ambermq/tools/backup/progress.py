"""The progress of an export, a check or a restore: how many parts are done, and of how many."""

from collections.abc import Callable

__all__ = ["Progress", "no_progress"]

Progress = Callable[[int, int], None]
"""Called with the number of parts that are done, and of all."""


def no_progress(_done: int, _whole: int) -> None:
    """Report nothing."""
