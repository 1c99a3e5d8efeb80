"""Writes a range of a file from the page cache to the disk, without the metadata: sync_file_range.

A sync of a file that grows commits the journal of the file system, for which each sync of a broker on the same disk
waits. Written back in small ranges, the bytes are on their way before that sync, which then is short.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

__all__ = ["write_back"]

_WAIT_BEFORE: Final = 1
_WRITE: Final = 2
_WAIT_AFTER: Final = 4
_NO_CALL: Final = (errno.ENOSYS, errno.EOPNOTSUPP)
"""What a kernel or a sandbox without the call says."""


@cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """Return the function of the C library; None where it has none."""
    function: Any = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return function  # type: ignore[no-any-return]  # a function of the C library has no type


def write_back(fd: int, position: int, length: int, *, wait: bool) -> None:
    """Begin to write a range to the disk, and with `wait` return when it is written. It is not durable then.

    Where the system has no such call, it syncs the bytes of the file, or does nothing without `wait`. Raises OSError.
    """
    function = _sync_file_range()
    if function is None:
        if wait:
            os.fdatasync(fd)
    elif function(fd, position, length, _WAIT_BEFORE | _WRITE | _WAIT_AFTER if wait else _WRITE):
        number = ctypes.get_errno()
        if number not in _NO_CALL:
            raise OSError(number, os.strerror(number))
        if wait:
            os.fdatasync(fd)
