"""The wiring of a broker as rows, whether a running broker or its log tells it."""

from typing import Any, NamedTuple

__all__ = ["WiringRows"]


class WiringRows(NamedTuple):
    """Everything that is wired, each by its attributes as `$management` tells them, the oldest first."""

    muxers: list[dict[str, Any]]
    queues: list[dict[str, Any]]
    attachments: list[dict[str, Any]]
