"""`python -m tests.crash [--seed N] [--kills N] [--snapshots N] [--compactions N]`: the long campaigns.

The seed is printed, to try a failure again; a number of 0 leaves its campaign out.
"""

import argparse
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.crash.campaign import run_campaign
from tests.crash.compaction import KINDS, run_compaction_campaign
from tests.crash.snapshots import run_snapshot_campaign

_KILLS: Final = {"kills": 200, "snapshots": 100, "compactions": 50}
"""The campaigns, and how many kills each has."""


def main() -> int:
    """Run the campaigns and print what they came to; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seed", type=int, default=None)
    for name in _KILLS:
        parser.add_argument(f"--{name}", type=int, default=None, metavar="N")
    options = vars(parser.parse_args())
    seed = secrets.randbits(32) if options["seed"] is None else options["seed"]
    # Who names some campaigns wants those.
    is_chosen = any(options[name] is not None for name in _KILLS)
    kills = {name: options[name] or 0 if is_chosen else count for name, count in _KILLS.items()}
    print(f"seed {seed}, " + ", ".join(f"{count} {name}" for name, count in kills.items()), flush=True)
    faults = _run_under_load(seed, kills["kills"]) if kills["kills"] else ()
    faults += _run_snapshots(seed, kills["snapshots"]) if kills["snapshots"] else ()
    faults += _run_compactions(seed, kills["compactions"]) if kills["compactions"] else ()
    for fault in faults:
        print(f"FAULT {fault}")
    print("every promise was kept" if not faults else f"seed {seed} broke {len(faults)} promises")
    return 1 if faults else 0


def _run_under_load(seed: int, kills: int) -> tuple[str, ...]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ambermq-crash-") as directory:
        result = run_campaign(Path(directory), seed=seed, kills=kills)
    print(
        f"{result.kills} kills under load, {result.killed_recovering} more while recovering, "
        f"{time.monotonic() - began:.0f} s"
    )
    print(f"{result.sent} sent, {result.accepted} accepted, {result.arrived} arrived, {result.repeated} repeated")
    print(
        f"{result.updated} updates acknowledged, looked at {result.looks} times after a kill; log verified "
        f"{result.verified} times, longest start {result.start_seconds_max:.1f} s"
    )
    return result.faults


def _run_snapshots(seed: int, kills: int) -> tuple[str, ...]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ambermq-crash-") as directory:
        result = run_snapshot_campaign(Path(directory), seed=seed, kills=kills)
    print(
        f"{result.kills} kills while snapshots were taken, exported and restored, {result.cut_short} of them in time, "
        f"{time.monotonic() - began:.0f} s"
    )
    return tuple(result.faults)


def _run_compactions(seed: int, kills: int) -> tuple[str, ...]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ambermq-crash-") as directory:
        kinds = [KINDS[number % len(KINDS)] for number in range(kills)]
        result = run_compaction_campaign(Path(directory), seed=seed, kinds=kinds)
    print(
        f"{result.kills} kills while Spark compacted, {result.cut_short} of them in time, {result.at_commit} during "
        f"the commit, {time.monotonic() - began:.0f} s"
    )
    return tuple(result.faults)


if __name__ == "__main__":
    sys.exit(main())
