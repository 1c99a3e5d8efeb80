"""Faults that are planted in a broker, by name, to test the campaigns: each must be found.

    settle-before-sync    effects leave when their batch is written, before it is synced
    manifest-not-synced   a new manifest is renamed over the old one without a sync of its bytes
    event-dropped         a start does not apply one of the events that published to the queue `backlog`
    body-changed          one byte of the first delivery after a start, and of each 50th, is another
    file-left             a start leaves a file that the manifest does not name
    start-failed          a start on an existing log ends with an error
    move-halved           a start takes moved messages from their queue, and puts them on no other
    commit-halved         a start applies half of each run of published messages
    tags-forgotten        a start forgets the delivery-tags that it keeps for senders
    deliveries-forgotten  a start returns what links hold that may be resumed
    schedule-forgotten    a start makes scheduled messages due at once
    expiry-forgotten      a start lets messages live a thousand times as long
    ids-forgotten         a start forgets the message-ids of dedup windows
    group-shared          messages of one group go to any consumer
    lock-short            a lock ends after half of its time
    last-piece-changed    a message that is received while it arrives ends with the bytes of its beginning
    start-slow            no fault: a start takes 1.5 s longer, as on a busy machine

Run as a file, `planted.py NAME ARGUMENTS` is the command `ambermq` with this fault. The first two faults break promises
about a power loss. A SIGKILL does not show them, because the kernel keeps what is written.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from ambermq.engine.decide import decide
from ambermq.engine.effects import Deliver, Effect
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import WORD_BYTES, size_of, unpack_words
from ambermq.engine.events import ClockStepped, Event, Identified, Moved, Published, Scheduled, Timed
from ambermq.engine.fold.apply import apply
from ambermq.engine.loop import recovery
from ambermq.engine.loop.effect_release import EffectRelease
from ambermq.engine.loop.pending_effects import PendingEffects
from ambermq.engine.loop.timers.lock_timers import LockTimers
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.log.errors import LogError
from ambermq.log.manifest import manifest
from ambermq.log.manifest.manifest import segments_path
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskFile
from ambermq.log.write.log import Log
from ambermq.protocol.gateway.large.arriving_message import ArrivingMessage
from ambermq.tools.cli import main
from ambermq.tools.terminal.child_command import child_command

__all__ = ["PLANTS", "planted_command"]

_SLOW_SECONDS: Final = 1.5
_BODY_CHANGED_EACH: Final = 50
_BACKLOG: Final = "backlog"


def planted_command(name: str, *arguments: str) -> list[str]:
    """Return the command line of `ambermq` with a planted fault."""
    assert name in PLANTS, name
    interpreter, safe_path, _, _, *rest = child_command(*arguments)
    return [interpreter, safe_path, str(Path(__file__).resolve()), name, *rest]


def _replace(owner: Any, name: str, planted: Callable[..., Any]) -> None:
    """Replace a function of a class or a module, whose type the planted one need not have."""
    setattr(owner, name, planted)


def _settle_before_sync() -> None:
    add = PendingEffects.add

    def add_synced(self: PendingEffects, effects: Any, log_end: int, durable_end: int) -> Any:
        return add(self, effects, log_end, max(log_end, durable_end))

    _replace(PendingEffects, "add", add_synced)


def _manifest_not_synced() -> None:
    replace = manifest._replace

    def replace_unsynced(*arguments: Any) -> None:
        sync = DiskFile.sync
        _replace(DiskFile, "sync", lambda _: None)
        try:
            replace(*arguments)
        finally:
            _replace(DiskFile, "sync", sync)

    _replace(manifest, "_replace", replace_unsynced)


def _event_dropped() -> None:
    fold, published = recovery._fold, list[int]()
    dropped = [-1]

    def fold_twice(found: Recovery, *arguments: Any) -> tuple[State, ClockStepped | None]:
        published.clear()
        dropped[0] = -1
        fold(found, None, None)
        dropped[0] = published[len(published) // 2] if published else -1
        return fold(found, *arguments)

    def apply_most(state: State, event: Event) -> State:
        if isinstance(event, Published):
            if event.offset == dropped[0]:
                return state
            if [state.queues[number].name for number in event.queues if number in state.queues] == [_BACKLOG]:
                published.append(event.offset)
        return apply(state, event)

    _replace(recovery, "_fold", fold_twice)
    _replace(recovery, "apply", apply_most)


def _body_changed() -> None:
    release, released = EffectRelease.release, itertools.count(1)

    def release_changed(self: EffectRelease, effects: Iterable[Effect]) -> list[Effect]:
        leaving = release(self, effects)
        for effect in leaving:
            if isinstance(effect, Deliver) and next(released) % _BODY_CHANGED_EACH == 1:
                body = bytearray(effect.bodies[0])
                body[-1] ^= 1
                effect.bodies = [bytes(body), *effect.bodies[1:]]
        return leaving

    _replace(EffectRelease, "release", release_changed)


def _file_left() -> None:
    opened = Recovery.log

    def log_and_file(self: Recovery, **arguments: Any) -> Log:
        log = opened(self, **arguments)
        Path(segments_path(self.directory), "00000000deadbeef.log").touch()
        return log

    _replace(Recovery, "log", log_and_file)


def _start_failed() -> None:
    opened = Recovery.log

    def log_or_fail(self: Recovery, **arguments: Any) -> Log:
        if self.manifest.epoch:
            raise LogError("planted: this log does not open")
        return opened(self, **arguments)

    _replace(Recovery, "log", log_or_fail)


def _apply_otherwise(change: Callable[[Event], Event]) -> None:
    _replace(recovery, "apply", lambda state, event: apply(state, change(event)))


def _move_halved() -> None:
    def change(event: Event) -> Event:
        is_command = isinstance(event, Moved) and event.reason in (MoveReason.MOVED, MoveReason.REDRIVEN)
        # No queue has this id.
        return replace(event, targets=(event.offset,)) if is_command else event

    _apply_otherwise(change)


def _commit_halved() -> None:
    def change(event: Event) -> Event:
        if not isinstance(event, Published) or len(event.words) < 2 * WORD_BYTES:
            return event
        words = event.words[: len(event.words) // WORD_BYTES // 2 * WORD_BYTES]
        return replace(event, words=words, size=sum(map(size_of, unpack_words(words))))

    _apply_otherwise(change)


def _tags_forgotten() -> None:
    fold = recovery._fold

    def fold_without_tags(*arguments: Any) -> tuple[State, ClockStepped | None]:
        state, stepped = fold(*arguments)
        return state.with_fields(tags=EMPTY_STATE.tags), stepped

    _replace(recovery, "_fold", fold_without_tags)


def _deliveries_forgotten() -> None:
    _replace(decide, "kept_at_start", lambda *_: ())


def _schedule_forgotten() -> None:
    _apply_otherwise(lambda event: replace(event, due_us=event.time_us) if isinstance(event, Scheduled) else event)


def _expiry_forgotten() -> None:
    _apply_otherwise(lambda event: replace(event, ttl_ms=1000 * event.ttl_ms) if isinstance(event, Timed) else event)


def _ids_forgotten() -> None:
    _apply_otherwise(lambda event: replace(event, queues=()) if isinstance(event, Identified) else event)


def _group_shared() -> None:
    _replace(Queue, "has_groups", property(lambda _: False))


def _lock_short() -> None:
    start = LockTimers.start

    def start_short(self: LockTimers, *arguments: Any) -> None:
        *others, lock_ms = arguments
        start(self, *others, lock_ms // 2)

    _replace(LockTimers, "start", start_short)


def _last_piece_changed() -> None:
    complete = ArrivingMessage.complete

    def complete_otherwise(self: ArrivingMessage, word: int) -> None:
        complete(self, word)
        self._offsets[-1] = self._offsets[0]

    _replace(ArrivingMessage, "complete", complete_otherwise)


def _start_slow() -> None:
    time.sleep(_SLOW_SECONDS)


PLANTS: Final[Mapping[str, Callable[[], None]]] = {
    "settle-before-sync": _settle_before_sync,
    "manifest-not-synced": _manifest_not_synced,
    "event-dropped": _event_dropped,
    "body-changed": _body_changed,
    "file-left": _file_left,
    "start-failed": _start_failed,
    "move-halved": _move_halved,
    "commit-halved": _commit_halved,
    "tags-forgotten": _tags_forgotten,
    "deliveries-forgotten": _deliveries_forgotten,
    "schedule-forgotten": _schedule_forgotten,
    "expiry-forgotten": _expiry_forgotten,
    "ids-forgotten": _ids_forgotten,
    "group-shared": _group_shared,
    "lock-short": _lock_short,
    "last-piece-changed": _last_piece_changed,
    "start-slow": _start_slow,
}
"""The function that plants each fault in this process."""


if __name__ == "__main__":
    PLANTS[sys.argv.pop(1)]()
    main(prog_name="ambermq")
