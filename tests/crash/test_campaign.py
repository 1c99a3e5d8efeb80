"""The short campaigns, in every test run: few kills each of the laws that `make crash` tries hundreds of times."""

import secrets
from pathlib import Path

import pytest

from ambermq.tools.spark.java import find_java
from ambermq.tools.spark.session import check_packages
from ambermq.tools.terminal.errors import ToolError
from tests.crash.campaign import run_campaign
from tests.crash.campaigns.compaction import rounds_of, run_compaction_campaign
from tests.crash.campaigns.snapshots import run_snapshot_campaign

_KILLS = 12
_SNAPSHOT_KILLS = 6
"""Two of each kind."""
_COMPACTION_KILLS = 4
"""One of each kind."""


def test_nothing_accepted_is_lost_by_sigkill(tmp_path: Path) -> None:
    """SIGKILL at any moment loses nothing accepted, invents nothing, keeps each sender's order, counts repetitions.

    A queue and a muxer go by the last update that was acknowledged, or a later one that was sent.
    """
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    result = run_campaign(tmp_path, seed=seed, kills=_KILLS)
    assert result.faults == (), f"seed {seed}: {result.faults}"
    assert result.accepted > 0
    assert result.arrived >= result.accepted
    assert result.updated > 0
    assert result.looks > 0
    assert result.verified > _KILLS


def test_snapshots_and_backups_are_whole_or_not_there(tmp_path: Path) -> None:
    """SIGKILL while one is taken, exported or restored loses nothing, leaves no half, and the next try succeeds."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    result = run_snapshot_campaign(tmp_path, seed=seed, kills=_SNAPSHOT_KILLS)
    assert result.faults == [], f"seed {seed}: {result.faults}"
    assert result.kills == _SNAPSHOT_KILLS


@pytest.mark.spark
def test_compactions_by_spark_lose_nothing(tmp_path: Path) -> None:
    """SIGKILL to a worker, the broker, Java, the driver: nothing is lost, the next one succeeds and sweeps.

    Each kill hits a compaction that is under way.
    """
    try:
        check_packages("pyspark", "pyarrow", "numpy")
        find_java(tmp_path)
    except ToolError as error:
        pytest.skip(error.message)
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    result = run_compaction_campaign(tmp_path, seed=seed, rounds=rounds_of(_COMPACTION_KILLS))
    assert result.faults == [], f"seed {seed}: {result.faults}"
    assert result.kills == _COMPACTION_KILLS
    assert result.cut_short > 0
    assert result.accepted > 0
