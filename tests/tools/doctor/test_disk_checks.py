"""What the doctor finds about a directory and its disk."""

import os
from pathlib import Path

import pytest

from ambermq.tools.doctor import disk_checks
from ambermq.tools.doctor.disk_checks import check_disk, file_system_of
from ambermq.tools.doctor.finding import Finding, Level

_MOUNTS = """\
/dev/vda / ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
server:/x /home/a\\040b nfs4 rw 0 0
overlay /var overlay rw 0 0
/dev/vdb /var/lib xfs rw 0 0
"""


def _findings(directory: Path) -> dict[str, Finding]:
    return {finding.check: finding for finding in check_disk(directory)}


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/", "ext4"), ("/run/x", "tmpfs"), ("/home/a b/c", "nfs4"), ("/var/lib/x", "xfs"), ("/var/libx", "overlay")],
)
def test_the_longest_mount_point_says_the_file_system(path: str, kind: str) -> None:
    assert file_system_of(Path(path), _MOUNTS) == kind


def test_a_private_directory_is_good_and_an_open_one_is_not(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir(mode=0o700)
    assert _findings(directory)["directory"].level is Level.OK
    directory.chmod(0o755)
    finding = _findings(directory)["directory"]
    assert finding.level is Level.WARNING
    assert finding.advice == f"chmod 0700 {directory}"


def test_a_directory_that_does_not_exist_is_looked_at_from_above(tmp_path: Path) -> None:
    findings = _findings(tmp_path / "a" / "b")
    assert "does not exist yet" in findings["directory"].found
    assert findings["sync"].level is not Level.FAULT
    assert [*tmp_path.iterdir()] == []


def test_a_sync_that_is_too_fast_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that does not sync: its cache is volatile."""
    monkeypatch.setattr(disk_checks, "_sync_times", lambda _place: [1e-6] * 200)
    finding = _findings(tmp_path)["sync"]
    assert finding.level is Level.FAULT
    assert "faster than any disk" in finding.advice


def test_a_slow_sync_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_checks, "_sync_times", lambda _place: [0.05] * 200)
    assert _findings(tmp_path)["sync"].level is Level.WARNING


def test_a_failing_disk_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_number: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    findings = _findings(tmp_path)
    assert findings["sync"].level is findings["disk speed"].level is Level.FAULT
    assert [*tmp_path.iterdir()] == []


def test_memory_is_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_checks, "file_system_of", lambda _place, _mounts: "tmpfs")
    assert _findings(tmp_path)["file system"].level is Level.FAULT
    monkeypatch.setattr(disk_checks, "file_system_of", lambda _place, _mounts: "nfs4")
    assert _findings(tmp_path)["file system"].level is Level.WARNING
