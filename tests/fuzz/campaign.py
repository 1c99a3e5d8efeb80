"""The parts of a run of the fuzzer: each is a child process with its share of the time.

    build/fuzz/TARGET/seeds       the seeds of the target, written anew by each run
    build/fuzz/TARGET/corpus      inputs that found new coverage; they stay for the next run
    build/fuzz/TARGET/words       the dictionary
    build/fuzz/TARGET/output      what libFuzzer printed
    build/fuzz/TARGET/crash-...   the input of a finding

Rule 1. A finding ends its target, not the run.
Rule 2. Without atheris the property tests have the whole time, with other examples in each round.
"""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.fuzz.target import BYTES_MAX, run_input
from tests.fuzz.targets import load_target
from tests.signposts import ROOT

__all__ = ["PLACE", "PROPERTIES", "Outcome", "fuzz_properties", "fuzz_target", "has_atheris", "read_output", "replay"]

PLACE: Final = ROOT / "build" / "fuzz"
PROPERTIES: Final = "properties"
"""The part that is no target: the property tests of all packages."""
_HANG_SECONDS: Final = 25
"""The wall time after which libFuzzer ends an input that does not return; slower machines may stop for seconds."""
_RESIDENT_MIB_MAX: Final = 2048
"""The memory of the process with its corpus."""
_START_SECONDS: Final = 120
"""The time of a child beyond its share: imports with instrumentation, and the last input."""
_DONE: Final = re.compile(r"^#(\d+)\s+(?:INITED|NEW|REDUCE|pulse|RELOAD|DONE)\s+cov: (\d+) ", re.MULTILINE)
_EXECUTED: Final = re.compile(r"^stat::number_of_executed_units:\s+(\d+)", re.MULTILINE)
_CRASH: Final = re.compile(r"Test unit written to (\S+)")
_RAISED: Final = re.compile(
    r"^(?:[\w.]+(?:Error|Exception|Exceeded|Interrupt|Exit|Warning)\b.*|==\d+== ERROR.*)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a part of the run came to."""

    executions: int = 0
    """The inputs that were run; of the property tests the rounds."""
    coverage: tuple[int, int] = (0, 0)
    """The edges that the seeds and the corpus reach, and those at the end."""
    crash: Path | None = None
    """The input of a finding."""
    reason: str = ""
    """What the finding is; empty without one."""


def has_atheris() -> bool:
    """Return whether atheris is installed: it has wheels for some interpreters alone."""
    return find_spec("atheris") is not None


def fuzz_target(name: str, seconds: float, *, place: Path = PLACE, seed: int = 0) -> Outcome:
    """Fuzz a target for a time. `seed` is that of libFuzzer; 0 draws one."""
    directory = _prepared(name, place)
    command = [
        *(sys.executable, "-m", "tests.fuzz.worker", name),
        *(f"-max_total_time={max(1, round(seconds))}", f"-max_len={BYTES_MAX}", f"-seed={seed}"),
        *(f"-timeout={_HANG_SECONDS}", f"-rss_limit_mb={_RESIDENT_MIB_MAX}", "-print_final_stats=1"),
        *(f"-dict={directory / 'words'}", f"-artifact_prefix={directory}/"),
        *(str(directory / "corpus"), str(directory / "seeds")),
    ]
    output = directory / "output"
    with output.open("wb") as stream:
        try:
            done = subprocess.run(
                command, cwd=ROOT, stdout=stream, stderr=stream, check=False, timeout=seconds + _START_SECONDS
            )
        except subprocess.TimeoutExpired:
            return Outcome(reason=f"the process did not end {_START_SECONDS} s after its time; see {output}")
    found = read_output(output.read_text(errors="replace"))
    if done.returncode and not found.reason:
        return Outcome(found.executions, found.coverage, found.crash, f"exit code {done.returncode}; see {output}")
    return found if done.returncode else Outcome(found.executions, found.coverage)


def _prepared(name: str, place: Path) -> Path:
    """Write seeds and dictionary of a target, and return its directory."""
    directory, target = place / name, load_target(name)
    for part in ("corpus", "seeds"):
        (directory / part).mkdir(parents=True, exist_ok=True)
    for old in (directory / "seeds").iterdir():
        old.unlink()
    for seed in target.seeds():
        (directory / "seeds" / sha1(seed).hexdigest()).write_bytes(seed)
    lines = ('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in target.words)
    (directory / "words").write_text("".join(lines))
    return directory


def read_output(text: str) -> Outcome:
    """Return what the output of libFuzzer says."""
    lines = [(int(count), int(edges)) for count, edges in _DONE.findall(text)]
    executed, crash, raised = _EXECUTED.findall(text), _CRASH.findall(text), _RAISED.findall(text)
    executions = int(executed[-1]) if executed else lines[-1][0] if lines else 0
    coverage = (lines[0][1], max(edges for _, edges in lines)) if lines else (0, 0)
    reason = raised[0].strip()[:200] if raised else "a finding" if crash else ""
    return Outcome(executions, coverage, Path(crash[-1]) if crash else None, reason)


def replay(name: str) -> int:
    """Run the seeds of a target in this process, and return their number. Raises the first finding."""
    target, count = load_target(name), 0
    for count, seed in enumerate(target.seeds(), 1):
        try:
            run_input(target, seed)
        except BaseException as error:
            error.add_note(f"target {name}, seed {count}: {seed[:200]!r}")
            raise
    return count


def fuzz_properties(seconds: float) -> Outcome:
    """Run the property tests with other examples, round after round; the round that is cut off does not count."""
    end, rounds = time.monotonic() + seconds, 0
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "hypothesis", "tests"]
    variables = os.environ | {"TESTS_HYPOTHESIS": "fuzz"}
    while (left := end - time.monotonic()) > 0:
        child = subprocess.Popen(command, cwd=ROOT, env=variables, start_new_session=True)
        try:
            code = child.wait(timeout=left)
        except subprocess.TimeoutExpired:
            _end(child)
            break
        if code:
            return Outcome(
                rounds, reason=f"a property test failed; the line that repeats it is above (exit code {code})"
            )
        rounds += 1
    return Outcome(rounds)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End pytest with its workers, which are its own group of processes."""
    os.killpg(child.pid, 15)
    try:
        child.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.wait()
