"""The owner and the modes of a data directory: its files hold message bodies, so no other user reads them.

Rule 1. Directories are 0700 and files 0600. The code that creates them sets these modes. A directory of an older
        version, or one that the user made, gets them at the next start, under the lock of the directory.
Rule 2. A directory of another user is refused: files of two users in one directory lock one of them out.
Rule 3. No symbolic link is followed. A file that cannot be changed is one log line, and the start goes on.
Rule 4. Files come before their directory. So a start that is killed halfway leaves work that the next start does.
"""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog

from ambermq.tools.terminal.errors import ToolError

__all__ = ["check_owner", "private_files", "restrict_modes"]

_DIRECTORY_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_OTHERS: Final = 0o077
"""The bits of the group and of all other users."""


@contextmanager
def private_files() -> Iterator[None]:
    """Run the block with a umask that keeps new files from other users; child processes inherit it."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def check_owner(directory: str) -> None:
    """Raise ToolError if a data directory belongs to another user than the one of this process."""
    try:
        owner = Path(directory).stat().st_uid
    except OSError:
        return
    if owner == os.geteuid():
        return
    name = _name_of(owner)
    raise ToolError(
        "the directory belongs to another user",
        where=directory,
        expected=_name_of(os.geteuid()),
        found=name,
        advice=f"run the broker as {name}, or change the owner: chown -R {_name_of(os.geteuid())} {directory}",
    )


def restrict_modes(directory: str) -> int:
    """Remove the permissions of other users below a data directory; return the number of changed names."""
    changed, failed = 0, ""
    for path, entry_mode in _entries(directory):
        if not entry_mode & _OTHERS:
            continue
        try:
            changed += _restrict(path)
        except OSError as error:
            failed = failed or f"{path}: {error.strerror}"
    if changed:
        structlog.get_logger().info("file modes restricted", data=directory, changed=changed)
    if failed:
        structlog.get_logger().warning("file modes not restricted", data=directory, first=failed)
    return changed


def _entries(directory: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the mode of each file and directory, contents before their directory."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path)
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    yield entry.path, entry.stat(follow_symlinks=False).st_mode
    with suppress(OSError):
        yield directory, os.lstat(directory).st_mode


def _restrict(path: str) -> bool:
    """Set the mode of a file or a directory, unless it has gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        os.fchmod(fd, _DIRECTORY_MODE if stat.S_ISDIR(os.fstat(fd).st_mode) else _FILE_MODE)
    finally:
        os.close(fd)
    return True


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
