"""A broker in a process of its own, whose clock a test steps while it runs."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ambermq.tools.broker.child_broker import ChildBroker

__all__ = ["SteppedBroker"]

_SCRIPT: Final = Path(__file__).with_name("stepped_clock.py")


class SteppedBroker(ChildBroker):
    """`ambermq serve` as a child process, with a clock that `step_to` sets."""

    def __init__(self, directory: Path, *, arguments: Sequence[str] = ()) -> None:
        """As a child broker. The clock is the machine's at first."""
        super().__init__(directory, arguments=arguments)
        self._ahead_path = directory.with_name(f"{directory.name}.ahead")
        self.step_to(0)

    def step_to(self, ahead_s: int) -> None:
        """Set the clock to `ahead_s` seconds ahead of the machine's."""
        written = self._ahead_path.with_suffix(".new")
        written.write_text(str(ahead_s))
        written.replace(self._ahead_path)

    def launch(self) -> None:
        """Start the broker and return at once."""
        # -P keeps the directory of the tests out of the import path.
        command = [sys.executable, "-P", str(_SCRIPT), str(self._ahead_path)]
        serve = ["serve", "--data", str(self.directory), "--port", "0", *self._arguments]
        with self.stderr_path.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*command, *serve], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr
            )
