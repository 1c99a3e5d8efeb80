"""The engine of a log whose broker does not run: open it, run a few commands, close it.

Rule 1. This is a start of the engine without a server. So a new epoch begins in the log, and acquired messages are
available again.
Rule 2. No broker follows that would delete files later. So files that the commands replaced are deleted at the end,
after the commands have closed their readers.
Rule 3. The engine allocates little disk space: a command should not need more of it than it frees.
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
from ambermq.log.manifest.vhost_manifest import vhosts_path
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.write.ballast import Ballast
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.errors import ToolError

__all__ = ["ask", "offline_engine"]

_POLL_MS: Final = 20
_DELETION_SECONDS: Final = 10.0
"""A disk without any space may prevent a deletion. The next start tries it again."""
_CONFIG: Final = LogConfig(segment_bytes_max=LogConfig().segment_bytes_min, ballast_bytes=0)


@contextmanager
def offline_engine(directory: str, mode: VhostMode = VhostMode.AUTOMATIC) -> Iterator[DurableLoop]:
    """Open the engine of the log in `directory` under its lock; raise LockedError if a broker runs, or LogError.

    It creates no log: LogError if there is none. `mode` is the mode of a log that was never started.
    """
    if not Path(manifest_path(directory)).exists():
        raise LogError(f"{directory} holds no log: {manifest_path(directory)} is missing")
    now_us, settings = _now_us(), Settings()
    recovery = Recovery.open(DiskStorage(), directory, _CONFIG, now_us)
    try:
        engine = recover(recovery, settings.engine, now_us, mode=mode, ballast=_ballast_of(directory))
    except BaseException:
        recovery.close()
        raise
    try:
        yield engine
        _delete_removed(engine)
    finally:
        engine.log.close()


def _ballast_of(directory: str) -> Ballast:
    """Return the ballast of the data directory of a log; it is given up on a full disk, and never allocated here."""
    path = Path(directory).absolute()
    root = path.parent.parent
    return Ballast(DiskStorage(), str(root if vhosts_path(str(root)) == str(path.parent) else path), 0)


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


def _delete_removed(engine: DurableLoop) -> None:
    """Wait until the files that are not needed any more are deleted, except those that a reader uses."""
    log, deadline_s = engine.log, time.monotonic() + _DELETION_SECONDS
    poller = poll()
    poller.register(engine.fileno(), POLLIN)
    # The first run may have begun before the last reader was closed.
    count = log.deletion_count + 2
    while log.manifest.removed and log.deletion_count < count and time.monotonic() < deadline_s:
        log.request_deletion()
        poller.poll(_POLL_MS)
        engine.completed(_now_us())


def _answers(effect: Effect, command: Any) -> bool:
    if not isinstance(effect, Answered | RefusedCommand) or effect.key is not command.key:
        return False
    if isinstance(effect, RefusedCommand):
        raise ToolError(effect.description)
    return True


def _now_us() -> int:
    return time.time_ns() // 1000
