"""The configuration at the `$management` node: requests of type `org.ambermq.config` become commands to a port.

Rule 1. The broker, not an engine, carries out these commands: the configuration is of the whole broker. It answers by
        the effects Answered and RefusedCommand with the command's key.
Rule 2. No answer has a secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from ambermq.protocol.management.request_fields import number_field, refuse_unknown
from ambermq.protocol.management.vhosts import AnswerPort

__all__ = [
    "CONFIG_ATTRIBUTES",
    "CONFIG_OPERATIONS",
    "CONFIG_TYPE",
    "ConfigCommand",
    "ConfigPort",
    "QueryConfig",
    "ReloadConfig",
]

CONFIG_TYPE: Final = "org.ambermq.config"
CONFIG_ATTRIBUTES: Final = ("key", "value", "source", "is_live", "pending")


@final
@dataclass(frozen=True, slots=True)
class QueryConfig:
    """Read a page of the keys with their values."""

    key: Any
    offset: int
    count: int


@final
@dataclass(frozen=True, slots=True)
class ReloadConfig:
    """Read the configuration again, and apply what changes live."""

    key: Any


ConfigCommand = QueryConfig | ReloadConfig


class ConfigPort(Protocol):
    """The part of the broker that carries out commands about its configuration."""

    def ask(self, gateway: AnswerPort, command: ConfigCommand) -> None:
        """Carry out a command and answer `gateway` with effects, at once or later."""


def _query(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], results_max: int) -> ConfigCommand:
    count = min(number_field(properties, "count", results_max), results_max)
    return QueryConfig(request, number_field(properties, "offset", 0), count)


def _reload(request: Any, _properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> ConfigCommand:
    refuse_unknown(body, "configuration")
    return ReloadConfig(request)


CONFIG_OPERATIONS: Final = {"QUERY": _query, "RELOAD": _reload}
