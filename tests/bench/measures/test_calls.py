"""The counter of Python calls, on this checkout."""

from pathlib import Path

import pytest

from bench.measures.calls import CLIENTS, count_calls

TREE = Path(__file__).parents[3]


@pytest.mark.parametrize("client", CLIENTS)
def test_each_message_is_counted(client: str) -> None:
    """From the read of its transfer to the write of its settlement: two ticks at least, and no call of the next one."""
    counted = count_calls(TREE, client, 3)
    assert len(counted["messages"]) == 3
    for one in counted["messages"]:
        assert one["ticks"] >= 2
        assert one["files"] <= one["file_changes"] < one["calls"] <= one["with_sync"]
    assert counted["functions"]["durable_loop.py:DurableLoop.step"] >= 6
