"""The story of one message among ten million events: how long `ambermq history message` takes, as a new process.

The log lies on the disk as a stopped broker has left it: sealed segments with their indexes, the rest without. The
messages asked for are drawn from all of it, and one id is asked for that no message has.
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
from bench.brokers import Broker
from bench.load import LoadFailed, Window
from bench.measures.story_log import id_of, write_story_log

__all__ = ["measure_story"]

_EVENTS: Final = 10_000_000
_ASKED: Final = 9


def measure_story(broker: Broker, _window: Window, directory: Path) -> dict[str, float]:
    """Write the log, ask, and return seconds a question: median and longest, and that of an unknown id."""
    broker.kill()
    data = directory / "story"
    message_count = write_story_log(data, _EVENTS)
    rng = random.Random(1)
    numbers = [0, message_count - 1, *(rng.randrange(message_count) for _ in range(_ASKED - 2))]
    asked = [_ask(data, id_of(number)) for number in numbers]
    unknown = _ask(data, "no-such-message", code=ExitCode.NOT_FOUND)
    return {
        "story": statistics.median(asked),
        "longest": max(asked),
        "unknown": unknown,
        "messages": float(message_count),
    }


def _ask(data: Path, message_id: str, *, code: ExitCode = ExitCode.OK) -> float:
    """Return the seconds that one command takes from its start to its end; LoadFailed where it answers wrongly."""
    words = ("history", "message", message_id, "--data", str(data), "--output", "json")
    began = time.monotonic()
    result = subprocess.run(child_command(*words), capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if result.returncode != code or (code is ExitCode.OK and not _is_of(json.loads(result.stdout), message_id)):
        raise LoadFailed(f"{' '.join(words)} ended with {result.returncode}: {result.stderr or result.stdout}")
    return seconds


def _is_of(stories: Sequence[Any], message_id: str) -> bool:
    return len(stories) == 1 and stories[0]["message_id"] == message_id and stories[0]["events"]
