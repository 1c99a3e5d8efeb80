"""Settings of the broker's process: open files, garbage collection, thread switches, log lines.

They change the speed and the log lines of the broker, not its behaviour. Each has its reason beside it.
"""

import gc
import logging
import resource
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

from ambermq.log.format import checksum
from ambermq.log.storage.heap import keep_free_memory
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.output import printable

__all__ = [
    "check_open_files",
    "configure_logging",
    "escape_values",
    "freeze_heap",
    "raise_open_files",
    "tune_interpreter",
    "warn_of_slowness",
]

_TEXT_MAX: Final = 2000
"""The characters of one text in a log line: enough for the standard error of a child process."""


_DESCRIPTORS_MIN: Final = 64
"""The least limit of open files: a broker without connections has about 20 open."""
_SWITCH_SECONDS: Final = 0.0005
_YOUNG_COUNT: Final = 2_500
_MIDDLE_COUNT: Final = 1
_OLD_COUNT: Final = 10_000_000


def configure_logging(level: str, form: str = "auto") -> None:
    """Configure log lines: this level and above, one line each, on standard error, times in UTC.

    `form` is one of LOG_FORMATS. `auto` is pretty on a terminal and JSON elsewhere. Pretty lines have colours only on a
    terminal.
    """
    if form == "auto":
        form = "pretty" if sys.stderr.isatty() else "json"
    final: Any = structlog.processors.JSONRenderer() if form == "json" else _pretty()
    errors = [structlog.processors.dict_tracebacks] if form == "json" else []
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            escape_values,
            *errors,
            final,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _pretty() -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(),
        pad_event_to=0,
        pad_level=False,
        exception_formatter=structlog.dev.plain_traceback,
    )


def escape_values(_logger: Any, _method: str, values: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape what is not printable in the texts of a line, and cut long ones: clients choose some of them."""
    for name, value in values.items():
        if isinstance(value, str) and (len(value) > _TEXT_MAX or not value.isprintable()):
            values[name] = printable(value[:_TEXT_MAX]) + ("..." if len(value) > _TEXT_MAX else "")
    return values


def raise_open_files() -> int:
    """Raise the soft limit of open files to the hard limit, since each connection is one; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        return soft  # some systems refuse the hard limit that they report
    return hard


def check_open_files(descriptors_max: int) -> None:
    """Raise ToolError if the process may open too few files for a broker."""
    if descriptors_max < _DESCRIPTORS_MIN:
        raise ToolError(
            "too few open files",
            where="the limit of this process",
            expected=f"at least {_DESCRIPTORS_MIN}",
            found=str(descriptors_max),
            advice="raise it: ulimit -n, or LimitNOFILE of systemd",
        )


def tune_interpreter() -> None:
    """Set a short switch interval between threads, rare garbage collections, and a heap that keeps some free memory.

    The sync thread gets the GIL back from a busy event loop after 0.5 ms instead of 5: fdatasync with the return of
    the GIL takes 0.8 ms instead of 5.5. A full collection visits all live objects and frees few: cycles are rare. A
    collection of the middle generation visits at most 5,000 objects, at 1 us each: with 100,000 and more it stops
    the event loop for 40 to 130 ms after many attaches or attachments. An object that lives has one collection of
    either kind, so their total cost does not depend on these counts. The counts are of growth: objects that replace
    others do not count, so the driver of the engine collects the young ones after many changes
    (server/vhosts/runner.py).
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_YOUNG_COUNT, _MIDDLE_COUNT, _OLD_COUNT)
    keep_free_memory()


def freeze_heap() -> None:
    """Exclude all live objects from garbage collection; called once, after recovery."""
    gc.collect()
    gc.freeze()


def warn_of_slowness() -> None:
    """Log a warning if CRC-32C is computed by an interpreted loop, at a few MB a second."""
    if not checksum.IS_FAST:
        structlog.get_logger().warning(
            "slow CRC-32C", reason="no compiled implementation is installed", advice="install the package crc32c"
        )
