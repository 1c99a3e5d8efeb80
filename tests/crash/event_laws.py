"""The laws of single events, held against the whole log of a broker that was killed again and again.

The ledger of the model (tests/model/laws/ledger.py) follows each message from event to event: it is in one place,
nothing is offered before its time or after its expiry, and none overtakes another one.
"""

import time
import traceback
from pathlib import Path
from typing import Final

from ambermq.engine.fold.apply import apply
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.records.reader import events_of
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage
from tests.model.laws.ledger import Ledger

__all__ = ["event_faults"]

_CHECKED_EACH: Final = 200
"""Batches after which the ledger is held against the state."""


def event_faults(directory: Path, storage: Storage | None = None) -> list[str]:
    """Return which law the events of a log break; no broker runs, no consumer of it has had a selector."""
    recovery = Recovery.open(storage or DiskStorage(), str(directory), LogConfig(), time.time_ns() // 1000)
    ledger, state, number = Ledger(), EMPTY_STATE, 0
    try:
        for number, batch in enumerate(recovery.batches(0)):
            for event in events_of(batch):
                ledger.note(state, event, frozenset())
                state = apply(state, event)
            ledger.published.clear()
            if number % _CHECKED_EACH == 0:
                ledger.check(state)
        ledger.check(state)
    except (AssertionError, LookupError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return [f"event: batch {number}: {error or where.line} ({where.name}, line {where.lineno})"]
    finally:
        recovery.close()
    return []
