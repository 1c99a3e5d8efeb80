"""The kernel's own sync: the same promises as a thread's."""

import ctypes
import errno
import os
import select
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.group_commit import GroupCommit, SyncTarget
from ambermq.log.storage.linux_aio import LinuxAio
from ambermq.log.storage.sync_lane import LARGE_SYNC_BYTES, SyncLane
from ambermq.log.storage.worker_threads import ThreadWorkers


@pytest.fixture
def done_fd() -> Iterator[int]:
    fd = os.eventfd(0, os.EFD_NONBLOCK)
    yield fd
    os.close(fd)


@pytest.fixture(params=["ring", "call"])
def kernel(done_fd: int, request: pytest.FixtureRequest) -> Iterator[LinuxAio]:
    """Takes the ends from the shared ring where that can be, or by the call as elsewhere."""
    try:
        sync = LinuxAio(done_fd)
    except OSError as error:
        pytest.skip(f"this kernel offers no AIO: {error}")
    if request.param == "call":
        sync._ring = None
    yield sync
    sync.close()


def test_a_sync_ends_and_is_told(kernel: LinuxAio, done_fd: int, tmp_path: Path) -> None:
    """The eventfd is readable when a sync has ended, and one sync is under way at a time."""
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 100_000)
    kernel.begin(fd)
    assert kernel.is_busy
    assert select.select([done_fd], [], [], 10)[0] == [done_fd]
    assert kernel.has_ended()
    assert not kernel.is_busy
    os.close(fd)


def test_ends_are_taken_round_and_round(kernel: LinuxAio, done_fd: int, tmp_path: Path) -> None:
    """As many syncs as the kernel keeps room for the ends of, three times over, each end taken once."""
    room = 100 if kernel._ring is None else kernel._ring[1]
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    for _ in range(3 * room):
        kernel.begin(fd)
        assert select.select([done_fd], [], [], 10)[0] == [done_fd]
        assert os.eventfd_read(done_fd) == 1
        assert kernel.has_ended()
        assert not kernel.has_ended()
    os.close(fd)


def test_the_ring_is_read_where_the_kernel_writes(kernel: LinuxAio, done_fd: int, tmp_path: Path) -> None:
    """Each of its events names our request; a failure in the wrong place would be read as a success."""
    if kernel._ring is None:
        pytest.skip("the ends are taken by a call")
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    kernel.begin(fd)
    assert select.select([done_fd], [], [], 10)[0] == [done_fd]
    head = kernel._ring[2]
    assert kernel._events[4 * head + 1] == ctypes.addressof(kernel._iocb)
    assert kernel.has_ended()
    os.close(fd)


def test_a_closed_context_is_gone(done_fd: int) -> None:
    """The kernel has few for all processes, and each virtual host takes one."""
    try:
        sync = LinuxAio(done_fd)
    except OSError as error:
        pytest.skip(f"this kernel offers no AIO: {error}")
    ctypes.set_errno(0)
    assert sync._completion_result(at_least=0) is None
    assert ctypes.get_errno() == 0
    sync.close()
    assert sync._completion_result(at_least=0) is None
    assert ctypes.get_errno() == errno.EINVAL
    ctypes.set_errno(0)


def test_a_sync_that_fails_raises(kernel: LinuxAio, done_fd: int) -> None:
    """A file that cannot be synced is an OSError with the kernel's number, at the begin or at the end."""
    reading, writing = os.pipe()

    def sync() -> None:
        kernel.begin(writing)
        select.select([done_fd], [], [], 10)
        kernel.has_ended()

    with pytest.raises(OSError) as caught:
        sync()
    assert caught.value.errno == errno.EINVAL
    os.close(reading)
    os.close(writing)


def test_a_file_that_is_closed_is_never_synced(kernel: LinuxAio, done_fd: int, tmp_path: Path) -> None:
    """Not even as the first one, and the loop is told at once that there is something to find."""
    file = DiskStorage().open(str(tmp_path / "file"), create=True)
    file.close()
    with pytest.raises(OSError) as caught:
        kernel.begin(file.fileno())
    assert caught.value.errno == errno.EBADF
    assert not kernel.is_busy
    assert os.eventfd_read(done_fd) == 1


