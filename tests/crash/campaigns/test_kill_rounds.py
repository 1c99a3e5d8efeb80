"""Short campaigns of kills with links that resume, and with planted faults; `make crash` runs the long ones."""

import secrets
from pathlib import Path

import pytest

from tests.crash.campaigns.plants import PLANTED, run_plants
from tests.crash.planted import PLANTS
from tests.crash.queue_campaigns.resumptions import run_resumption_campaign


def _seed() -> int:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return seed


def test_links_are_resumed_over_kills(tmp_path: Path) -> None:
    """Each message is stored once and accepted once, in order; nothing is left with the broker."""
    result = run_resumption_campaign(tmp_path, seed=_seed(), kills=1)
    assert result.faults == []
    assert result.figures["accepted"] == result.figures["sent"] > 0
    assert result.figures["resumed"] > 0


@pytest.mark.parametrize("plant", ["commit-halved"])
def test_a_planted_fault_is_found(tmp_path: Path, plant: str) -> None:
    """By name: a start that forgets a half of a commit."""
    planted = PLANTED[plant]
    faults = planted.run(tmp_path, seed=_seed(), plant=plant)
    assert [fault for fault in faults if fault.startswith(planted.law)], faults


def test_a_fault_that_is_not_found_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the campaign: it would find no real one."""
    assert set(PLANTED) <= set(PLANTS)
    monkeypatch.setitem(PLANTED, "move-halved", PLANTED["move-halved"]._replace(run=lambda *_, **__: ["lost: one"]))
    assert run_plants(tmp_path, seed=_seed(), plants=1) == ("plant: move-halved was not found",)
