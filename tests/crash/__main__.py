"""`python -m tests.crash [--seed N] [--kills N] [--snapshots N] …`: the long campaigns.

The options are in _COUNTS: a number for each campaign. Where one is given, the campaigns without a number are left out.
The seed is printed, to try a failure again; a number of 0 leaves its campaign out. `--cuts` is for each file system.
The last line says which parts ran, which were skipped and why, and whether every promise was kept.
"""

import argparse
import secrets
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from ambermq.tools.spark.java import find_java
from ambermq.tools.spark.session import check_packages
from ambermq.tools.terminal.errors import ToolError
from tests.crash.campaign import run_campaign
from tests.crash.campaigns.compaction import rounds_of, run_compaction_campaign
from tests.crash.campaigns.file_system import KINDS, why_not
from tests.crash.campaigns.mixes import run_mixes
from tests.crash.campaigns.plants import PLANTED, run_plants
from tests.crash.campaigns.power_cut import run_power_campaign
from tests.crash.campaigns.snapshots import run_snapshot_campaign
from tests.crash.queue_campaigns.holdings import HELD, run_holding_campaign
from tests.crash.queue_campaigns.jobs import run_job_campaign
from tests.crash.queue_campaigns.queues import run_queue_campaign
from tests.crash.queue_campaigns.resumptions import run_resumption_campaign
from tests.crash.queue_campaigns.timers import run_timer_campaign

_COUNTS: Final = {
    "kills": 200,
    "snapshots": 100,
    "compactions": 50,
    "cuts": 50,
    "mixes": 2000,
    "queues": 60,
    "resumptions": 60,
    "groups": 30,
    "locks": 30,
    "jobs": 30,
    "timers": 30,
    "plants": len(PLANTED),
}
"""The campaigns, and how many kills or cuts each has."""

_MAP_BYTES: Final = 32 << 10
_SHORT_MAP_BYTES: Final = 300
"""Short maps are cut, and links attach again and again until they are complete."""

Part = tuple[str, Callable[[], str], Callable[[Path], tuple[str, ...]]]
"""The name of a part, why it cannot run here, and the campaign, which prints its figures and returns its faults."""


