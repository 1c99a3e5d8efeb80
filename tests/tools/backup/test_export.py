"""Backups: what is restored is what was, and what is not whole is never restored."""

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.buffer import Buffer
from ambermq.log.errors import DamageError, ForeignError, LogError
from ambermq.log.manifest.manifest import load
from ambermq.log.recovery.recovery import Recovery, restoring_path
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.disk import DiskFile, DiskStorage
from ambermq.tools.backup.export import export_backup
from ambermq.tools.backup.format import FRAME_HEADER_BYTES, HEADER_BYTES, TABLE_NAME, decode_frame, encode_frame
from ambermq.tools.backup.restore import restore_backup
from ambermq.tools.backup.verify import verify_backup
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.engine.lived import LIVED, Lived
from tests.golden import GOLDEN_DIRECTORY
from tests.tools.backups import bodies_of, folded, lived_with_snapshot, take_snapshot, taken

GOLDEN = GOLDEN_DIRECTORY / "backup.hex"
GOLDEN_CONTENT = ("one", 3, 11, 2)


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1 << 32), st.booleans())
def test_what_is_restored_is_what_was(seed: int, as_directory: bool) -> None:
    """State and bytes of all live messages, to the last attribute; the log verifies, and a broker goes on with it."""
    with tempfile.TemporaryDirectory() as place:
        directory, target = Path(place), f"{place}/restored"
        path, state, table = taken(directory, seed, as_directory=as_directory)
        assert Path(path).is_dir() == as_directory
        assert verify_backup(path) == table
        manifest = restore_backup(path, target)
        assert manifest == load(DiskStorage(), target)
        assert manifest.log_id.hex() != table.log_id
        assert manifest.horizon is not None
        assert manifest.horizon.offset == table.end <= manifest.start_offset
        assert folded(target)[0] == state
        assert bodies_of(target, state) == bodies_of(f"{place}/source", state)
        assert verify(target, config=LIVED).damage is None
        goes_on = Lived(Path(target), seed + 1)
        goes_on.live(20)
        goes_on.settle_down()
        live = goes_on.loop.state
        goes_on.end()
        assert folded(target)[0] == live
        report = verify(target, config=LIVED)
        assert (report.damage, report.unknown_files) == (None, [])


def test_a_restored_log_can_be_backed_up(tmp_path: Path) -> None:
    """Kept records are kept again, and a later snapshot of the copy holds what is live then."""
    path, _, _ = taken(tmp_path, 3)
    restore_backup(path, str(tmp_path / "copy"))
    lived = Lived(tmp_path / "copy", 4)
    lived.live(30)
    lived.settle_down()
    lived.end()
    state = take_snapshot(str(tmp_path / "copy"), "two")
    export_backup(str(tmp_path / "copy"), "two", str(tmp_path / "again"), as_directory=False)
    restore_backup(str(tmp_path / "again"), str(tmp_path / "third"))
    assert folded(str(tmp_path / "third"))[0] == state
    assert bodies_of(str(tmp_path / "third"), state) == bodies_of(str(tmp_path / "copy"), state)


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a backup in one file."""
    return Path(taken(tmp_path_factory.mktemp("backup"), 5)[0]).read_bytes()


def _refused(place: str, content: bytes) -> LogError:
    """Return why a backup of these bytes is refused, by verification and restore alike; nothing is made."""
    path, target = Path(place) / "changed", Path(place) / "target"
    path.write_bytes(content)
    with pytest.raises((DamageError, ForeignError)) as verified:
        verify_backup(str(path))
    with pytest.raises(LogError) as restored:
        restore_backup(str(path), str(target))
    assert str(restored.value) == str(verified.value)
    assert not target.exists()
    return verified.value


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_found(backup: bytes, data: st.DataObject) -> None:
    """Wherever it lies, but in what a version to come may use; and the directory is not even made."""
    position = data.draw(st.integers(0, len(backup) - 1))
    changed = bytearray(backup)
    changed[position] ^= 1 << data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as place:
        _refused(place, bytes(changed))


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_cut_is_found(backup: bytes, data: st.DataObject) -> None:
    """A backup that lost its end is refused as such, however much is left; so is one with more behind it."""
    length = data.draw(st.integers(0, len(backup) - 1))
    with tempfile.TemporaryDirectory() as place:
        error = _refused(place, backup[:length])
        assert isinstance(error, ForeignError) == (length < 8)
        assert isinstance(_refused(place, backup + b"?"), DamageError)


def test_a_frame_that_claims_too_much_is_refused(backup: bytes, tmp_path: Path) -> None:
    """Nothing is allocated for what zstandard's own header says, though every checksum is right."""
    frame = decode_frame(backup[HEADER_BYTES:][:FRAME_HEADER_BYTES], "f", 0)
    claiming = bytes.fromhex("28b52ffd e0") + (1 << 40).to_bytes(8, "little")
    payload = claiming.ljust(frame.stored, b"\0")
    hostile = b"".join(encode_frame(payload, length=frame.length, part=0))
    error = _refused(str(tmp_path), backup[:HEADER_BYTES] + hostile + backup[HEADER_BYTES + len(hostile) :])
    assert f"expected one zstandard frame of {frame.length} bytes, found a frame of {1 << 40} bytes" in str(error)


