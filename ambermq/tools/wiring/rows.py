"""The wiring of a broker as rows: asked of one that runs, or as it was, read from its log."""

from typing import Any, NamedTuple

from ambermq.tools.past.low_priority import step_back
from ambermq.tools.wiring.client import managed_wiring

__all__ = ["WiringRows", "wiring_rows"]


class WiringRows(NamedTuple):
    """Everything that is wired, each by its attributes as `$management` tells them, the oldest first."""

    muxers: list[dict[str, Any]]
    queues: list[dict[str, Any]]
    attachments: list[dict[str, Any]]


def wiring_rows(url: str | None, data: str | None, at: str | None = None) -> WiringRows:
    """Return the wiring that options and environment name, `at` a moment where one is given. Raises ToolError."""
    if at is not None:
        step_back()
        from ambermq.tools.wiring.past_wiring import rows_at  # noqa: PLC0415 - a quarter of a second that only --at needs

        return rows_at(url, data, at)
    with managed_wiring(url, data) as management:
        return WiringRows(list(management.muxers()), list(management.queues()), list(management.attachments()))
