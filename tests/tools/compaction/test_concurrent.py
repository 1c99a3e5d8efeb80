"""Two compactions of one log at the same time: one wins, the other says so and changes nothing."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ambermq.log.compaction.job import lock_jobs
from ambermq.log.compaction.rewrite_tasks import GroupTask, RewrittenSegment
from ambermq.log.manifest.manifest import Manifest, load
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.compaction.local_runner import LocalRunner
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.engine.lived import LIVED, Lived
from tests.tools.compactions import compact
from tests.tools.conftest import Run


class Disturbed(LocalRunner):
    """Tries another compaction before it writes anything."""

    def __init__(self, life: Lived) -> None:
        super().__init__()
        self._life = life
        self.refusal = ""
        self.is_as_it_was = False

    def rewrite(self, tasks: Sequence[GroupTask]) -> Iterator[RewrittenSegment]:
        before, jobs = manifest_of(self._life), jobs_of(self._life.directory)
        with pytest.raises(ToolError) as refused:
            compact(self._life)
        self.refusal = refused.value.message
        self.is_as_it_was = (before, jobs) == (manifest_of(self._life), jobs_of(self._life.directory))
        return super().rewrite(tasks)


def manifest_of(life: Lived) -> Manifest | None:
    return load(DiskStorage(), life.directory)


def jobs_of(directory: str | Path) -> list[str]:
    return sorted(path.name for path in Path(directory, "jobs").iterdir())


def test_the_one_that_runs_wins(tmp_path: Path) -> None:
    """The other is refused before it has taken a snapshot or swept anything; the first ends as if alone."""
    life = Lived(tmp_path / "data", 5)
    life.live(120)
    life.settle_down()
    runner = Disturbed(life)
    outcome = compact(life, runner=runner)
    life.end()
    assert "another compaction runs" in runner.refusal
    assert runner.is_as_it_was
    assert outcome.is_committed
    assert jobs_of(life.directory) == ["lock"]
    assert verify(life.directory, config=LIVED).damage is None


def test_the_command_says_so(run: Run, broker: ChildBroker) -> None:
    """One message and the exit code of a refusal, beside a running broker; the log is as it was."""
    directory = str(broker.directory)
    with lock_jobs(DiskStorage(), directory, "pid 4711"):
        before = load(DiskStorage(), directory)
        result = run("log", "compact", "--data", directory, "--keep-history", "0s", "--runner", "local")
        assert before == load(DiskStorage(), directory)
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.startswith("error: ")
    assert "another compaction runs: found pid 4711; nothing was changed" in result.stderr
