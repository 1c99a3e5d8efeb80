"""Segments that are sealed: how many there are, and a load until there are enough.

The log prepares the next segment while the load runs; the active one grows until the next is ready. So the number of
messages in a segment varies, and a test that needs sealed segments sends until it has them.
"""

import time
from typing import Final

from click.testing import CliRunner

from ambermq.log.manifest.manifest import load
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main

__all__ = ["load_until_sealed", "sealed_count"]

_DEADLINE_S: Final = 120.0
_ROUND: Final = 500


def sealed_count(broker: ChildBroker) -> int:
    """How many segments the manifest calls sealed."""
    manifest = load(DiskStorage(), str(broker.directory))
    assert manifest is not None
    return len(manifest.sealed)


def load_until_sealed(broker: ChildBroker, count: int, *, url: str = "") -> int:
    """Publish and settle messages on a queue of their own until `count` segments are sealed; return how many came."""
    deadline, sent = time.monotonic() + _DEADLINE_S, 0
    while sealed_count(broker) < count:
        assert time.monotonic() < deadline, f"fewer than {count} segments are sealed: {broker.last_log_line()}"
        command = ["bench", "--count", str(_ROUND), "--size", "500", "--url", url or broker.url]
        done = CliRunner().invoke(main, command, prog_name="ambermq")
        assert done.exit_code == 0, done.stderr
        sent += _ROUND
    return sent
