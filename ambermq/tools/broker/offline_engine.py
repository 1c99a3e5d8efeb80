"""The engine of a log whose broker does not run: open it, run a few commands, close it.

This is a start of the engine without a server. So a new epoch begins in the log, and acquired messages are available
again.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import POLLIN, poll
from typing import Any, Final

from ambermq.engine.commands import Command
from ambermq.engine.effects import Answered, Effect, RefusedCommand
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import recover
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError
from ambermq.log.manifest.manifest import manifest_path
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.errors import ToolError

__all__ = ["ask", "offline_engine"]

_POLL_MS: Final = 20


@contextmanager
def offline_engine(directory: str, mode: VhostMode = VhostMode.AUTOMATIC) -> Iterator[DurableLoop]:
    """Open the engine of the log in `directory` under its lock; raise LockedError if a broker runs, or LogError.

    It creates no log: LogError if there is none. `mode` is the mode of a log that was never started.
    """
    if not Path(manifest_path(directory)).exists():
        raise LogError(f"{directory} holds no log: {manifest_path(directory)} is missing")
    now_us, settings = _now_us(), Settings()
    recovery = Recovery.open(DiskStorage(), directory, LogConfig(), now_us)
    try:
        engine = recover(recovery, settings.engine, now_us, mode=mode)
    except BaseException:
        recovery.close()
        raise
    try:
        yield engine
    finally:
        engine.log.close()


def ask(engine: DurableLoop, command: Command) -> Any:
    """Return the answer to a command with a key when it is durable; raise ToolError if it is refused."""
    poller = poll()
    poller.register(engine.fileno(), POLLIN)
    engine.submit(command)
    while True:
        for effect in (*engine.step(_now_us()), *engine.completed(_now_us())):
            if _answers(effect, command):
                return effect.value if isinstance(effect, Answered) else None
        poller.poll(_POLL_MS)


def _answers(effect: Effect, command: Any) -> bool:
    if not isinstance(effect, Answered | RefusedCommand) or effect.key is not command.key:
        return False
    if isinstance(effect, RefusedCommand):
        raise ToolError(effect.description)
    return True


def _now_us() -> int:
    return time.time_ns() // 1000
