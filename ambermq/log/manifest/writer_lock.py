"""Queries about the process that writes to a log. They read the text of its lock file and do not touch the lock.

A running broker writes its pid as JSON into the lock file; a clean stop empties the file. The text remains after a
SIGKILL, so the queries also check that the pid is alive. A copy of a running broker's directory copies the text too, so
the text names the inode of the file that it was written to: a command on the copy must not reach the broker of the
original. The queries do not try the lock, because that could prevent a starting broker from locking it.
"""

import os
from typing import Any

import msgspec

__all__ = ["is_alive", "is_written", "lock_path", "read_holder", "writer_of"]


def lock_path(directory: str) -> str:
    """Return the path of the lock file. A broker or a repair holds its lock while it may write."""
    return f"{directory}/lock"


def is_written(directory: str) -> bool:
    """Return whether a live broker serves the log in `directory`."""
    return writer_of(directory) is not None


def writer_of(directory: str) -> int | None:
    """Return the process id of the live broker that serves the log in `directory`, or None."""
    holder = read_holder(directory)
    return None if holder is None else int(holder["pid"])


def read_holder(directory: str) -> dict[str, Any] | None:
    """Return the fields of the lock file of the live broker that serves the log in `directory`, or None.

    Only the field `pid` is checked. Raises PermissionError if the lock file may not be read, because then the answer is
    unknown.
    """
    try:
        with open(lock_path(directory), "rb") as file:  # noqa: PTH123 - paths are text in this package
            holder = msgspec.json.decode(file.read(), type=dict[str, Any])
            inode = os.fstat(file.fileno()).st_ino
    except PermissionError:
        raise
    except (OSError, msgspec.DecodeError):
        return None
    pid = holder.get("pid")
    if not isinstance(pid, int) or pid <= 0 or not is_alive(pid):
        return None
    return holder if holder.get("inode", inode) == inode else None


def is_alive(pid: int) -> bool:
    """Return whether a process has that id."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
