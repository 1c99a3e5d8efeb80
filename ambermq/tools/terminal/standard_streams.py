"""The standard streams of a command whose parent process has closed some of them.

Rule 1. A command without standard output is refused before it does anything. It could not print its result, and the
next file that it opens would get the descriptor of standard output.
Rule 2. The null device replaces the other two: the command reads nothing, and its log lines are dropped.
"""

import os
import sys

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["check_streams"]


def check_streams() -> None:
    """Replace closed streams by the null device; raise ToolError if standard output is closed."""
    if sys.stdout is None:
        raise ToolError(
            "standard output is closed",
            advice="send it to a file, a pipe or /dev/null",
            code=ExitCode.USAGE,
        )
    # The order counts: each open takes the lowest free descriptor, which is that of the stream.
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
