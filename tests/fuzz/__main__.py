"""`python -m tests.fuzz [--minutes N] [--target NAME]...`: fuzz every parser for its share of the time.

Each target runs in a child process. A line a target says how many inputs ran and how many new edges of the code they
reached. A finding is printed with its file and the command that repeats it, and the exit code is 1.
"""

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.fuzz.campaign import PLACE, PROPERTIES, Outcome, fuzz_properties, fuzz_target, has_atheris, replay
from tests.fuzz.target import run_input
from tests.fuzz.targets import TARGET_NAMES, load_target
from tests.signposts import ROOT

__all__ = ["main", "run_parts"]

_NAMES: Final = (*TARGET_NAMES, PROPERTIES)
_HEAD: Final = f"{'target':14} {'executions':>12} {'edges':>13} {'seconds':>8}  finding"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz, replay or repeat; return 1 for a finding."""
    options = _parser().parse_args(arguments)
    if options.repeat is not None:
        if len(options.target) != 1 or options.target == [PROPERTIES]:
            print("--repeat needs the name of one target", file=sys.stderr)
            return 2
        run_input(load_target(options.target[0]), options.repeat.read_bytes())
        print("no finding")
        return 0
    if options.replay:
        for name in options.target or TARGET_NAMES:
            if name != PROPERTIES:
                print(f"{name:14} {replay(name):12,} seeds")
        return 0
    return _fuzz(options.target or list(_NAMES), 60 * options.minutes, options.seed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="minutes for all targets together")
    parser.add_argument("--target", action="append", choices=_NAMES, default=[], help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the fuzzer; 0 draws one")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="run one input of a target, without atheris")
    parser.add_argument("--replay", action="store_true", help="run the seeds alone, without atheris")
    return parser


def _fuzz(names: list[str], seconds: float, seed: int) -> int:
    if not has_atheris():
        print(
            f"atheris is not installed for Python {platform.python_version()} on {platform.machine()}: the property "
            "tests have all of the time (`pip install -e '.[fuzz]'` installs it where there is a wheel)",
            flush=True,
        )
        names = [PROPERTIES]
    share = seconds / len(names)
    parts = {
        name: partial(fuzz_properties, share) if name == PROPERTIES else partial(fuzz_target, name, share, seed=seed)
        for name in names
    }
    return run_parts(parts)


def run_parts(parts: dict[str, Callable[[], Outcome]]) -> int:
    """Run parts one after the other, and print a line for each; return 1 if one has a finding."""
    print(_HEAD, flush=True)
    findings = 0
    for name, part in parts.items():
        began = time.monotonic()
        outcome = part()
        before, after = outcome.coverage
        edges = "" if name == PROPERTIES else f"{before:,} +{after - before:,}"
        seconds = time.monotonic() - began
        print(f"{name:14} {outcome.executions:12,} {edges:>13} {seconds:8.0f}  {outcome.reason or 'none'}", flush=True)
        if outcome.crash is not None:
            file = _shown(outcome.crash)
            print(f"{'':14} file: {file}")
            print(f"{'':14} repeat: {_shown(Path(sys.executable))} -m tests.fuzz --target {name} --repeat {file}")
        findings += bool(outcome.reason)
    shown = f"outputs and corpora are in {_shown(PLACE)}"
    print(f"{findings} findings; {shown}" if findings else f"no finding; {shown}", flush=True)
    return 1 if findings else 0


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main())
