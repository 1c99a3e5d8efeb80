"""The work of `ambermq proxy replay`: a file played to its end or to the first difference."""

import time
from dataclasses import dataclass
from pathlib import Path

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.proxy.recording_file import open_recording
from ambermq.tools.proxy.replay import Difference, Replay
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import print_done, printable

__all__ = ["ReplayTask", "replay_recording"]


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """What to replay, from the command line."""

    path: Path
    target: BrokerUrl
    connections: frozenset[int]
    """Empty for all."""
    speed: float
    timeout_s: float
    output: str


def replay_recording(task: ReplayTask) -> None:
    """Replay a file; raise ToolError at the first difference."""
    replay = Replay(task.target, timeout_s=task.timeout_s, speed=task.speed)
    began = time.monotonic()
    try:
        _play(task, replay)
    finally:
        replay.close()
    seconds = time.monotonic() - began
    values = {
        "connections": replay.connection_count,
        "sent": replay.sent_count,
        "compared": replay.compared_count,
        "seconds": round(seconds, 3),
    }
    text = (
        f"no difference: {replay.connection_count} connections, {replay.sent_count} frames sent, "
        f"{replay.compared_count} answers compared in {seconds:.1f} s"
    )
    print_done(text, values, task.output)


def _play(task: ReplayTask, replay: Replay) -> None:
    count = 0
    try:
        with open_recording(task.path) as reader:
            for record in reader:
                count += 1
                if not task.connections or record.connection in task.connections:
                    replay.play(record)
        replay.finish()
    except Difference as difference:
        raise ToolError(
            "the broker differs from the recording",
            where=f"{task.path}: record {count}, connection {difference.connection}",
            expected=printable(difference.expected),
            found=printable(difference.found),
        ) from difference
    if not replay.connection_count:
        raise ToolError(
            "no connection to replay",
            where=str(task.path),
            advice="`ambermq proxy print` shows the connections of a recording",
            code=ExitCode.NOT_FOUND,
        )
