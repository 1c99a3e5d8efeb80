"""What the broker's process is set to before it serves: open files, garbage collection, threads' turns, log lines.

None of it changes what the broker does; each setting has its measured reason beside it.
"""

import gc
import logging
import resource
import sys
from typing import Final

import structlog

from ambermq.log.format import checksum

__all__ = ["LOG_LEVELS", "configure_logging", "freeze_heap", "raise_open_files", "tune_interpreter", "warn_of_slowness"]

LOG_LEVELS: Final = ("debug", "info", "warning", "error")

_SWITCH_SECONDS: Final = 0.0005
_YOUNG_COUNT: Final = 20_000
_MIDDLE_COUNT: Final = 100
_OLD_COUNT: Final = 1_000


def configure_logging(level: str) -> None:
    """Let log lines of this level and above go to standard error, one line each, times in UTC."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                pad_event_to=0,
                pad_level=False,
                exception_formatter=structlog.dev.plain_traceback,
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def raise_open_files() -> int:
    """Raise the soft limit of open files to the hard one, since a connection is one; returns the limit now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        return soft  # some systems refuse what they themselves report as the hard limit
    return hard


def tune_interpreter() -> None:
    """Give threads short turns and the garbage collector long ones.

    A busy loop thread gives way to the sync thread after 0.5 ms instead of 5: fdatasync and the GIL's return took
    0.8 instead of 5.5 ms. Full collections walk everything alive, for nothing: the broker makes few cycles.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_YOUNG_COUNT, _MIDDLE_COUNT, _OLD_COUNT)


def freeze_heap() -> None:
    """Take everything alive out of the garbage collector's rounds; called once, after recovery."""
    gc.collect()
    gc.freeze()


def warn_of_slowness() -> None:
    """Say so when CRC-32C is computed by an interpreted loop, at a few MB a second."""
    if not checksum.IS_FAST:
        structlog.get_logger().warning(
            "CRC-32C has no fast implementation here, every write will be slow", advice="install the package crc32c"
        )
