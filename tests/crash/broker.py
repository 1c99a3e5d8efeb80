"""The broker of a campaign, and what is checked on its directory after each kill.

Rule 1. A machine may be busy: a start has 600 s, and so has an end. The longest start is told, and is no fault.
Rule 2. A start that ends without the ready line is a fault, and ends the campaign.
"""

import signal
from functools import partial
from pathlib import Path
from typing import Final, final

from ambermq.engine.snapshots.files import check_snapshot
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.errors import ToolError
from tests.crash.planted import planted_command

__all__ = ["READY_SECONDS", "CampaignBroker", "StartFailed", "verify_faults"]

READY_SECONDS: Final = 600.0


class StartFailed(Exception):
    """A broker did not start again after a kill."""


@final
class CampaignBroker(ChildBroker):
    """A broker that is started again and again on one directory."""

    def __init__(
        self, directory: Path, *, plant: str = "", config: Path | None = None, stderr_path: Path | None = None
    ) -> None:
        """`plant` names a fault of tests/crash/planted.py, `config` is the broker's configuration file."""
        super().__init__(
            directory,
            arguments=() if config is None else ("--config", str(config)),
            ready_seconds=READY_SECONDS,
            stop_seconds=READY_SECONDS,
            command_of=partial(planted_command, plant) if plant else child_command,
            stderr_path=stderr_path,
        )
        self.start_seconds_max = 0.0
        """The duration of the longest start."""

    def strike(self) -> None:
        """Send SIGKILL, from any thread, and return at once; `kill` waits for the end."""
        process = self._process
        if process is not None:
            process.send_signal(signal.SIGKILL)

    def restart(self) -> None:
        """Start the broker; raise StartFailed with its last log line if it ends without being ready."""
        try:
            seconds = self.start()
        except ToolError as error:
            raise StartFailed(f"start: {error.message}") from error
        self.start_seconds_max = max(self.start_seconds_max, seconds)


def verify_faults(directory: Path) -> list[str]:
    """Return what `ambermq log verify` finds in a log, in which no broker runs."""
    report = verify(str(directory), check_snapshot=partial(check_snapshot, DiskStorage(), str(directory)))
    faults = [] if report.damage is None else [f"log verify: {report.damage}"]
    if report.unknown_files:
        faults.append(f"log verify: unknown files {report.unknown_files}")
    return faults
