"""The demo, with fewer messages, and its judgement when a promise is broken."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.demo import Demo
from ambermq.tools.terminal.errors import ToolError


def test_the_main_job_is_done_through_a_kill(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every accepted message arrives, and the log's summary is shown."""
    broker = ChildBroker(tmp_path / "data")
    Demo(broker, 2000, runner="local").run()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:7]] == [
        "broker",
        "killed",
        "broker",
        "sent",
        "received",
        "checked",
        "log",
    ]
    assert "all 2,000 accepted messages arrived" in lines[5]
    assert any(line.split() == ["started", "2"] for line in lines)


def test_a_lost_message_fails_the_demo(tmp_path: Path) -> None:
    """The check reports missing and unknown messages."""
    demo = Demo(ChildBroker(tmp_path / "data"), 3)
    for number in range(3):
        demo._record(number, "accepted")
    demo._seen.update(["0", "2", "7"])
    with pytest.raises(ToolError, match=r"were lost, .*: .*1 lost \[1\], 1 unknown \['7'\]"):
        demo._check()


def test_nothing_is_left_behind_by_a_demo_that_is_stopped(tmp_path: Path) -> None:
    """SIGTERM in the middle: no broker, no file."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "ambermq.tools.demo"], stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"broker ")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
