"""Short campaigns of kills with resumed links, groups and locks, and the planted faults that they find."""

import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.crash.campaigns.holdings import run_holding_campaign
from tests.crash.campaigns.queues import run_queue_campaign
from tests.crash.campaigns.resumptions import run_resumption_campaign
from tests.crash.kill_rounds import KillResult

_KILLS: Final = 2
_CAMPAIGNS: Final[dict[str, Callable[..., KillResult]]] = {
    "resumptions": run_resumption_campaign,
    "groups": partial(run_holding_campaign, kind="groups"),
    "locks": partial(run_holding_campaign, kind="locks"),
}


def _seed() -> int:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return seed


def test_links_are_resumed_over_kills(tmp_path: Path) -> None:
    """Each message is stored once and accepted once, in order; nothing is left with the broker."""
    result = run_resumption_campaign(tmp_path, seed=_seed(), kills=_KILLS)
    assert result.faults == []
    assert result.figures["accepted"] == result.figures["sent"] > 0
    assert result.figures["resumed"] > 0


@pytest.mark.parametrize(
    ("campaign", "plant", "law"),
    [
        ("resumptions", "tags-forgotten", ("tag: ", "twice: ")),
        ("resumptions", "deliveries-forgotten", "kept: "),
        ("groups", "group-shared", "holder: "),
        ("locks", "lock-short", "holder: "),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, campaign: str, plant: str, law: str | tuple[str, ...]) -> None:
    """A broker that forgets what it keeps, or gives a message to two consumers, is found by name."""
    result = _CAMPAIGNS[campaign](tmp_path, seed=_seed(), kills=_KILLS, plant=plant)
    assert [fault for fault in result.faults if fault.startswith(law)], result.faults


@pytest.mark.parametrize(
    ("kind", "plant", "fault"),
    [
        ("redrives", "move-halved", "redrives: 0 messages stayed and 0 came, of 2500"),
        ("transactions", "commit-halved", "transactions: 20 of 40 messages of a commit"),
    ],
)
def test_a_planted_fault_in_a_command_is_found(tmp_path: Path, kind: str, plant: str, fault: str) -> None:
    """A start that forgets a half of a redrive, or of a commit."""
    result = run_queue_campaign(tmp_path, seed=_seed(), kills=1, kinds=(kind,), plant=plant, at_end=True)
    assert fault in result.faults
