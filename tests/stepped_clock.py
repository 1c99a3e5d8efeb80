"""`ambermq` in a process whose time of day is ahead of the machine's by the seconds in a file: `FILE serve --data DIR`.

Rule 1. The file is read at each reading of the time of day, so a test steps the clock of a broker that runs.
Rule 2. Only the time of day is replaced, before `ambermq` is imported. The clocks of elapsed time are the machine's.
"""

import sys
import time
from importlib import import_module
from pathlib import Path

__all__: list[str] = []

_NS_PER_S = 1_000_000_000


def _replace_time_of_day(path: Path) -> None:
    machine_ns = time.time_ns

    def time_ns() -> int:
        return machine_ns() + int(path.read_text()) * _NS_PER_S

    time.time_ns = time_ns
    time.time = lambda: time_ns() / _NS_PER_S


if __name__ == "__main__":
    _replace_time_of_day(Path(sys.argv[1]))
    import_module("ambermq.tools.cli").main(sys.argv[2:], prog_name="ambermq")
