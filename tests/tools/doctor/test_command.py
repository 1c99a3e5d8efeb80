"""`ambermq doctor` as a person runs it."""

import json
from pathlib import Path

import pytest

from ambermq.tools.doctor import disk_checks
from tests.tools.conftest import Run


@pytest.fixture(autouse=True)
def _fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_checks, "file_system_of", lambda _place, _mounts: "ext4")
    monkeypatch.setattr(disk_checks, "_sync_times", lambda _place: [0.001] * 200)


def test_a_good_directory_exits_0(run: Run, tmp_path: Path) -> None:
    done = run("doctor", "--data", tmp_path)
    assert done.exit_code == 0
    assert "ok       sync: 4 KiB are durable in 1.00 ms, 99 % within 1.00 ms\n" in done.stdout
    assert "ok       broker: none runs on the directory\n" in done.stdout


def test_a_fault_exits_1_and_says_what_to_do(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_checks, "file_system_of", lambda _place, _mounts: "tmpfs")
    done = run("doctor", "--data", tmp_path)
    assert done.exit_code == 1
    assert "fault    file system: tmpfs is memory" in done.stdout
    assert "         -> use a disk\n" in done.stdout


def test_programs_get_json(run: Run, tmp_path: Path) -> None:
    rows = json.loads(run("doctor", "--data", tmp_path, "--output", "json").stdout)
    assert {"check", "level", "found", "advice"} == rows[0].keys()
    assert {row["level"] for row in rows} <= {"ok", "warning", "fault"}
