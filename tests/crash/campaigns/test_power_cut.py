"""Short campaigns of power cuts on real file systems, and tests of them: planted faults are found by name.

They need root, a loop device and mkfs; elsewhere each is skipped with the reason.
"""

import secrets
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from ambermq.tools.terminal.exit_codes import ExitCode
from tests.crash.campaigns.file_system import KINDS, why_not
from tests.crash.campaigns.power_cut import PowerResult, run_power_campaign

_CUTS: Final = 4
_PLANTED_CUTS: Final = 4
_DRAIN_SECONDS: Final = 5.0

FOUND_BY_CUT: Final = {
    "settle-before-sync": "lost: ",
    "manifest-not-synced": "log verify: {data}/MANIFEST is damaged ",
}
"""Planted faults that only a loss of power shows, with the beginning of the campaign's fault."""

_why_not = cache(why_not)


def _campaign(directory: Path, kind: str, cuts: int, plant: str = "") -> PowerResult:
    reason = _why_not(kind)
    if reason:
        pytest.skip(f"no power cuts on {kind}: {reason}")
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return run_power_campaign(directory, kind, seed=seed, cuts=cuts, plant=plant, drain_seconds=_DRAIN_SECONDS)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_promised_is_lost_by_a_power_cut(tmp_path: Path, kind: str) -> None:
    """Without the journal's last part all accepted messages arrive, and the log verifies; the broker ends with 74."""
    found = _campaign(tmp_path, kind, _CUTS)
    assert found.result.faults == ()
    assert found.exit_codes == Counter({ExitCode.LOG_FAILED: _CUTS + 1})
    assert found.result.accepted > 0
    assert found.result.updated > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plant", FOUND_BY_CUT)
def test_a_planted_fault_is_found(tmp_path: Path, kind: str, plant: str) -> None:
    """A campaign with the fault names it."""
    faults = _campaign(tmp_path, kind, _PLANTED_CUTS, plant).result.faults
    expected = FOUND_BY_CUT[plant].format(data=tmp_path / "mounted" / "data")
    assert [fault for fault in faults if fault.startswith(expected)], faults
