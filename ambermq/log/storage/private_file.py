"""Small files that only their user may read, replaced as a whole: a kill leaves the old one or the new one.

Rule 1. The new version is written beside the old one, as NAME.new, with mode 0600 from its first byte; it is synced,
        renamed, and the directory is synced. What a kill has left of an earlier one is removed first.
Rule 2. One process at a time replaces a file: its caller holds a lock.
"""

import os
from contextlib import suppress

__all__ = ["replace_private_file", "sync_directory"]


def replace_private_file(path: str, content: bytes) -> None:
    """Replace a file; it is durable at the return. Raises OSError, and then the old one is still there.

    Only after a failed sync of the directory, the last step, it may be the new one.
    """
    new = f"{path}.new"
    _remove(new)
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        os.replace(new, path)  # noqa: PTH105 - paths are text here
    except BaseException:
        with suppress(OSError):
            _remove(new)
        raise
    sync_directory(os.path.dirname(path) or ".")  # noqa: PTH120 - as above


def sync_directory(path: str) -> None:
    """Make the names in a directory durable. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - as above
