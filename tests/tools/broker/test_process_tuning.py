"""What the broker's process is set to."""

import gc
import json
import resource
import sys
from collections.abc import Iterator

import pytest
import structlog

from ambermq.log.format import checksum
from ambermq.tools.broker import process_tuning as process
from ambermq.tools.broker.vhost_store import _Progress


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Other tests see the interpreter as it was."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    structlog.reset_defaults()


def test_the_soft_limit_of_open_files_becomes_the_hard_one() -> None:
    """A connection is a file; raising twice changes nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        assert process.raise_open_files() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        assert process.raise_open_files() == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_threads_take_short_turns_and_collections_are_rare() -> None:
    """0.5 ms, and a full collection after many small ones."""
    process.tune_interpreter()
    assert sys.getswitchinterval() == pytest.approx(0.0005)
    young, middle, _ = gc.get_threshold()
    assert young > 700
    assert young * (middle + 1) <= 10_000, "a collection of the middle generation visits so many, at 0.5 us each"


def test_what_recovery_built_is_out_of_the_collectors_way() -> None:
    """Everything alive after recovery is frozen."""
    process.freeze_heap()
    assert gc.get_freeze_count() > 0


def test_log_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each with the time in UTC, none below the level, none on standard output."""
    process.configure_logging("info", "pretty")
    structlog.get_logger().debug("hidden")
    structlog.get_logger().info("shown", port=1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("Z [info] shown port=1\n")
    assert "hidden" not in captured.err


@pytest.mark.parametrize("is_terminal", [True, False])
def test_lines_are_json_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    """The default is for people on a terminal alone."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    process.configure_logging("info")
    structlog.get_logger().info("shown", port=1)
    line = capsys.readouterr().err
    assert line.startswith("{") != is_terminal
    assert is_terminal or json.loads(line)["port"] == 1


def test_a_slow_checksum_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing when it is fast, a warning with what to do when it is not."""
    process.configure_logging("info")
    monkeypatch.setattr(checksum, "IS_FAST", True)
    process.warn_of_slowness()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(checksum, "IS_FAST", False)
    process.warn_of_slowness()
    assert "slow CRC-32C" in capsys.readouterr().err


def test_a_long_recovery_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at every batch, but now and then, in per cent."""
    now = 0.0
    monkeypatch.setattr("ambermq.tools.broker.vhost_store.time.monotonic", lambda: now)
    process.configure_logging("info", "pretty")
    progress = _Progress("default", "d")
    progress(10, 100)
    assert capsys.readouterr().err == ""
    now = 1.0
    progress(50, 100)
    progress(60, 100)
    assert [line.split("] ")[1] for line in capsys.readouterr().err.splitlines()] == [
        "recovering bytes=50 data=d percent=50 total_bytes=100 vhost=default"
    ]
