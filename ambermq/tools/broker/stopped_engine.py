"""The engine of a log whose broker does not run: opened, asked a few things, and closed again.

It is a start of the broker that nobody connects to, so the log says so: a new epoch begins, and what was out for
delivery has come back.
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

__all__ = ["ask", "stopped_engine"]

_LOOK_MS: Final = 20


@contextmanager
def stopped_engine(directory: str, mode: VhostMode = VhostMode.AUTOMATIC) -> Iterator[DurableLoop]:
    """Open the engine of the log in `directory`, alone with it; LockedError where a broker runs, and other LogError.

    LogError too where there is no log: none is made. `mode` is that of a log which was never started.
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
    """Return the answer to a command with a key, once it is durable; ToolError where it is refused."""
    news = poll()
    news.register(engine.fileno(), POLLIN)
    engine.submit(command)
    while True:
        for effect in (*engine.step(_now_us()), *engine.completed(_now_us())):
            if _answers(effect, command):
                return effect.value if isinstance(effect, Answered) else None
        news.poll(_LOOK_MS)


def _answers(effect: Effect, command: Any) -> bool:
    if not isinstance(effect, Answered | RefusedCommand) or effect.key is not command.key:
        return False
    if isinstance(effect, RefusedCommand):
        raise ToolError(effect.description)
    return True


def _now_us() -> int:
    return time.time_ns() // 1000
