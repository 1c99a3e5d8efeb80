"""The limits of wiring at the `$management` node: the operation GET-LIMITS.

A command that tries a change of wiring in memory reads the limits first. So it refuses only what the broker refuses.
"""

from collections.abc import Mapping
from typing import Any, Final

from ambermq.engine.commands import Command, Inspect

__all__ = ["GET_LIMITS", "LIMITS", "limits"]

GET_LIMITS: Final = "GET-LIMITS"
LIMITS: Final = (
    "argument_bytes_max",
    "attachments_max",
    "chain_muxers_max",
    "conditions_max",
    "muxers_max",
    "name_bytes_max",
    "queues_max",
)
"""The names of the limits, which are fields of EngineConfig."""


def limits(request: Any, _asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    """Return the command of a request."""
    config = request.peer.gateway.engine.config
    return Inspect(request, lambda _state: {name: getattr(config, name) for name in LIMITS})
