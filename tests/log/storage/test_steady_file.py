"""A file that goes to the disk while it is written."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.log.buffer import Buffer
from ambermq.log.storage import writeback
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.steady_file import PART_BYTES, SteadyFile, write_back_whole


class _Disk:
    """A file that counts what is on its way to the disk."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.begun = self.stored = self.dropped = 0
        self.most = 0
        """The most bytes that were on their way."""

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        assert position == len(self.content)
        self.content += b"".join(buffers)

    def write_back(self, position: int, length: int, *, wait: bool) -> None:
        assert position + length <= len(self.content)
        if wait:
            assert position == self.stored
            self.stored += length
        else:
            assert position == self.begun
            self.begun += length
        self.most = max(self.most, self.begun - self.stored)

    def drop_cache(self, position: int, length: int) -> None:
        assert position == self.dropped
        assert position + length <= self.stored
        self.dropped += length


@given(st.lists(st.lists(st.integers(0, 3 * PART_BYTES), max_size=3), max_size=6), st.booleans())
def test_at_most_two_parts_are_on_their_way(writes: list[list[int]], is_cached: bool) -> None:
    """Whatever the sizes of the writes; what is written and has not begun is less than a part."""
    disk = _Disk()
    file = SteadyFile(disk, is_cached=is_cached)  # type: ignore[arg-type]
    for sizes in writes:
        file.write([bytes(size) for size in sizes])
        assert file.position == len(disk.content)
        assert len(disk.content) - disk.begun < PART_BYTES
    assert disk.most <= 2 * PART_BYTES
    assert disk.dropped == (0 if is_cached else disk.stored)


def test_the_file_has_what_was_written(tmp_path: Path) -> None:
    """On the disk of the machine: in order, also after a restart, and after a sync."""
    disk = DiskStorage().open(str(tmp_path / "file"), create=True)
    file = SteadyFile(disk, is_cached=False)
    file.write([b"x" * 3 * PART_BYTES])
    file.restart()
    pieces = [bytes([one]) * (PART_BYTES - one) for one in range(5)]
    for piece in pieces:
        file.write([piece])
    file.sync()
    file.write([b"end"])
    file.sync()
    write_back_whole(disk)
    disk.close()
    assert (tmp_path / "file").read_bytes() == b"".join(pieces) + b"end"


def test_a_system_without_the_call_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the C library has no sync_file_range, each wait syncs the bytes of the file."""
    synced: list[int] = []
    monkeypatch.setattr(writeback, "_sync_file_range", lambda: None)
    monkeypatch.setattr(writeback.os, "fdatasync", synced.append)
    disk = DiskStorage().open(str(tmp_path / "file"), create=True)
    SteadyFile(disk).write([bytes(3 * PART_BYTES)])
    assert synced == [disk.fileno()] * 2
    disk.close()


def test_an_error_of_the_disk_is_raised(tmp_path: Path) -> None:
    """By the write that finds it: here the descriptor is closed."""
    disk = DiskStorage().open(str(tmp_path / "file"), create=True)
    disk.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.write_back(0, 1, wait=True)
