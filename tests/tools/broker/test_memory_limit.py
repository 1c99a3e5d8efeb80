"""The default of `memory_bytes_max`: a quarter of the least limit of the process."""

import subprocess
import sys
from pathlib import Path

import pytest

from ambermq.tools.broker import memory_limit
from ambermq.tools.broker.memory_limit import default_memory_bytes

MIB = 1 << 20
NONE = 1 << 62


@pytest.mark.parametrize(
    ("physical", "cgroup", "space", "left", "expected"),
    [
        (8192, NONE // MIB, NONE // MIB, NONE // MIB, 2048),
        (8192, 1024, NONE // MIB, NONE // MIB, 256),
        (8192, 4096, 1024, 700, 256),
        (8192, 4096, 400, 100, 50),
        (8192, 16, NONE // MIB, NONE // MIB, 8),
    ],
)
def test_the_least_limit_decides(
    monkeypatch: pytest.MonkeyPatch, physical: int, cgroup: int, space: int, left: int, expected: int
) -> None:
    """Beside a small rest of the address space it is half of that; it is never less than 8 MiB."""
    for name, value in (("_physical_bytes", physical), ("_cgroup_bytes", cgroup), ("_address_space_bytes", space)):
        monkeypatch.setattr(memory_limit, name, lambda value=value: value * MIB)
    monkeypatch.setattr(memory_limit, "address_space_left", lambda: left * MIB)
    assert default_memory_bytes() == expected * MIB


@pytest.mark.parametrize("file", ["memory.max", "memory.high", "memory/memory.limit_in_bytes"])
def test_a_cgroup_has_the_limits_of_those_above_it(tmp_path: Path, file: str) -> None:
    """Both versions of cgroups; `max` and what cannot be read are no limit."""
    root, membership = tmp_path / "cgroup", tmp_path / "membership"
    assert memory_limit._cgroup_bytes(root, membership) == NONE
    membership.write_text("0::/a/b\n")
    inner = root / "a" / "b"
    (inner / "memory").mkdir(parents=True)
    (root / "a" / "memory").mkdir()
    (inner / file).write_text("max\n")
    (root / "a" / file).write_text("1048576\n")
    assert memory_limit._cgroup_bytes(root, membership) == MIB


def test_the_limit_of_the_address_space_is_read() -> None:
    """As `ulimit -v` sets it, less what the process has mapped."""
    code = "from ambermq.tools.broker.memory_limit import address_space_left as left; print(left())"
    for limit, bound in (("1048576", 1 << 30), ("unlimited", NONE + 1)):
        command = ["sh", "-c", f'ulimit -v {limit} && exec "$0" -c "$1"', sys.executable, code]
        left = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
        assert bound // 2 < left < bound
