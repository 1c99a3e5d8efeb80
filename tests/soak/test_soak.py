"""A soak of half a minute: each kind of work and fault runs, and no promise is broken."""

import json
import secrets
from pathlib import Path

from tests.soak.__main__ import json_of
from tests.soak.faults import FAULTS
from tests.soak.soak import run_soak
from tests.soak.work import WORK


def test_a_short_soak_keeps_every_promise(tmp_path: Path) -> None:
    """All kinds run, a broker that is killed and stopped keeps its promises, and samples and latencies are recorded.

    Its figures are those of half a minute beside other tests: they are not judged.
    """
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    record = run_soak(tmp_path, seed=seed, minutes=0.5)
    assert record.faults == [], f"seed {seed}"
    assert set(record.rounds) == {*WORK, *FAULTS}
    assert record.accepted > 0
    assert record.samples[-1].descriptors > 0
    assert record.latencies
    assert [finding.name for finding in record.findings] == ["latency"]
    read = json.loads(json_of(record))
    assert read["rounds"] == record.rounds
    assert len(read["samples"]) == len(record.samples)
