"""`python -m tests.crash [--seed N] [--kills N]`: the long campaign. Its seed is printed, to try a failure again."""

import argparse
import secrets
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.campaign import run_campaign


def main() -> int:
    """Run the campaign and print what it came to; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kills", type=int, default=200)
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"seed {seed}, {options.kills} kills", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ambermq-crash-") as directory:
        result = run_campaign(Path(directory), seed=seed, kills=options.kills)
    print(
        f"{result.kills} kills under load, {result.killed_recovering} more while recovering, "
        f"{time.monotonic() - began:.0f} s"
    )
    print(f"{result.sent} sent, {result.accepted} accepted, {result.arrived} arrived, {result.repeated} repeated")
    for fault in result.faults:
        print(f"FAULT {fault}")
    print("every promise was kept" if not result.faults else f"seed {seed} broke {len(result.faults)} promises")
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
