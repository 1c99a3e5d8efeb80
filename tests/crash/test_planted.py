"""Tests of the campaigns: each fault that is planted in the broker is found, and named by the law that it breaks."""

import secrets
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from ambermq.engine.commands import MoveMessages
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.fold.apply import apply
from ambermq.engine.loop import recovery
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.errors import ToolError
from tests.crash import broker
from tests.crash.campaign import Result, run_campaign
from tests.crash.planted import PLANTS, planted_command
from tests.engine.decide.messages.test_moves import offsets, rig_with
from tests.engine.rig import Rig

_KILLS: Final = 3
_DRAIN_SECONDS: Final = 5.0

FOUND_BY_KILL: Final = {
    "event-dropped": "lost: backlog: ",
    "body-changed": "body: q",
    "file-left": "log verify: unknown files ",
    "start-failed": "start: ",
}
"""Planted faults that a SIGKILL shows, with the beginning of the campaign's fault."""


def _campaign(directory: Path, plant: str) -> Result:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return run_campaign(directory, seed=seed, kills=_KILLS, plant=plant, drain_seconds=_DRAIN_SECONDS)


@pytest.mark.parametrize("plant", FOUND_BY_KILL)
def test_a_planted_fault_is_found(tmp_path: Path, plant: str) -> None:
    """A campaign with the fault names it, and names no other law."""
    faults = _campaign(tmp_path, plant).faults
    expected = FOUND_BY_KILL[plant]
    assert [fault for fault in faults if fault.startswith(expected)], faults
    laws = {fault.partition(":")[0] for fault in faults}
    assert laws <= {expected.partition(":")[0], "lost"}, faults


def test_a_start_with_a_halved_move_has_the_message_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it starts: an end with an error would be another fault."""
    rig = rig_with(b"one", b"two")
    rig.do(MoveMessages("key", "q", offsets(rig)[:1], "other", MoveReason.MOVED))
    rig.kill()
    monkeypatch.setattr(recovery, "apply", apply)
    PLANTS["move-halved"]()
    again = Rig(rig.storage)
    assert [again.queue(name).depth for name in ("q", "other")] == [1, 0]


def test_a_slow_start_is_no_fault(tmp_path: Path) -> None:
    """A start takes longer than other users of ChildBroker wait, as on a busy machine: the campaign goes on."""
    impatient = ChildBroker(tmp_path / "other", ready_seconds=1.0, command_of=partial(planted_command, "start-slow"))
    with pytest.raises(ToolError, match="did not start"):
        impatient.start()
    result = _campaign(tmp_path, "start-slow")
    assert result.faults == ()
    assert result.start_seconds_max > 1.5
    assert broker.READY_SECONDS == 600.0