def test_foreign_and_newer_backups_are_named_as_such(backup: bytes, tmp_path: Path) -> None:
    """Neither is damage; one message tells what was expected and found."""
    assert "is no backup: expected magic b'AMBERBAK'" in str(_refused(str(tmp_path), b"PK\3\4" * 100))
    newer = backup[:8] + b"\2\0\0\0" + backup[12:]
    assert "has backup version 2, this program reads version 1" in str(_refused(str(tmp_path), newer))
    with pytest.raises(ForeignError, match="is no backup: expected a file TABLE, found none"):
        verify_backup(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        verify_backup(str(tmp_path / "nothing"))


@pytest.mark.parametrize("change", ["missing", "longer", "cut", "swapped", "table"])
def test_a_directory_that_was_changed_is_refused(change: str, tmp_path: Path) -> None:
    """A part that is missing, longer, cut, or another's."""
    path, _, table = taken(tmp_path, 7, as_directory=True)
    assert len(table.parts) > 1
    first, second = (Path(path) / f"{part.name}.part" for part in table.parts[:2])
    match change:
        case "missing":
            second.unlink()
        case "longer":
            second.write_bytes(second.read_bytes() + b"?")
        case "cut":
            second.write_bytes(second.read_bytes()[:-1])
        case "swapped":
            first.write_bytes(second.read_bytes())
        case "table":
            (Path(path) / TABLE_NAME).write_bytes(b"{}")
    with pytest.raises(DamageError):
        restore_backup(path, str(tmp_path / "target"))
    assert not (tmp_path / "target").exists()


def test_a_directory_with_a_log_is_refused(tmp_path: Path) -> None:
    """A log is never replaced, nor is what may be left of one."""
    path, _, _ = taken(tmp_path, 8)
    before = (tmp_path / "source" / "MANIFEST").read_bytes()
    with pytest.raises(ToolError, match="holds a log already"):
        restore_backup(path, str(tmp_path / "source"))
    assert (tmp_path / "source" / "MANIFEST").read_bytes() == before
    (tmp_path / "left" / "segments").mkdir(parents=True)
    (tmp_path / "left" / "segments" / "0000000000000001.log").write_bytes(b"?")
    with pytest.raises(ToolError, match="the directory holds files of a log"):
        restore_backup(path, str(tmp_path / "left"))


def test_a_restore_that_was_cut_short_opens_as_nothing_and_can_be_done_again(tmp_path: Path) -> None:
    """The mark keeps a broker from beginning a log there; the next restore removes what was left."""
    path, state, _ = taken(tmp_path, 9)
    target = tmp_path / "target"
    (target / "segments").mkdir(parents=True)
    Path(restoring_path(str(target))).touch()
    with pytest.raises(LogError, match="holds an unfinished restore"):
        Recovery.open(DiskStorage(), str(target), LIVED, 1)
    (target / "segments" / "0000000000000009.log").write_bytes(b"half")
    with pytest.raises(LogError, match="holds an unfinished restore"):
        Recovery.open(DiskStorage(), str(target), LIVED, 1)
    restore_backup(path, str(target))
    assert _names(target) == ["MANIFEST", "lock", "segments", "snapshots"]
    assert folded(str(target))[0] == state
    assert verify(str(target), config=LIVED).unknown_files == []


def _fill_disk(monkeypatch: pytest.MonkeyPatch, left_bytes: int) -> None:
    """Limit the disk to so many bytes more."""
    write, left = DiskFile.write, [left_bytes]

    def bounded(file: DiskFile, buffers: Sequence[Buffer], position: int) -> None:
        left[0] -= sum(map(len, buffers))
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(file, buffers, position)

    monkeypatch.setattr(DiskFile, "write", bounded)


@pytest.mark.parametrize("as_directory", [False, True])
@pytest.mark.parametrize("left_bytes", [0, 100, 1500])
def test_a_full_disk_leaves_no_backup(
    as_directory: bool, left_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message, and neither the backup nor anything of it."""
    lived_with_snapshot(tmp_path / "source", 11)
    with monkeypatch.context() as patch:
        _fill_disk(patch, left_bytes)
        with pytest.raises(ToolError, match="cannot be written: found No space left on device"):
            export_backup(str(tmp_path / "source"), "one", str(tmp_path / "backup"), as_directory=as_directory)
    assert _names(tmp_path) == ["source"]


@pytest.mark.parametrize("left_bytes", [0, 100, 5000])
def test_a_full_disk_leaves_no_log(left_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that has no room leaves the directory as it was: missing, or as empty as before."""
    path, _, _ = taken(tmp_path, 12)
    (tmp_path / "empty").mkdir()
    for target in ("missing", "empty"):
        with monkeypatch.context() as patch:
            _fill_disk(patch, left_bytes)
            with pytest.raises(ToolError, match="the log cannot be written: found No space left on device"):
                restore_backup(path, str(tmp_path / target))
    assert not (tmp_path / "missing").exists()
    assert set(_names(tmp_path / "empty")) <= {"lock"}
    restore_backup(path, str(tmp_path / "empty"))


@pytest.mark.parametrize("as_directory", [False, True])
def test_an_export_removes_what_an_earlier_one_left(as_directory: bool, tmp_path: Path) -> None:
    """What a kill left under the temporary name is gone; two exports at a time are refused."""
    lived_with_snapshot(tmp_path / "source", 13)
    partial = tmp_path / "backup.partial"
    if as_directory:
        partial.mkdir()
        (partial / "snapshot.part").write_bytes(b"half")
    else:
        partial.write_bytes(b"half")
    other = DiskStorage().try_lock(str(partial))
    assert other is not None
    with pytest.raises(ToolError, match="another export is writing"):
        export_backup(str(tmp_path / "source"), "one", str(tmp_path / "backup"), as_directory=as_directory)
    other.release()
    export_backup(str(tmp_path / "source"), "one", str(tmp_path / "backup"), as_directory=as_directory)
    assert _names(tmp_path) == ["backup", "source"]
    verify_backup(str(tmp_path / "backup"))


def test_an_export_takes_the_place_of_nothing(tmp_path: Path) -> None:
    """A file of that name, a directory with something in it, a directory that is missing, a snapshot that is none."""
    path, _, _ = taken(tmp_path, 14)
    source = str(tmp_path / "source")
    with pytest.raises(ToolError, match="the file exists already"):
        export_backup(source, "one", path, as_directory=False)
    with pytest.raises(ToolError, match="the directory is not empty"):
        export_backup(source, "one", source, as_directory=True)
    with pytest.raises(ToolError, match="no such directory"):
        export_backup(source, "one", str(tmp_path / "no" / "backup"), as_directory=False)
    with pytest.raises(ToolError, match="no snapshot 'two': found 1 snapshots, the newest: one") as raised:
        export_backup(source, "two", str(tmp_path / "other"), as_directory=False)
    assert raised.value.exit_code == ExitCode.NOT_FOUND


def test_a_message_that_is_damaged_ends_an_export(tmp_path: Path) -> None:
    """All or nothing: a body that is wrong is named."""
    state = lived_with_snapshot(tmp_path / "source", 15)
    (offset, body), *_ = bodies_of(str(tmp_path / "source"), state).items()
    assert offset >= 0
    for path in (tmp_path / "source" / "segments").glob("*.log"):
        content = bytearray(path.read_bytes())
        at = content.find(body[:8])
        if at >= 0:
            content[at] ^= 1
            path.write_bytes(content)
    with pytest.raises(DamageError, match="body CRC"):
        export_backup(str(tmp_path / "source"), "one", str(tmp_path / "backup"), as_directory=False)
    assert _names(tmp_path) == ["source"]


def test_the_header_is_as_it_is_drawn(backup: bytes) -> None:
    """Magic, version and size of what stands in front."""
    assert backup[:16] == b"AMBERBAK" + bytes([1, 0, 0, 0, 0, 0, 0, 0])
    assert HEADER_BYTES == 64


def test_a_backup_of_old_is_restored(tmp_path: Path) -> None:
    """Golden bytes: what was exported once stays readable."""
    path = tmp_path / "backup"
    path.write_bytes(bytes.fromhex("".join(GOLDEN.read_text().split())))
    table = verify_backup(str(path))
    assert (table.name, table.queue_count, table.message_count, len(table.parts)) == GOLDEN_CONTENT
    restore_backup(str(path), str(tmp_path / "restored"))
    state, _ = folded(str(tmp_path / "restored"))
    assert sum(queue.depth for queue in state.queues.values()) == table.message_count
