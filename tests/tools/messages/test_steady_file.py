"""A file that is synced while it is written."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.tools.messages import steady_file
from ambermq.tools.messages.steady_file import SteadyFile


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=50), max_size=12))
def test_no_sync_has_more_than_its_part(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    """Nor do twice as many bytes wait for one, whatever the sizes of the pieces; the file has them all, in order."""
    path, written, synced = tmp_path_factory.mktemp("steady") / "file", 0, [0]

    def sync(number: int) -> None:
        synced.append(os.fstat(number).st_size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steady_file, "UNSYNCED_BYTES_MAX", 16)
        patch.setattr(os, "fdatasync", sync)
        file = SteadyFile(path)
        for piece in pieces:
            file.write(piece)
            written += len(piece)
            assert written - synced[-1] <= 2 * 16
        file.sync()
        file.close()
    assert path.read_bytes() == b"".join(pieces)
    assert len(synced) - 1 >= (written - 16) // 16


def test_a_sync_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next write that would wait for it, by the last sync; a restart after that begins anew."""

    def fail(_number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(steady_file, "UNSYNCED_BYTES_MAX", 8)
    file = SteadyFile(tmp_path / "file")
    monkeypatch.setattr(os, "fdatasync", fail)
    file.write(bytes(6))
    file.write(bytes(6))
    with pytest.raises(OSError, match="Input/output"):
        file.write(bytes(6))
    file.write(bytes(6))
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.restart()
    monkeypatch.undo()
    file.write(b"again")
    file.sync()
    file.close()
    assert (tmp_path / "file").read_bytes() == b"again"
