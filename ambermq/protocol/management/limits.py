"""What a broker's configuration allows wiring to be, asked of its `$management` node: the operation GET-LIMITS.

Rule: whoever rehearses a change of wiring asks first, so that what the broker would take is not refused before it.
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
"""The names that EngineConfig has for them."""


def limits(request: Any, _asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    """Make a request's command."""
    config = request.peer.gateway.engine.config
    return Inspect(request, lambda _state: {name: getattr(config, name) for name in LIMITS})
