"""When the loop wants to be called: no order of events keeps a settlement from the disk, and none keeps the loop busy.

The driver obeys the schedule as a server does: it steps what is due now, and else waits until `next_us`, no less. Syncs
that have ended are taken every 10 ms, or before.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED
from ambermq.engine.loop.schedule import LATER, NOW, SOON, SYNCED
from tests.engine.rig import Rig, held

_SYNC_US = 10_000
_EVENTS = ("settle", "put off", "release", "publish", "publish alone", "publish what may be lost", "step", "completed")


class _Driven:
    """A loop that is driven by its deadlines, and what became of the settlements that came."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.consumer, self._words = held(self.rig, 60)
        self._producer = self.rig.producer()
        self.rig.loop.set_credit(self.consumer, 0)
        config = self.rig.loop.config
        # A sync that is under way when another is asked for ends before that one begins.
        self._bound_us = 1000 * (config.lazy_write_ms + config.lazy_sync_ms) + 2 * _SYNC_US
        self._synced_us = self.rig.now_us
        self._unsynced: list[tuple[int, int]] = []
        """When its sync is to be asked for, and the end of what was written."""
        self._undecided: dict[int, int] = {}
        """When it is due, by word."""
        self._decided: list[tuple[int, int]] = []
        """When it is due, and the offset behind its record."""

    def happen(self, event: str) -> None:
        """Submit a command, and drive on as a server does."""
        rig = self.rig
        match event:
            case "publish" | "publish what may be lost":
                rig.step(rig.publish(self._producer, b"body", durable=event == "publish"))
            case "publish alone":
                self._publish_alone()
            case "step":
                rig.step()
            case "completed":
                rig.completed()
            case _:
                self._settle(event)
        self._look()

    def _publish_alone(self) -> None:
        """Publish as a read does: where nothing waits for the disk, the step is now."""
        rig = self.rig
        rig.loop.submit(rig.publish(self._producer, b"body"))
        assert rig.due in ((SOON, SYNCED) if rig.loop._pending.queue else (NOW,))
        assert rig.step() == []
        log = rig.loop.log
        assert log.log_end == log.requested_end == log.draft.next_offset, "its sync was asked for"

    def _settle(self, event: str) -> None:
        rig, word = self.rig, self._words.pop()
        rig.loop.submit(Settle(self.consumer, pack_words([word]), RELEASED if event == "release" else ACCEPTED))
        self._undecided[word] = rig.now_us + self._bound_us
        if event != "put off" or rig.due != LATER:
            rig.step()

    def wait(self, us: int) -> None:
        """Advance the time without any peer."""
        rig, until_us = self.rig, self.rig.now_us + us
        schedule = rig.loop.schedule
        while (next_us := min(schedule.next_us, self._synced_us + _SYNC_US)) <= until_us:
            rig.now_us = max(rig.now_us, next_us)
            if next_us == schedule.next_us:
                (rig.loop.step if schedule.write_by_us <= rig.now_us else rig.loop.sync_or_mark)(rig.now_us)
                assert schedule.next_us > rig.now_us, "it would fire again at once"
                assert rig.due <= LATER, "a deadline leaves nothing due"
            else:
                rig.completed()
                self._synced_us = rig.now_us
            self._look()
        rig.now_us = until_us
        self._look()

    def _look(self) -> None:
        rig, log = self.rig, self.rig.loop.log
        acquired = set(rig.queue().held_by(self.consumer))
        for word in [word for word in self._undecided if word not in acquired]:
            self._decided.append((self._undecided.pop(word), log.draft.next_offset))
        if rig.due == LATER:
            assert rig.loop.schedule.next_us <= rig.now_us + 1000 * rig.loop.config.lazy_write_ms
        self._look_at_syncs()
        self._decided = [(by_us, end) for by_us, end in self._decided if end > log.durable_end]
        due = [by_us for by_us, _ in self._decided] + list(self._undecided.values())
        assert all(by_us >= rig.now_us for by_us in due)

    def _look_at_syncs(self) -> None:
        """Check that the sync of what was written is asked for within lazy_sync_ms."""
        rig, log = self.rig, self.rig.loop.log
        if log.log_end > max([end for _, end in self._unsynced], default=0):
            self._unsynced.append((rig.now_us + 1000 * rig.loop.config.lazy_sync_ms, log.log_end))
        self._unsynced = [(by_us, end) for by_us, end in self._unsynced if end > log.requested_end]
        assert all(by_us >= rig.now_us for by_us, _ in self._unsynced)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(_EVENTS), st.integers(0, 30_000)), max_size=40))
def test_no_order_of_events_keeps_a_settlement_from_the_disk(events: list[tuple[str, int]]) -> None:
    """Each is durable within lazy_write_ms, lazy_sync_ms and two syncs of its coming; no deadline is one twice."""
    driven = _Driven()
    for event, us in events:
        driven.happen(event)
        driven.wait(us)
    driven.wait(100_000)


def test_a_hurry_puts_off_nothing() -> None:
    """What could wait for hours is on disk after the next step and its sync."""
    rig = Rig(config=EngineConfig(lazy_write_ms=1 << 40, lazy_sync_ms=1 << 40))
    consumer, words = held(rig, 2)
    rig.do()
    rig.loop.submit(Settle(consumer, pack_words(words[:1]), ACCEPTED))
    assert rig.due == LATER
    rig.do()
    assert rig.loop.is_waiting
    rig.loop.make_due()
    rig.do()
    assert not rig.loop.is_waiting
    assert rig.loop.schedule.next_us > rig.now_us
