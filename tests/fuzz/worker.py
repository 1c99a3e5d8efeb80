"""`python -m tests.fuzz.worker TARGET [OPTION OF LIBFUZZER]...`: fuzz one target in this process, guided by coverage.

atheris instruments what the target imports, so no module of ours is imported before it. The corpus is in the first
directory that the options name.
"""

import resource
import sys
from typing import Final

import atheris

_INSTRUMENTED: Final = ["ambermq", "h11", "scramp", "tomllib", "wsproto"]
"""lark is left out: its tables have no branches of their own, and it would be four times as slow."""
_ADDRESS_SPACE_MAX: Final = 8 << 30
"""Beyond it an allocation fails with MemoryError, which is a finding; `Target` has a lower bound for one input."""
_SLOWNESS: Final = 8.0
"""How much slower the instrumented code may be: it calls atheris at each branch and comparison."""


def main() -> None:
    """Fuzz until the time is over or an input is a finding; libFuzzer ends the process."""
    name = sys.argv.pop(1)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE_MAX, _ADDRESS_SPACE_MAX))
    with atheris.instrument_imports(include=_INSTRUMENTED):
        from tests.fuzz.target import run_input
        from tests.fuzz.targets import load_target

        target = load_target(name)
    atheris.Setup(sys.argv, lambda data: run_input(target, data, slowness=_SLOWNESS))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
