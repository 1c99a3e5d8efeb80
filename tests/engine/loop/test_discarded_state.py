"""A reset frees the objects of the state before it in parts."""

import weakref

import pytest

from ambermq.engine.commands import AttachMember, DeclareMuxer, DeclareQueue, ResetHost
from ambermq.engine.config import EngineConfig
from ambermq.engine.loop import discarded_state
from ambermq.engine.loop.discarded_state import DiscardedState
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.config import LogConfig
from ambermq.snapshot.persistent_map import PersistentMap
from tests.engine.rig import Rig


class _Value:
    """A value that may be referred to weakly."""


def test_a_call_frees_few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a part has; all are free at the end."""
    monkeypatch.setattr(discarded_state, "_PART_MAX", 10)
    values = [_Value() for _ in range(95)]
    alive = weakref.WeakSet(values)
    discarded = DiscardedState()
    discarded.tables.append(PersistentMap(enumerate(values)))
    values.clear()
    left = []
    while discarded.tables:
        discarded.free()
        left.append(len(alive))
    assert left == [85, 75, 65, 55, 45, 35, 25, 15, 5, 0]


def test_a_reset_leaves_its_large_tables_to_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues, names and attachments; a small state leaves nothing."""
    monkeypatch.setattr(discarded_state, "_PART_MAX", 20)
    rig = Rig(config=EngineConfig(), log_config=LogConfig(ballast_bytes=0))
    rig.do(*[DeclareQueue("key", f"q{number}", Settings()) for number in range(50)])
    rig.do(DeclareMuxer("key", "m", MuxerKind.DESTINATION))
    rig.do(*[AttachMember("key", "m", "q1", f"d{number}") for number in range(50)])
    rig.step(ResetHost("key"))
    assert not rig.loop.state.queues
    assert rig.loop.is_late
    calls = 0
    while rig.loop.is_late:
        rig.completed()
        calls += 1
    assert calls == 4 * 3
    rig.do(DeclareQueue("key", "q", Settings()))
    rig.step(ResetHost("key"))
    rig.completed()
    assert not rig.loop.is_late
