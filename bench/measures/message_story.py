"""The time of `ambermq history message`, as a new process, in a log of ten million events.

The log is that of a stopped broker: sealed segments have indexes, the active segment has none. The messages are chosen
at random from the whole log; one more query has an id that no message has.
"""

import json
import random
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.exit_codes import ExitCode
from bench.brokers.broker import Broker
from bench.load import LoadFailed, Window
from bench.measures.story_log import id_of, write_story_log

__all__ = ["measure_story"]

_EVENTS: Final = 10_000_000
_QUERIES: Final = 9


def measure_story(broker: Broker, _window: Window, directory: Path) -> dict[str, float]:
    """Write the log; return the seconds of a query: median, longest, and for an unknown id."""
    broker.kill()
    data = directory / "story"
    message_count = write_story_log(data, _EVENTS)
    rng = random.Random(1)
    numbers = [0, message_count - 1, *(rng.randrange(message_count) for _ in range(_QUERIES - 2))]
    seconds = [_query_seconds(data, id_of(number)) for number in numbers]
    unknown = _query_seconds(data, "no-such-message", code=ExitCode.NOT_FOUND)
    return {
        "story": statistics.median(seconds),
        "longest": max(seconds),
        "unknown": unknown,
        "messages": float(message_count),
    }


def _query_seconds(data: Path, message_id: str, *, code: ExitCode = ExitCode.OK) -> float:
    """Return the seconds of one command from start to end; LoadFailed if its answer is wrong."""
    words = ("history", "message", message_id, "--data", str(data), "--output", "json")
    began = time.monotonic()
    result = subprocess.run(child_command(*words), capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if result.returncode != code or (code is ExitCode.OK and not _is_story_of(json.loads(result.stdout), message_id)):
        raise LoadFailed(f"{' '.join(words)} ended with {result.returncode}: {result.stderr or result.stdout}")
    return seconds


def _is_story_of(stories: Sequence[Any], message_id: str) -> bool:
    return len(stories) == 1 and stories[0]["message_id"] == message_id and stories[0]["events"]
