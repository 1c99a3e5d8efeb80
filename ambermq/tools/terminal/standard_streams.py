"""The three streams of a command, where whoever started it has closed some of them.

Rule 1. Without a standard output a command is refused before it does anything: what it would say could not be said, and
the next file that is opened would be taken for it.
Rule 2. The null device stands in for the other two: nothing comes in, and what is logged goes nowhere.
"""

import os
import sys

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["check_streams"]


def check_streams() -> None:
    """Fill in for closed streams. Raises ToolError where standard output is closed."""
    if sys.stdout is None:
        raise ToolError(
            "standard output is closed",
            advice="send it to a file, a pipe, or to /dev/null where nobody wants it",
            code=ExitCode.USAGE,
        )
    # In this order, for each takes the lowest number that is free: its own.
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