@pytest.mark.parametrize("step_bytes", [4096, LARGE_SYNC_BYTES // 3, LARGE_SYNC_BYTES])
def test_a_lane_syncs_files_in_order_and_rides_one_sync(tmp_path: Path, step_bytes: int) -> None:
    """Targets set while a sync runs are made durable by the next one, whose end is the last target's."""
    storage, workers = DiskStorage(), ThreadWorkers()
    files = [storage.open(str(tmp_path / name), create=True) for name in ("a", "b")]
    syncer = GroupCommit(0, files[0])
    lane = workers.sync_lane(syncer)
    if not isinstance(lane, SyncLane):
        pytest.skip("this kernel offers no AIO")
    for number in range(1, 20):
        files[number // 10].write([b"y" * 4096], number * 4096)
        earlier = ((files[0], 9 * step_bytes),) if number > 9 else ()
        syncer.target = SyncTarget(number, number * step_bytes, files[number // 10], earlier)
        lane.wake()
    while syncer.synced.end < 19:
        assert select.select([workers.fileno()], [], [], 10)[0]
        workers.collect()
    assert lane.error is None
    workers.close()
    for file in files:
        file.close()


@pytest.mark.parametrize("size", [1, LARGE_SYNC_BYTES])
def test_a_failed_sync_ends_the_lane(tmp_path: Path, size: int) -> None:
    """After a failure nothing is synced again, and the error stays for the loop to find."""
    workers = ThreadWorkers()
    file = DiskStorage().open(str(tmp_path / "a"), create=True)
    syncer = GroupCommit(0, file)
    lane = workers.sync_lane(syncer)
    if not isinstance(lane, SyncLane):
        pytest.skip("this kernel offers no AIO")
    os.close(file.fileno())
    syncer.target = SyncTarget(1, size, file)
    lane.wake()
    while lane.error is None:
        assert select.select([workers.fileno()], [], [], 10)[0]
        workers.collect()
    assert isinstance(lane.error, OSError)
    lane.wake()
    assert syncer.synced.end == 0
    workers.close()


def test_a_thread_that_cannot_start_ends_the_lane(tmp_path: Path, kernel: LinuxAio) -> None:
    """As a sync that failed: where no more files may be open there is none for it."""

    def refuse(_run: object) -> NoReturn:
        raise OSError(errno.EMFILE, "too many open files")

    file = DiskStorage().open(str(tmp_path / "a"), create=True)
    syncer = GroupCommit(0, file)
    lane = SyncLane(syncer, kernel, refuse)
    syncer.target = SyncTarget(1, LARGE_SYNC_BYTES, file)
    lane.wake()
    assert isinstance(lane.error, OSError)
    syncer.target = SyncTarget(2, 1, file)
    lane.wake()
    assert not kernel.is_busy
    file.close()


def test_a_thread_syncs_where_the_kernel_does_not(tmp_path: Path) -> None:
    """Without AIO the same lane is a thread."""
    workers = ThreadWorkers(has_kernel_sync=False)
    file = DiskStorage().open(str(tmp_path / "a"), create=True)
    syncer = GroupCommit(0, file)
    lane = workers.sync_lane(syncer)
    file.write([b"z"], 0)
    syncer.target = SyncTarget(1, 1, file)
    lane.wake()
    while syncer.synced.end < 1:
        assert select.select([workers.fileno()], [], [], 10)[0]
        workers.collect()
    workers.close()
    file.close()


@pytest.mark.parametrize("size", [1, LARGE_SYNC_BYTES])
@pytest.mark.parametrize("has_kernel_sync", [True, False])
def test_what_is_synced_is_not_synced_again(tmp_path: Path, size: int, *, has_kernel_sync: bool) -> None:
    """A wake whose target the run before has taken asks nothing of a file, which may be closed by then."""
    workers = ThreadWorkers(has_kernel_sync=has_kernel_sync)
    file = DiskStorage().open(str(tmp_path / "a"), create=True)
    syncer = GroupCommit(0, file)
    lane = workers.sync_lane(syncer)
    syncer.target = SyncTarget(1, size, file)
    lane.wake()
    while syncer.synced.end < 1:
        assert select.select([workers.fileno()], [], [], 10)[0]
        if isinstance(lane, SyncLane):
            # As a request that comes while the sync is under way.
            lane.wake()
            if size < LARGE_SYNC_BYTES:
                file.close()
        workers.collect()
    file.close()
    syncer.run()
    for _ in range(3):
        lane.wake()
        workers.collect()
    assert lane.error is None
    workers.close()
    assert lane.error is None
