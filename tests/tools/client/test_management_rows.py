"""Listings of a broker that lists without end."""

from typing import Any

import pytest

from ambermq.tools.client import management_client
from ambermq.tools.client.management_client import Management
from ambermq.tools.terminal.errors import ToolError


def test_a_listing_without_end_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are counted, whatever total the broker tells."""
    monkeypatch.setattr(management_client, "ROWS_MAX", 5)
    asked: list[int] = []

    def request(_self: Management, _operation: str, _kind: str, page: Any) -> tuple[int, dict[str, Any]]:
        asked.append(page["offset"])
        return 200, {"attributeNames": ["name"], "results": [["a"], ["b"]], "total": 1 << 60}

    monkeypatch.setattr(Management, "request", request)
    rows = Management.__new__(Management).rows("org.ambermq.queue")
    with pytest.raises(ToolError, match="the broker lists too much"):
        list(rows)
    assert asked == [0, 2, 4]
