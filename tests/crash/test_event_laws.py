"""Tests of the laws of a whole log: an event that must not be is found."""

from pathlib import Path

from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.events import Moved
from tests.crash.event_laws import event_faults
from tests.engine.decide.messages.test_dead_letters import declare
from tests.engine.decide.messages.test_delays import schedule
from tests.engine.rig import Rig
from tests.log.lives import DIRECTORY


def _scheduled() -> Rig:
    rig = Rig()
    declare(rig, "q")
    schedule(rig, rig.producer(), b"a", delay_ms=1000)
    return rig


def test_a_log_that_breaks_no_law_has_no_faults() -> None:
    """Of a scheduled message that waits."""
    rig = _scheduled()
    rig.kill()
    assert event_faults(Path(DIRECTORY), rig.storage) == []


def test_a_message_that_is_due_early_is_found() -> None:
    """By its event."""
    rig = _scheduled()
    queue = rig.queue()
    word = pack_words([*queue.scheduled][:1])
    early = Moved(rig.loop.log.draft.next_offset, rig.now_us, queue.id, (queue.id,), MoveReason.DUE, word)
    rig.loop._log_and_apply([early])
    rig.loop.log.write(rig.now_us)
    rig.kill()
    (fault,) = event_faults(Path(DIRECTORY), rig.storage)
    assert fault.startswith("event: "), fault
