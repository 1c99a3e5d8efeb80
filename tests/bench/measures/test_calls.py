"""The counter of Python calls, on this checkout."""

from pathlib import Path

import pytest

from bench.measures.calls import CLIENTS, count_calls

TREE = Path(__file__).parents[3]


@pytest.mark.parametrize("client", CLIENTS)
def test_each_message_is_counted(client: str) -> None:
    """From the read of its transfer to the write of its settlement: its tick at least, and no call of the next one.

    On a busy machine its settlement may share the tick of the next message, which is not counted.
    """
    # On a busy machine the counter leaves out messages that were not alone, so it gets more than it needs.
    counted = count_calls(TREE, client, 12)
    assert counted["messages"]
    for one in counted["messages"]:
        assert one["ticks"] >= 1
        assert one["files"] <= one["file_changes"] < one["calls"] <= one["with_sync"]
    assert counted["functions"]["durable_loop.py:DurableLoop.step"] >= len(counted["messages"])
