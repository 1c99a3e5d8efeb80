"""From what the log yields to a loop that serves: fold everything, log that the broker started."""

from collections.abc import Callable

from engine.apply import apply
from engine.config import EngineConfig
from engine.durable import DurableLoop
from engine.records import events_of
from engine.state import EMPTY_STATE, State
from engine.touches import touches_of
from log.manifest import forget_lost
from log.recovery import Recovery

__all__ = ["fold_log", "recover"]


def fold_log(recovery: Recovery, progress: Callable[[int, int], None] | None = None) -> State:
    """Return the fold of everything that a recovery yields; `progress` hears records folded and the offset reached."""
    state = EMPTY_STATE
    records = 0
    for batch in recovery.batches():
        for event in events_of(batch):
            state = apply(state, event)
        records += batch.header.count
        if progress is not None:
            progress(records, batch.header.base_offset)
    return state


def recover(
    recovery: Recovery, config: EngineConfig, now_us: int, progress: Callable[[int, int], None] | None = None
) -> DurableLoop:
    """Return a loop over the recovered log, with its start durable: it may serve.

    Raises what `Recovery` raises: DamageError, LogFailed.
    """
    state = fold_log(recovery, progress)
    lost = [(lost.first_offset, lost.next_offset) for lost in recovery.manifest.lost]
    loop = DurableLoop(recovery.log(touches_of=touches_of), state, config)
    loop.start(now_us, lost)
    if lost:
        loop.log.edit_manifest(forget_lost)
    return loop