def main() -> int:
    """Run the campaigns and print what they came to; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seed", type=int, default=None)
    for name in _COUNTS:
        parser.add_argument(f"--{name}", type=int, default=None, metavar="N")
    options = vars(parser.parse_args())
    seed = secrets.randbits(32) if options["seed"] is None else options["seed"]
    # Who names some campaigns wants those.
    is_chosen = any(options[name] is not None for name in _COUNTS)
    counts = {name: options[name] or 0 if is_chosen else count for name, count in _COUNTS.items()}
    print(f"seed {seed}, " + ", ".join(f"{count} {name}" for name, count in counts.items()), flush=True)
    return run_parts(seed, _parts(seed, counts))


def _parts(seed: int, counts: dict[str, int]) -> list[Part]:
    """Return the parts that are asked for."""
    kills, snapshots, compactions, cuts, mixes, queues, *_ = counts.values()
    parts: list[Part] = []
    if kills:
        parts.append((f"{kills} kills under load", str, partial(_run_under_load, seed, kills)))
    if snapshots:
        parts.append((f"{snapshots} kills around snapshots", str, partial(_run_snapshots, seed, snapshots)))
    if compactions:
        parts.append((f"{compactions} kills in compactions", _no_spark, partial(_run_compactions, seed, compactions)))
    if cuts:
        parts += [
            (f"{cuts} power cuts on {kind}", partial(why_not, kind), partial(_run_cuts, seed, cuts, kind))
            for kind in KINDS
        ]
    if mixes:
        parts.append((f"{mixes} mixes of queue settings", str, lambda _: run_mixes(seed=seed, mixes=mixes)))
    if queues:
        parts.append((f"{queues} kills in commands on queues", str, partial(_run_queues, seed, queues)))
    for name, map_bytes in (("resumptions", _MAP_BYTES), ("resumptions", _SHORT_MAP_BYTES)):
        if count := counts[name] // 2:
            what = f"{count} kills of resumed links with unsettled maps of {map_bytes} bytes"
            parts.append((what, str, partial(_run_resumptions, seed, count, map_bytes)))
    for name in HELD:
        if counts[name]:
            parts.append((f"{counts[name]} kills with {name}", str, partial(_run_holdings, seed, counts[name], name)))
    if jobs := counts["jobs"]:
        parts.append((f"{jobs} kills in long commands", str, partial(_run_jobs, seed, jobs)))
    if timers := counts["timers"]:
        parts.append((f"{timers} kills while time passes", str, partial(_run_timers, seed, timers)))
    if plants := counts["plants"]:
        parts.append((f"{plants} planted faults", str, partial(run_plants, seed=seed, plants=plants)))
    return parts


def run_parts(seed: int, parts: list[Part]) -> int:
    """Run each part that can run here; print the faults, then the line with what ran."""
    ran, skipped, faults = list[str](), list[str](), list[str]()
    for name, why, run in parts:
        reason = why()
        if reason:
            print(f"SKIPPED {name}: {reason}", flush=True)
            skipped.append(f"{name} ({reason})")
            continue
        with tempfile.TemporaryDirectory(prefix="ambermq-crash-", ignore_cleanup_errors=True) as directory:
            faults += _faults_of(name, partial(run, Path(directory)))
        ran.append(name)
    for fault in faults:
        print(f"FAULT {fault}")
    outcome = f"seed {seed} broke {len(faults)} promises" if faults else "every promise was kept"
    print(f"{outcome}; ran: {', '.join(ran) or 'nothing'}; skipped: {', '.join(skipped) or 'nothing'}", flush=True)
    return 1 if faults else 0


def _faults_of(name: str, run: Callable[[], tuple[str, ...]]) -> list[str]:
    """Run a part; its own failure is a fault, and the other parts run all the same."""
    began = time.monotonic()
    try:
        faults = [f"{name}: {fault}" for fault in run()]
    except Exception as error:  # noqa: BLE001 - the trace is printed
        traceback.print_exc(file=sys.stdout)
        faults = [f"{name}: the campaign failed: {error!r}"]
    print(f"{name}: {time.monotonic() - began:.0f} s, {len(faults)} faults", flush=True)
    return faults


def _run_under_load(seed: int, kills: int, directory: Path) -> tuple[str, ...]:
    result = run_campaign(directory, seed=seed, kills=kills)
    print(f"{result.kills} kills under load, {result.killed_recovering} more while recovering")
    print(result.figures)
    return result.faults


def _run_snapshots(seed: int, kills: int, directory: Path) -> tuple[str, ...]:
    result = run_snapshot_campaign(directory, seed=seed, kills=kills)
    print(f"{result.kills} kills while snapshots were taken, exported and restored, {result.cut_short} of them in time")
    return tuple(result.faults)


def _run_compactions(seed: int, kills: int, directory: Path) -> tuple[str, ...]:
    result = run_compaction_campaign(directory, seed=seed, rounds=rounds_of(kills))
    stages = ", ".join(f"{count} in {stage}" for stage, count in result.stages.items())
    print(f"{result.kills} kills of compactions by Spark that were under way: {stages}")
    print(f"{result.cut_short} did not come to their end; {result.ended_before} others ended before their kill")
    return tuple(result.faults)


def _run_cuts(seed: int, cuts: int, kind: str, directory: Path) -> tuple[str, ...]:
    found = run_power_campaign(directory, kind, seed=seed, cuts=cuts)
    codes = ", ".join(f"{count} times {code}" for code, count in found.exit_codes.items())
    print(f"{cuts} power cuts under load, {found.result.killed_recovering} more while recovering; exit codes: {codes}")
    print(found.result.figures)
    return found.result.faults


def _run_queues(seed: int, kills: int, directory: Path) -> tuple[str, ...]:
    result = run_queue_campaign(directory, seed=seed, kills=kills)
    done = ", ".join(f"{count} in {kind}" for kind, count in sorted(result.kinds.items()))
    print(f"{kills} kills in commands on queues: {done}; {result.cut_short} commands were cut short")
    return tuple(result.faults)


def _run_resumptions(seed: int, kills: int, map_bytes: int, directory: Path) -> tuple[str, ...]:
    result = run_resumption_campaign(directory, seed=seed, kills=kills, map_bytes=map_bytes)
    print(result.text)
    return tuple(result.faults)


def _run_holdings(seed: int, kills: int, kind: str, directory: Path) -> tuple[str, ...]:
    result = run_holding_campaign(directory, kind, seed=seed, kills=kills)
    print(result.text)
    return tuple(result.faults)


def _run_jobs(seed: int, kills: int, directory: Path) -> tuple[str, ...]:
    result = run_job_campaign(directory, seed=seed, kills=kills)
    print(result.text)
    return tuple(result.faults)


def _run_timers(seed: int, kills: int, directory: Path) -> tuple[str, ...]:
    result = run_timer_campaign(directory, seed=seed, kills=kills)
    print(result.text)
    return tuple(result.faults)


def _no_spark() -> str:
    """Return why Spark cannot run here; empty if it can."""
    try:
        check_packages("pyspark", "pyarrow", "numpy")
        with tempfile.TemporaryDirectory() as scratch:
            find_java(Path(scratch))
    except ToolError as error:
        return error.message
    return ""


if __name__ == "__main__":
    sys.exit(main())
