"""The seeds of every target run without a finding, and a finding is told with the command that repeats it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz import campaign
from tests.fuzz.campaign import Outcome, read_output, replay
from tests.fuzz.target import BoundExceeded, Target, run_input
from tests.fuzz.targets import TARGET_NAMES, load_target

_OUTPUT = """INFO: Running with entropic power schedule (0xFF, 100).
#2\tINITED cov: 310 ft: 320 corp: 1/1b exec/s: 0 rss: 80Mb
#512\tNEW    cov: 344 ft: 410 corp: 9/90b lim: 8 exec/s: 0 rss: 81Mb L: 8/8 MS: 2 CopyPart-
 === Uncaught Python exception: ===
ValueError: not enough values
Traceback (most recent call last):
==7== ERROR: libFuzzer: fuzz target exited
artifact_prefix='build/'; Test unit written to build/crash-1
stat::number_of_executed_units: 700
"""


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_the_seeds_have_no_finding(name: str) -> None:
    """Within the bounds of time and memory; without atheris."""
    assert replay(name)


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_seeds_are_the_same_each_time(name: str) -> None:
    """So that a run of `make test` is that of the last one. A word has no quotes around it."""
    target = load_target(name)
    assert list(target.seeds()) == list(target.seeds())
    assert all(target.words)
    assert all(isinstance(word, bytes) and len(word) < 64 for word in target.words)


def test_an_input_beyond_a_bound_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of time, and of memory that the process never had before."""
    monkeypatch.setattr("tests.fuzz.target.SECONDS_MAX", 0.001)
    with pytest.raises(BoundExceeded, match="CPU time"):
        run_input(Target(lambda _: _spin(), list), b"x")
    peaks = iter((0, 1 << 30))
    monkeypatch.setattr("tests.fuzz.target.SECONDS_MAX", 60)
    monkeypatch.setattr("tests.fuzz.target._peak_bytes", lambda: next(peaks))
    with pytest.raises(BoundExceeded, match="1024 MiB"):
        run_input(Target(lambda _: None, list), b"x")


def _spin() -> None:
    sum(range(1_000_000))


def test_the_output_of_the_fuzzer_is_read() -> None:
    """Executions, coverage before and after, the file of the finding, and what was raised."""
    assert read_output(_OUTPUT) == Outcome(700, (310, 344), Path("build/crash-1"), "ValueError: not enough values")
    assert read_output("") == Outcome()


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Target:
    """A target with a fault."""

    def run(data: bytes) -> None:
        assert data != b"bad", "planted"

    target = Target(run, lambda: [b"good", b"bad"])
    monkeypatch.setattr(campaign, "load_target", lambda _: target)
    monkeypatch.setattr(command, "load_target", lambda _: target)
    return target


def test_a_finding_is_repeated_by_its_file(planted: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same exception; an input without a finding exits 0."""
    for data, is_bad in ((b"good", False), (b"bad", True)):
        (tmp_path / "input").write_bytes(data)
        arguments = ["--target", "values", "--repeat", str(tmp_path / "input")]
        if is_bad:
            with pytest.raises(AssertionError, match="planted"):
                command.main(arguments)
        else:
            assert command.main(arguments) == 0
    with pytest.raises(AssertionError, match="planted") as raised:
        replay("values")
    assert "seed 2: b'bad'" in raised.value.__notes__[0]
    assert command.main(["--repeat", str(tmp_path / "input")]) == 2


def test_a_finding_is_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """With the line that repeats it; the parts behind it run all the same."""
    crash = command.ROOT / "build" / "fuzz" / "values" / "crash-1"
    parts: dict[str, Callable[[], Outcome]] = {
        "values": lambda: Outcome(700, (310, 344), crash, "ValueError: x"),
        "frames": lambda: Outcome(1, (2, 3)),
    }
    assert command.run_parts(parts) == 1
    output = capsys.readouterr().out
    assert "310 +34" in output
    assert "-m tests.fuzz --target values --repeat build/fuzz/values/crash-1" in output
    assert "frames" in output
    assert "1 findings" in output
    assert command.run_parts({"frames": parts["frames"]}) == 0


def test_without_atheris_the_property_tests_have_the_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the run says so."""
    shares: list[float] = []

    def properties(seconds: float) -> Outcome:
        shares.append(seconds)
        return Outcome(3)

    monkeypatch.setattr(command, "has_atheris", lambda: False)
    monkeypatch.setattr(command, "fuzz_properties", properties)
    assert command.main(["--minutes", "2"]) == 0
    assert shares == [120.0]
    assert "atheris is not installed" in capsys.readouterr().out
