"""Compacting a log that lives in this process, and what is held against what before and after."""

from collections.abc import Mapping
from typing import Any, Protocol

from ambermq.engine.commands import Command, CommitCompaction, DeleteSnapshot, NameSnapshot, TakeSnapshot
from ambermq.engine.compaction.live_records import kept_offsets
from ambermq.engine.compaction.plan import History
from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.engine.history.past import open_past
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.model.state import State
from ambermq.log.read.body_reads import DAMAGED
from ambermq.tools.compaction.job import run_compaction
from ambermq.tools.compaction.local_runner import LocalRunner
from ambermq.tools.compaction.preview import Outcome
from ambermq.tools.terminal.errors import ToolError
from tests.engine.lived import LIVED, Lived, complete

__all__ = ["NONE", "LivedBroker", "answerable", "compact", "live_bodies"]

NONE = History(age_us=0)
_TICKS = 50


class Living(Protocol):
    """What has a loop that is stepped by hand."""

    loop: DurableLoop
    now_us: int


class LivedBroker:
    """The loop of a life as the broker of a compaction."""

    def __init__(self, lived: Living) -> None:
        self._lived = lived

    def take_snapshot(self, name: str, *, seals: bool) -> None:
        self._ask(TakeSnapshot(object(), name, seals=seals))

    def delete_snapshot(self, name: str) -> None:
        self._ask(DeleteSnapshot(object(), name))

    def name_snapshot(self, job: str, name: str) -> None:
        self._ask(NameSnapshot(object(), job, name))

    def commit(self, job: str) -> Mapping[str, Any]:
        told: Mapping[str, Any] = self._ask(CommitCompaction(object(), job))
        return told

    def _ask(self, command: Command) -> Any:
        lived, loop = self._lived, self._lived.loop
        loop.submit(command)
        for _ in range(_TICKS):
            lived.now_us += 1000
            for effect in (*loop.step(lived.now_us), *complete(loop, lived.now_us)):
                if isinstance(effect, Answered | RefusedCommand) and effect.key is getattr(command, "key", None):
                    if isinstance(effect, RefusedCommand):
                        raise ToolError(effect.description)
                    return effect.value
        raise AssertionError(command)


def compact(lived: Lived, history: History = NONE, **options: Any) -> Outcome:
    """Compact a log while its loop lives."""
    return run_compaction(
        lived.directory,
        history,
        options.pop("runner", LocalRunner()),
        LivedBroker(lived),
        now_us=lived.now_us,
        config=LIVED,
        **options,
    )


def answerable(directory: str) -> dict[int, State]:
    """Return the state at every moment that the log answers for."""
    states = {}
    with open_past(directory, LIVED, now_us=1 << 60) as past:
        first = max(past.horizon.offset - 1, 0)
        for event in past.events(first + 1 if past.horizon.offset else 0, past.end - 1):
            states[event.offset] = past.state_at(event.offset)
        if past.horizon.offset:
            states[past.horizon.offset - 1] = past.state_at(past.horizon.offset - 1)
    return states


def live_bodies(directory: str, states: Mapping[int, State]) -> dict[int, bytes]:
    """Return the bytes of every message that lives at any of these moments."""
    bodies = {}
    with open_past(directory, LIVED, now_us=1 << 60) as past:
        for offset in sorted({offset for state in states.values() for offset in kept_offsets(state)}):
            body = past.body(offset)
            assert body is not DAMAGED
            bodies[offset] = bytes(body)
    return bodies
