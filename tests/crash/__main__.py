"""`python -m tests.crash [--seed N] [--kills N] [--snapshots N]`: the long campaigns, under load and of snapshots.

The seed is printed, to try a failure again; a number of 0 leaves its campaign out.
"""

import argparse
import secrets
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.campaign import run_campaign
from tests.crash.snapshots import run_snapshot_campaign


def main() -> int:
    """Run the campaigns and print what they came to; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kills", type=int, default=None)
    parser.add_argument("--snapshots", type=int, default=None)
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    # Who names one campaign wants that one.
    is_alone = (options.kills is None) != (options.snapshots is None)
    kills = options.kills if options.kills is not None else 0 if is_alone else 200
    snapshots = options.snapshots if options.snapshots is not None else 0 if is_alone else 100
    print(f"seed {seed}, {kills} kills, {snapshots} kills of snapshots", flush=True)
    faults = _run_under_load(seed, kills) if kills else ()
    faults += _run_snapshots(seed, snapshots) if snapshots else ()
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


if __name__ == "__main__":
    sys.exit(main())
