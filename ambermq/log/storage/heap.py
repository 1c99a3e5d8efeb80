"""The heap of the C library: what it keeps of the memory that is freed, and what goes back to the operating system.

An index build frees many small allocations at its end. The C library by itself returns only the end of the heap, so the
memory stays with the process. A call of malloc_trim returns it all; it takes 2 ms and does not hold the GIL.

A buffer of a megabyte that is freed is the end of the heap, or a map of its own. It goes back at once, and the next one
gets new pages from the kernel, one by one: for a megabyte they take 0.5 to 1.5 ms, and a read of it from the page cache
0.2 ms. So a process that moves large buffers all the time keeps some free memory.
"""

import ctypes
from typing import Final

__all__ = ["keep_free_memory", "release_free_memory"]

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""The numbers of these options of mallopt in glibc."""
_MAPPED_BYTES_MIN: Final = 32 << 20
"""The greatest value of that option: smaller buffers come from the heap."""
_KEPT_BYTES: Final = 8 << 20


def keep_free_memory() -> None:
    """Make the heap of the process keep up to 8 MiB of free memory at its end; do nothing on other C libraries.

    `release_free_memory` returns that, too.
    """
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(_MMAP_THRESHOLD, _MAPPED_BYTES_MIN)
        change(_TRIM_THRESHOLD, _KEPT_BYTES)


def release_free_memory() -> None:
    """Return the free memory of the heap to the system by malloc_trim of glibc; do nothing on other C libraries."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
