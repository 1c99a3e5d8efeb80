"""The wiring of a broker as rows, from a running broker or from a log."""

from typing import Any, NamedTuple

__all__ = ["WiringRows"]


class WiringRows(NamedTuple):
    """All muxers, queues and attachments with their attributes in `$management`, the oldest first."""

    muxers: list[dict[str, Any]]
    queues: list[dict[str, Any]]
    attachments: list[dict[str, Any]]
