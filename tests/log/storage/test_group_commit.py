"""What a sync makes durable: all files of its target, and nothing that was requested after it began."""

from collections.abc import Callable
from typing import Any

import pytest

from ambermq.log.storage.group_commit import GroupCommit, SyncTarget
from ambermq.log.storage.sync_lane import LARGE_SYNC_BYTES, SyncLane


class _File:
    """A file whose sync takes as long as a test wants."""

    def __init__(self, fd: int, during: Callable[[], None] = lambda: None) -> None:
        self._fd = fd
        self.during = during
        self.sync_count = 0

    def fileno(self) -> int:
        return self._fd

    def datasync(self) -> None:
        self.during()
        self.sync_count += 1


class _Kernel:
    """A kernel whose syncs end when a test says so."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.is_done = False

    def begin(self, fd: int) -> None:
        self.begun.append(fd)

    def has_ended(self) -> bool:
        is_done, self.is_done = self.is_done, False
        return is_done


def lane_of(syncer: GroupCommit) -> tuple[SyncLane, Any]:
    """Return a lane whose kernel is driven by hand, and the kernel."""
    kernel: Any = _Kernel()

    def no_thread(_run: object) -> Any:
        raise AssertionError("a small sync needs no thread")

    return SyncLane(syncer, kernel, no_thread), kernel


def two_files(written_bytes: int = 20) -> tuple[Any, Any, GroupCommit]:
    """Return an earlier file, the current one, and a commit whose target has unsynced bytes in both."""
    earlier, file = _File(1), _File(2)
    any_earlier, any_file = (earlier, file)
    syncer = GroupCommit(0, any_earlier)  # type: ignore[arg-type]
    syncer.target = SyncTarget(9, written_bytes, any_file, ((any_earlier, written_bytes // 2),))  # type: ignore[arg-type]
    return earlier, file, syncer


def test_nothing_is_durable_after_the_first_of_two_files() -> None:
    """The end of the kernel's first sync begins the second one; only its end makes the target durable."""
    _, _, syncer = two_files()
    lane, kernel = lane_of(syncer)
    lane.wake()
    lane.collect()
    assert (kernel.begun, syncer.synced.end) == ([1], 0)
    kernel.is_done = True
    lane.collect()
    assert (kernel.begun, syncer.synced.end, syncer.synced.written_bytes) == ([1, 2], 0, 0)
    lane.collect()
    assert syncer.synced.end == 0, "a wake without an end"
    kernel.is_done = True
    lane.collect()
    assert (kernel.begun, syncer.synced.end, syncer.synced.written_bytes) == ([1, 2], 9, 20)


def test_a_thread_tells_nothing_after_the_first_of_two_files() -> None:
    """While a file of the target is not synced, none of it is durable; the files are synced in log order."""
    earlier, file, syncer = two_files(4 * LARGE_SYNC_BYTES)
    seen: list[tuple[int, int, int]] = []
    for each in (earlier, file):
        each.during = lambda: seen.append((syncer.synced.end, earlier.sync_count, file.sync_count))
    syncer.run()
    assert seen == [(0, 0, 0), (0, 1, 0)]
    assert (syncer.synced.end, earlier.sync_count, file.sync_count) == (9, 1, 1)


def test_a_failure_at_the_second_file_makes_nothing_durable() -> None:
    """Not even what lies in the first file: a later sync must not build on it."""
    _, file, syncer = two_files()

    def fail() -> None:
        raise OSError(5, "sync")

    file.during = fail
    with pytest.raises(OSError):
        syncer.run()
    assert syncer.synced.end == 0


def test_what_is_requested_during_a_thread_sync_is_not_durable_with_it() -> None:
    """Its bytes may have been written after the file was synced."""
    file: Any = _File(1)
    syncer = GroupCommit(0, file)
    syncer.target = SyncTarget(1, 10, file)

    def request() -> None:
        syncer.target = SyncTarget(2, 20, file)

    file.during = request
    syncer.run()
    assert syncer.synced.end == 1
    syncer.run()
    assert syncer.synced.end == 2


def test_what_is_requested_during_a_kernel_sync_is_not_durable_with_it() -> None:
    """The next sync begins by itself when the first one ends, and its end makes the rest durable."""
    file: Any = _File(1)
    syncer = GroupCommit(0, file)
    lane, kernel = lane_of(syncer)
    syncer.target = SyncTarget(1, 10, file)
    lane.wake()
    syncer.target = SyncTarget(2, 20, file)
    lane.wake()
    kernel.is_done = True
    lane.collect()
    assert (kernel.begun, syncer.synced.end) == ([1, 1], 1)
    kernel.is_done = True
    lane.collect()
    assert (kernel.begun, syncer.synced.end) == ([1, 1], 2)
