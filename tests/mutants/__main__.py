"""`python -m tests.mutants [OPTION ...] [PATTERN ...]`: faults in the critical modules.

mutmut does the work, with the operators of this project (operators.py). A run that is stopped continues where it was.
After a change of a function only its mutants are tried again. PATTERN limits a run to the mutants with such a name:
'ambermq.engine.loop.*'.

    --sample N [--seed S]   try N mutants, chosen by chance; the seed is printed
    --survivors             try the survivors of the last run again, after new tests
    --no-run                print the results so far
    --output json           print them as JSON
    --workers N             mutants at a time; default: the processors

Rule 1. A mutant survives if no test fails. A test that does not end counts as one that fails.
Rule 2. Each survivor has a line in survivors.toml that says why it is no fault; else the run fails.
Rule 3. The run fails too if less than 90 % are killed.
"""

import argparse
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
from typing import Final

from tests.mutants.results import ROOT, Verdict, explanations, forget_survivors, verdicts

KILLED_MIN: Final = 0.9


def run(workers: int, patterns: list[str]) -> int:
    """Run mutmut to its end, with its progress on standard error; return its exit code."""
    command = [sys.executable, "tests/mutants/operators.py", "run", "--max-children", str(workers), *patterns]
    # Failed tests keep their files, and each mutant is a failed test.
    with tempfile.TemporaryDirectory(prefix="ambermq-mutants-") as directory:
        environment = os.environ | {"TESTS_HYPOTHESIS": "mutants", "TMPDIR": directory}
        return subprocess.run(command, cwd=ROOT, env=environment, stdout=sys.stderr, check=False).returncode


def sample(count: int, seed: int) -> list[str]:
    """Return the names of mutants chosen by chance, and print the seed."""
    command = [sys.executable, "tests/mutants/operators.py", "names"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    print(f"seed {seed}: {min(count, len(names))} of {len(names)} mutants", file=sys.stderr)
    return random.Random(seed).sample(sorted(names), min(count, len(names)))


def report(found: list[Verdict], explained: dict[str, dict[str, str]]) -> dict[str, object]:
    """Return the figures, and the survivors without an explanation."""
    survivors = [verdict for verdict in found if not verdict.is_killed]
    unexplained = [verdict for verdict in survivors if verdict.change not in explained.get(verdict.function, {})]
    return {
        "mutants": len(found),
        "killed": len(found) - len(survivors),
        "survivors_explained": len(survivors) - len(unexplained),
        "survivors_unexplained": [
            {"function": verdict.function, "change": verdict.change, "name": verdict.name} for verdict in unexplained
        ],
        "modules": {
            module: {
                "mutants": sum(verdict.module == module for verdict in found),
                "killed": sum(verdict.module == module and verdict.is_killed for verdict in found),
            }
            for module in sorted({verdict.module for verdict in found})
        },
    }


def print_table(figures: dict[str, object]) -> None:
    """Print the figures for a person."""
    for module, counts in figures["modules"].items():
        print(f"{counts['killed']:5} of {counts['mutants']:4}  {module}")
    for survivor in figures["survivors_unexplained"]:
        print(f"SURVIVED {survivor['name']}\n    {survivor['function']}: {survivor['change']}")
    share = 100 * figures["killed"] / figures["mutants"]
    print(f"{figures['mutants']} mutants, {figures['killed']} killed ({share:.1f} %), ", end="")
    print(f"{figures['survivors_explained']} survivors explained, {len(figures['survivors_unexplained'])} not")


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", choices=["table", "json"], default="table")
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=None, metavar="S")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    return parser.parse_args()


def main() -> int:
    """Run the mutants and print the figures; 1 where a survivor has no explanation or too many survive."""
    asked = options()
    if asked.survivors:
        forget_survivors()
    if not asked.no_run:
        names = asked.patterns
        if asked.sample:
            names = sample(asked.sample, secrets.randbits(32) if asked.seed is None else asked.seed)
        if code := run(asked.workers, names):
            return code
    figures = report(found := list(verdicts()), explanations())
    if asked.output == "json":
        print(json.dumps(figures, indent=2))
    else:
        print_table(figures)
    is_enough = sum(verdict.is_killed for verdict in found) >= KILLED_MIN * len(found)
    return 0 if is_enough and not figures["survivors_unexplained"] else 1


if __name__ == "__main__":
    sys.exit(main())
