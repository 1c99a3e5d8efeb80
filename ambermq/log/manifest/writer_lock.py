"""Whether somebody writes to a log, as the text of its lock file says; the lock itself is not touched.

A broker that serves writes its pid as JSON into the file and a clean end empties it. The text outlives a SIGKILL, so
the pid is asked too. It is copied with the directory of a broker that runs, so it also says which file (inode) it was
written to: else who works on the copy would ask the broker of the original. Trying the lock instead could keep a
starting broker from having it.
"""

import os
from typing import Any

import msgspec

__all__ = ["is_alive", "is_written", "lock_path", "read_holder", "writer_of"]


def lock_path(directory: str) -> str:
    """Return the path of the lock that a broker, or a repair, holds while it may write."""
    return f"{directory}/lock"


def is_written(directory: str) -> bool:
    """Tell whether a broker that lives serves the log in `directory`."""
    return writer_of(directory) is not None


def writer_of(directory: str) -> int | None:
    """Return the process id of the broker that lives and serves the log in `directory`, None where there is none."""
    held = read_holder(directory)
    return None if held is None else int(held["pid"])


def read_holder(directory: str) -> dict[str, Any] | None:
    """Return what the lock file says of the broker that lives and serves the log in `directory`, None: none does.

    What is there is as it was written, but for `pid`, which is one. Raises PermissionError where it may not be read,
    since nobody knows then.
    """
    try:
        with open(lock_path(directory), "rb") as file:  # noqa: PTH123 - paths are texts in this folder
            held = msgspec.json.decode(file.read(), type=dict[str, Any])
            inode = os.fstat(file.fileno()).st_ino
    except PermissionError:
        raise
    except (OSError, msgspec.DecodeError):
        return None
    pid = held.get("pid")
    if not isinstance(pid, int) or pid <= 0 or not is_alive(pid):
        return None
    return held if held.get("inode", inode) == inode else None


def is_alive(pid: int) -> bool:
    """Tell whether there is a process of that id."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
