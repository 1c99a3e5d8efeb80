"""Short campaigns of kills in commands on queues."""

import secrets
from pathlib import Path

import pytest

from tests.crash.queue_campaigns.queues import KINDS, run_queue_campaign


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_leaves_all_or_nothing(tmp_path: Path, kind: str) -> None:
    """In the middle of a command: what the next life has is whole, and the same command goes on."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    result = run_queue_campaign(tmp_path, seed=seed, kills=1, kinds=(kind,))
    assert result.faults == [], f"seed {seed}: {result.faults}"
    assert result.kinds[kind] == 1
