"""`python -m tests.interop.jms_suite`: the JMS conformance tests of the JORAM project, by Qpid JMS.

It needs Java and Maven. Exit code 0: all tests passed, or a program is not on the path; 1: one failed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.child_command import child_command
from tests.interop.matrix.client import BUILD, BuildFailed, Client

__all__ = ["main"]

_HERE: Final = Path(__file__).parent
_MADE: Final = BUILD / "jms_suite"
_SECONDS_MAX: Final = 900.0
_SUITE: Final = Client(
    name="jms-suite",
    title="JMS conformance tests",
    version=lambda: "1.0",
    tools=("java", "mvn"),
    builds=(("mvn", "--quiet", "--batch-mode", f"-Dmade.directory={_MADE}", "package"),),
    command=("java", "-cp", f"{_MADE / 'classes'}:{_MADE / 'lib'}/*", "suite.Main"),
    place=_HERE,
)


def main() -> int:
    """Run the tests, print those that fail and a count, and return the exit code."""
    missing = _SUITE.missing()
    if missing:
        print(f"not run: not on the path: {', '.join(missing)}")
        return 0
    try:
        _SUITE.build()
    except BuildFailed as failed:
        print(f"not built: {failed}")
        return 1
    with tempfile.TemporaryDirectory(prefix="ambermq-jms-") as place:
        broker = ChildBroker(Path(place) / "data")
        broker.start()
        try:
            return subprocess.run(
                [*_SUITE.command, broker.url, *child_command()], cwd=_HERE, timeout=_SECONDS_MAX, check=False
            ).returncode
        finally:
            broker.kill()


if __name__ == "__main__":
    sys.exit(main())
