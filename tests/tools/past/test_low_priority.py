"""Commands that read a log lower their priority."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ambermq.tools.past import low_priority as reading
from ambermq.tools.past.low_priority import ReadingGroup
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.backups import lived_with_snapshot
from tests.tools.conftest import Run


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the calls of `lower_priority`; this process keeps its priority."""
    counted: list[int] = []
    monkeypatch.setattr(reading, "lower_priority", lambda: counted.append(1))
    monkeypatch.setattr("ambermq.tools.wiring.queue_commands.lower_priority", lambda: counted.append(1))
    return counted


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log at rest with the snapshot `one`."""
    directory = tmp_path_factory.mktemp("read") / "source"
    lived_with_snapshot(directory, 21)
    return directory


@pytest.mark.parametrize(
    "command",
    [
        ("queue", "list", "--at", "now"),
        ("queue", "browse", "unknown"),
        ("history", "tail"),
        ("history", "diff", "--since", "now"),
        ("history", "queue", "unknown"),
        ("history", "message", "unknown"),
        ("snapshot", "show", "one"),
        ("snapshot", "verify"),
        ("snapshot", "diff", "one", "one"),
        ("snapshot", "export", "one", "{place}/backup"),
        ("log", "segments"),
        ("log", "dump", "--limit", "1"),
        ("log", "verify"),
    ],
    ids=" ".join,
)
def test_what_reads_a_log_steps_back(
    run: Run, steps: list[int], source: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Whether it finds what it looks for or not."""
    result = run(*(word.format(place=tmp_path) for word in command), "--data", source)
    assert result.exit_code in {ExitCode.OK, ExitCode.NOT_FOUND}, result.stderr
    assert steps


def test_a_request_to_the_broker_does_not(run: Run, steps: list[int]) -> None:
    """Its work is the broker's own."""
    run("queue", "list", "--url", "amqp://127.0.0.1:1")
    run("snapshot", "create", "--url", "amqp://127.0.0.1:1")
    assert not steps


def test_the_priority_is_lower_before_the_import(steps: list[int]) -> None:
    """The group lowers the priority before it imports a lazy command, and not for an imported one."""
    group = ReadingGroup(name="group", lazy={"lazy": ("ambermq.tools.nothing:such", "None.")})
    group.add_command(click.Command("eager"))
    context = click.Context(group)
    assert group.resolve_command(context, ["eager"])[0] == "eager"
    assert not steps
    with pytest.raises(ModuleNotFoundError):
        group.resolve_command(context, ["lazy"])
    assert steps


def test_a_second_call_changes_nothing() -> None:
    """A process that is behind already stays where it is; it can be further behind than it is asked to be."""
    code = "import os; from ambermq.tools.past import low_priority as low; low.lower_priority(); low.lower_priority()"
    command = [sys.executable, "-c", code + "; print(os.nice(0))"]
    before = os.nice(0)
    stepped = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert stepped == max(10, before)
    behind = subprocess.run(["nice", "-n", "15", *command], capture_output=True, text=True, check=True)
    assert int(behind.stdout) == min(19, before + 15)
