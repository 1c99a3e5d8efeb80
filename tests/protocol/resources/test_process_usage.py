"""The readings of the process."""

import os
from pathlib import Path

from ambermq.protocol.resources.process_usage import ProcessUsage, process_usage


def test_this_process_is_read() -> None:
    """An opened file counts at once; the memory is that of a Python process."""
    before = process_usage()
    assert before.descriptors is not None
    assert before.memory_bytes is not None
    assert 1 << 20 < before.memory_bytes < 1 << 40
    with Path(os.devnull).open("rb"):
        assert process_usage().descriptors == before.descriptors + 1


def test_anonymous_and_swapped_pages_are_summed(tmp_path: Path) -> None:
    """Pages of files are not counted. Without a size of the directory its entries are, but for that of the listing."""
    (tmp_path / "status").write_text("Name:\tx\nRssAnon:\t  100 kB\nRssFile:\t 50 kB\nVmSwap:\t 3 kB\n")
    assert process_usage(tmp_path).memory_bytes == 103 * 1024


def test_a_machine_that_tells_nothing_is_never_low(tmp_path: Path) -> None:
    """As another system than Linux."""
    assert process_usage(tmp_path / "none") == ProcessUsage(None, None)
    (tmp_path / "status").write_text("Name:\tx\n")
    assert process_usage(tmp_path).memory_bytes is None
