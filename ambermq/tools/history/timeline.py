"""One queue over time: its state at the end of each step, and the messages published and settled in the step. Pure.

Rule 1. The state at a time is the state after the last event at or before it, in the order of offsets. Times may fall
along a log whose clock stepped: there the caller looks up the offsets.
Rule 2. A queue that is declared again under its name is another queue: its counts begin at 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ambermq.engine.entries.entry_word import entry_of
from ambermq.engine.events import Event
from ambermq.engine.fold.apply import apply
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State

__all__ = ["STEPS_MAX", "Sample", "nice_step_us", "oldest_entry", "sampled", "step_ends"]

STEPS_MAX: Final = 1000
"""The maximum number of steps."""

_STEPS_WANTED: Final = 20
_SECOND_US: Final = 1_000_000
_NICE_SECONDS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400)


@dataclass(frozen=True, slots=True)
class Sample:
    """A queue at the end of a step."""

    time_us: int
    """The end of the step."""
    queue: Queue | None
    """The queue; None if none had the name."""
    published: int
    """Messages published in the step."""
    settled: int
    """Messages accepted or rejected in the step."""


def nice_step_us(duration_us: int) -> int:
    """Return a step of whole seconds, minutes, hours or days that divides a duration into about 20 steps."""
    wanted = duration_us // _STEPS_WANTED
    whole_days = -(-wanted // (_NICE_SECONDS[-1] * _SECOND_US)) * _NICE_SECONDS[-1]
    return next((one for one in _NICE_SECONDS if one * _SECOND_US >= wanted), whole_days) * _SECOND_US


def step_ends(*, begin_us: int, end_us: int, step_us: int) -> list[int]:
    """Return the ends of the steps from `begin_us` on: multiples of the step, then `end_us`."""
    return [*range((begin_us // step_us + 1) * step_us, end_us, step_us), end_us]


def sampled(
    state: State, events: Iterable[Event], name: str, times_us: Sequence[int], *, offsets: Sequence[int] | None = None
) -> Iterator[Sample]:
    """Yield the queue of a name at each of the ascending `times_us`; `state` is the state before the first event.

    `offsets` are the last ones at or before these times. None: the times of the events do not fall.
    """
    before = state.queue_named(name)
    upcoming = iter(events)
    event = next(upcoming, None)
    for number, time_us in enumerate(times_us):
        while event is not None and (event.time_us <= time_us if offsets is None else event.offset <= offsets[number]):
            state = apply(state, event)
            event = next(upcoming, None)
        queue = state.queue_named(name)
        yield _sample(time_us, before, queue)
        before = queue


def _sample(time_us: int, before: Queue | None, queue: Queue | None) -> Sample:
    if queue is None:
        return Sample(time_us, None, 0, 0)
    is_same = before is not None and before.id == queue.id
    published, settled = _counts(before if is_same else None)
    published_now, settled_now = _counts(queue)
    return Sample(time_us, queue, published_now - published, settled_now - settled)


def _counts(queue: Queue | None) -> tuple[int, int]:
    return (0, 0) if queue is None else (queue.published, queue.accepted + queue.counters.rejected)


def oldest_entry(queue: Queue) -> int | None:
    """Return the offset of the oldest message on a queue, acquired ones too; None if the queue is empty."""
    heads = [entry_of(int.from_bytes(words.head(1), "little")) for words in queue.waiting_lists if words]
    held = [entry_of(word) for words in queue.acquired.values() for word in words]
    return min([*heads, *held], default=None)
