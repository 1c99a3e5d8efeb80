"""The progress of many small steps as one line on standard error, if that is a terminal.

Rule 1. Nothing is shown in the first second: most commands end within it.
Rule 2. The line is removed at the end, so that results and errors stand alone.
"""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, final

__all__ = ["ProgressCounter"]

_FIRST_SECONDS: Final = 1.0
_INTERVAL_SECONDS: Final = 0.2
_MIB: Final = 1 << 20
_CLEAR: Final = "\r\x1b[K"


@final
class ProgressCounter:
    """Shows a number that grows; a `with` block removes the line."""

    def __init__(
        self,
        verb: str,
        whole: int | None = None,
        *,
        is_shown: bool = True,
        noun: str = "messages",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`verb` says what is done with the messages, or what `noun` says; `whole` is their number, None if unknown."""
        self._verb = verb
        self._noun = noun
        self._whole = "" if whole is None else f" of {whole:,}"
        self._is_shown = is_shown and sys.stderr.isatty()
        self._clock = clock
        self._began = clock()
        self._next = self._began + _FIRST_SECONDS
        self._has_line = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def show(self, count: int) -> None:
        """Show how many steps are done, at most a few times a second."""
        if not self._is_shown or (now := self._clock()) < self._next:
            return
        seconds = now - self._began
        self._write(now, f"{count:,}{self._whole} {self._noun}, {count / seconds:,.0f}/s")

    def show_bytes(self, count: int, whole: int = 0) -> None:
        """Show how many bytes of a message are done, at most a few times a second; `whole` is 0 if it is unknown."""
        if not self._is_shown or (now := self._clock()) < self._next:
            return
        of = f" of {whole / _MIB:,.0f}" if whole else ""
        self._write(now, f"{count / _MIB:,.0f}{of} MiB, {count / _MIB / (now - self._began):,.0f} MiB/s")

    def _write(self, now: float, text: str) -> None:
        self._next = now + _INTERVAL_SECONDS
        self._has_line = True
        sys.stderr.write(f"{_CLEAR}{self._verb} {text}, {now - self._began:.0f} s")
        sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._has_line:
            self._has_line = False
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
