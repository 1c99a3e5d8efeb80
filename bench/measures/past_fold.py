"""The cost of the state at a past moment: the fold of a log without a snapshot, by event and by offset.

An event over many messages has an offset for each message that it publishes. So two logs are folded: in one every event
is about one message, in the other about 500. The figures are processor time: the fold is one thread.
"""

import time
from pathlib import Path
from typing import Final

from ambermq.engine.history.past import open_past
from bench.brokers.broker import Broker
from bench.load import Window
from bench.measures.story_log import write_story_log

__all__ = ["measure_fold"]

_EVENTS_ALONE: Final = 300_000
_EVENTS_IN_RUNS: Final = 3_000_000
_RUN: Final = 500


def measure_fold(broker: Broker, _window: Window, directory: Path) -> dict[str, float]:
    """Write two logs; return the microseconds for an event about one message, and for an offset of a long run."""
    broker.kill()
    event_us, _ = _fold_us(directory / "alone", _EVENTS_ALONE, (1,))
    run_us, offset_us = _fold_us(directory / "runs", _EVENTS_IN_RUNS, (_RUN,))
    return {"event": event_us, "run": run_us, "offset": offset_us}


def _fold_us(data: Path, event_count: int, runs: tuple[int, ...]) -> tuple[float, float]:
    """Write a log and fold all of it; return the microseconds by event and by offset."""
    write_story_log(data, event_count, runs=runs, is_indexed=False)
    with open_past(str(data)) as past:
        last = past.last_offset
        assert last is not None
        began = time.process_time()
        past.state_at(last)
        seconds = time.process_time() - began
        events = sum(1 for _ in past.events(0, last))
        offsets = sum(readable.batch.header.count for readable in past.reader.batches())
    return 1e6 * seconds / events, 1e6 * seconds / offsets
