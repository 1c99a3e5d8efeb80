"""fdatasync by the kernel's own workers: Linux AIO (io_submit, IOCB_CMD_FDSYNC) with completion through an eventfd.

A sync thread must be woken, and it needs the GIL before the call and again before it reports: four context switches a
sync, and 80 us of CPU beyond the sync itself. With AIO the loop submits, the kernel syncs, and the eventfd wakes the
loop: one context switch. If the kernel or a sandbox has no AIO, a thread syncs.

    iocb, 64 bytes   data u64 | key u32 | rw_flags u32 | opcode u16 | prio i16 | fd u32 | buf u64 | nbytes u64 |
                     offset i64 | reserved u64 | flags u32 | resfd u32
    io_event, 32     data u64 | obj u64 | res i64 | res2 i64
    ring             id u32 | nr u32 | head u32 | tail u32 | magic u32 | 12 bytes | nr x io_event

The context's number is the address of a ring that the kernel shares with the process. libaio reads completions from the
ring without a system call, and so does this module: 0.7 us instead of 2.4 us. That needs a processor that keeps the
order of reads, such as x86_64; on others the new tail could become visible before the event. On those, and if the magic
differs, the module calls io_getevents.
"""

import ctypes
import os
import platform
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

__all__ = ["LinuxAio"]

_IOCB: Final = Struct("<QIIHhIQQqQII")
_EVENT: Final = Struct("<QQqq")
_FDSYNC: Final = 3
_FLAG_RESFD: Final = 1
_NO_FD: Final = 0xFFFFFFFF
"""-1 as u32: the descriptor of a closed file."""
_RING_HEADER_BYTES: Final = 32
_RING_MAGIC: Final = 0xA10A10A1
_COUNT, _HEAD, _TAIL = 1, 2, 3
_EVENT_COLUMNS, _RESULT = 4, 2


class _SyscallNumbers(NamedTuple):
    setup: int
    destroy: int
    getevents: int
    submit: int


_SYSCALL_NUMBERS: Final = {"x86_64": _SyscallNumbers(206, 207, 208, 209), "aarch64": _SyscallNumbers(0, 1, 4, 2)}


class LinuxAio:
    """An AIO context that runs one sync at a time."""

    __slots__ = (
        *("_blocking", "_call", "_context", "_done_fd", "_event", "_events", "_fd", "_iocb", "_numbers", "_ring"),
        *("_submit", "is_busy"),
    )

    def __init__(self, done_fd: int) -> None:
        """Set up the context. The end of each sync adds one to the eventfd `done_fd`. Raises OSError if unsupported."""
        numbers = _SYSCALL_NUMBERS.get(platform.machine())
        if numbers is None or platform.system() != "Linux":
            raise OSError(f"AIO is not supported on {platform.system()} {platform.machine()}")
        # PyDLL keeps the GIL, because these calls return at once. CDLL releases it: the last wait and the end of the
        # context take up to 40 ms, in a thread that closes the log of a virtual host while the loop serves the others.
        self._call = ctypes.PyDLL(None, use_errno=True).syscall
        self._blocking = ctypes.CDLL(None, use_errno=True).syscall
        self._numbers = numbers
        self._context = ctypes.c_ulong(0)
        self._done_fd = done_fd
        self._fd: int | None = None
        self._iocb = ctypes.create_string_buffer(_IOCB.size)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(self._iocb))
        self._submit = partial(self._call, numbers.submit, self._context, 1, pointers)
        self._event = ctypes.create_string_buffer(_EVENT.size)
        self.is_busy = False
        """Whether a sync is in progress."""
        if self._call(numbers.setup, 1, ctypes.byref(self._context)):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._ring = _shared_ring(self._context.value)
        events = memoryview(b"") if self._ring is None else self._ring[_RING_HEADER_BYTES // 4 :].cast("B")
        self._events = events.cast("q")

    def begin(self, fd: int) -> None:
        """Submit the sync of a file. Raises OSError if that fails; the eventfd is readable then too."""
        assert not self.is_busy, "one sync at a time"
        if fd != self._fd:
            # The kernel resolves the descriptor at each submit, so an iocb for a reused number syncs the new file.
            _IOCB.pack_into(self._iocb, 0, 0, 0, 0, _FDSYNC, 0, fd & _NO_FD, 0, 0, 0, 0, _FLAG_RESFD, self._done_fd)
            self._fd = fd
        if self._submit() != 1:
            number = ctypes.get_errno()
            os.eventfd_write(self._done_fd, 1)
            raise OSError(number, os.strerror(number))
        self.is_busy = True

    def has_ended(self, *, waits: bool = False) -> bool:
        """Return whether the sync in progress has ended; `waits` blocks until then. Raises OSError if it failed."""
        ring = self._ring
        if ring is None or waits:
            result = self._completion_result(at_least=int(waits))
            if result is None:
                return False
        else:
            head = ring[_HEAD]
            if head == ring[_TAIL]:
                return False
            result = self._events[_EVENT_COLUMNS * head + _RESULT]
            ring[_HEAD] = (head + 1) % ring[_COUNT]
        self.is_busy = False
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return True

    def close(self) -> None:
        """Wait for the sync in progress and destroy the context. Raises OSError if that sync failed."""
        try:
            while self.is_busy:
                self.has_ended(waits=True)
        finally:
            self._ring = None
            self._blocking(self._numbers.destroy, self._context)

    def _completion_result(self, *, at_least: int) -> int | None:
        """Return the result of one completion by io_getevents, or None if there is none."""
        call = self._blocking if at_least else self._call
        if (
            call(self._numbers.getevents, self._context, ctypes.c_long(at_least), ctypes.c_long(1), self._event, None)
            != 1
        ):
            return None
        _, _, result, _ = _EVENT.unpack(self._event)
        return int(result)


def _shared_ring(address: int) -> memoryview | None:
    """Return the ring of a context as u32, or None if this processor or kernel needs io_getevents."""
    if platform.machine() != "x86_64":
        return None
    header = (ctypes.c_uint32 * (_RING_HEADER_BYTES // 4)).from_address(address)
    _, count, _, _, magic, *_ = header
    if magic != _RING_MAGIC:
        return None
    ring = (ctypes.c_char * (_RING_HEADER_BYTES + _EVENT.size * count)).from_address(address)
    return memoryview(ring).cast("B").cast("I")
