"""The short campaign: twenty kills, in every test run."""

import secrets
from pathlib import Path

from tests.crash.campaign import run_campaign


def test_nothing_accepted_is_lost_by_sigkill(tmp_path: Path) -> None:
    """SIGKILL at any moment loses nothing accepted, invents nothing, keeps each sender's order, counts repetitions."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    result = run_campaign(tmp_path, seed=seed, kills=20)
    assert result.faults == (), f"seed {seed}: {result.faults}"
    assert result.accepted > 0
    assert result.arrived >= result.accepted
