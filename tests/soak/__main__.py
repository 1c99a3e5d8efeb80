"""`python -m tests.soak [--minutes N] [--seed N] [--record FILE]`: an hour of mixed load with faults, and a verdict.

A table has one line a minute. `--record` writes every sample and latency to a JSON file. The last line says whether
every promise was kept and every bar holds.
"""

import argparse
import json
import secrets
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median

from tests.soak.soak import Record, run_soak
from tests.soak.verdict import percentile

_MIB = 1 << 20


def main() -> int:
    """Run the soak and print what it came to; 1 when a promise was broken or a bar does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--record", type=Path, default=None, metavar="FILE")
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"seed {seed}, {options.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="ambermq-soak-", ignore_cleanup_errors=True) as directory:
        record = run_soak(Path(directory), seed=seed, minutes=options.minutes)
    _print_minutes(record)
    code = _print_verdict(seed, record)
    if options.record is not None:
        options.record.write_text(json_of(record))
    return code


def json_of(record: Record) -> str:
    """Return a record as JSON: each sample and latency, the rounds, the verdict and the faults."""
    columns = {name: getattr(record, name) for name in ("samples", "latencies", "findings")}
    rows = {name: [asdict(one) for one in column] for name, column in columns.items()}
    plain = ("rounds", "interrupted", "life_s", "accepted", "faults")
    return json.dumps({**rows, **{name: getattr(record, name) for name in plain}})


def _print_minutes(record: Record) -> None:
    head = "minute  RSS MiB  descriptors  threads  disk MiB   p50 ms   p99 ms   max ms"
    print(f"{head}  without a core p99 ms  disk p50, p99 ms")
    for minute in range(int(record.samples[-1].at_s // 60) + 1 if record.samples else 0):
        samples = [one for one in record.samples if one.at_s // 60 == minute]
        latencies = [one for one in record.latencies if one.at_s // 60 == minute]
        values, machine = [one.milliseconds for one in latencies], [one.machine_ms for one in latencies]
        waiting = [one.waiting_ms for one in latencies]
        if samples and values:
            print(
                f"{minute:6} {max(one.rss_bytes for one in samples) / _MIB:8.1f} "
                f"{max(one.descriptors for one in samples):12} {max(one.threads for one in samples):8} "
                f"{max(one.disk_bytes for one in samples) / _MIB:9.1f} {median(values):8.1f} "
                f"{percentile(values, 0.99):8.1f} {max(values):8.1f} "
                f"{percentile(waiting, 0.99):22.1f} {median(machine):9.1f} {percentile(machine, 0.99):7.1f}"
            )


def _print_verdict(seed: int, record: Record) -> int:
    print(", ".join(f"{count} {name}" for name, count in sorted(record.rounds.items())))
    print(f"{record.accepted} messages accepted; {record.interrupted.total()} rounds interrupted")
    for finding in record.findings:
        print(f"{'holds ' if finding.holds else 'BROKEN'} {finding.name}: {finding.figure}")
    for fault in record.faults:
        print(f"FAULT {fault}")
    broken = sum(not finding.holds for finding in record.findings) + len(record.faults)
    print("every promise was kept, and every bar holds" if not broken else f"seed {seed} broke {broken} of them")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
