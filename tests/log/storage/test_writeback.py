"""Writing a range back where the system has no such call."""

import ctypes
import errno
import os
from pathlib import Path

import pytest

from ambermq.log.storage import writeback


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_kernel_without_the_call_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """With `wait`; another error is raised."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)

    def fail(*_arguments: int) -> int:
        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(writeback, "_sync_file_range", lambda: fail)
    with (tmp_path / "file").open("wb") as file:
        writeback.write_back(file.fileno(), 0, 10, wait=False)
        assert not synced
        writeback.write_back(file.fileno(), 0, 10, wait=True)
        assert synced == [file.fileno()]
        number = errno.EIO
        with pytest.raises(OSError, match="Input/output"):
            writeback.write_back(file.fileno(), 0, 10, wait=True)
