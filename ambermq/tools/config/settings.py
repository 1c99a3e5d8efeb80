"""The limits and users of a broker: the tables and keys of its configuration, as classes.

    [engine]      the names of EngineConfig         [server]   the names of ServerLimits
    [log]         the names of LogConfig            [users]    name = "password"
    [listeners]   the names of ListenerConfig
    [connection]  the names of ConnectionLimits     [permissions]  the names of Permissions
    [compaction]  the names of CompactionConfig     [retention]    the names of RetentionConfig
    [logging]     the names of LogLines            [audit]        the names of AuditConfig
    [telemetry]   the names of TelemetryConfig
    [[templates]] of queues (template_settings.py)

Rule: a key of the configuration is the name of a field; no second list of keys exists. resolution.py reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ambermq.engine.config import EngineConfig
from ambermq.log.config import LogConfig
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.server.listeners.listener_config import ListenerConfig
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.config.audit_settings import AuditConfig
from ambermq.tools.config.compaction_schedule import CompactionConfig
from ambermq.tools.config.retention_schedule import RetentionConfig
from ambermq.tools.config.telemetry_settings import TelemetryConfig

__all__ = ["LOG_FORMATS", "LOG_LEVELS", "LogLines", "Permissions", "Settings"]

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMATS: Final = ("auto", "json", "pretty")


def _one_of(default: str, choices: tuple[str, ...]) -> Any:
    """Return the field of a key whose value is one of a few words."""
    return field(default=default, metadata={"choices": choices})


@dataclass(frozen=True, slots=True)
class LogLines:
    """The keys of [logging]: the log lines of the broker, which go to standard error."""

    level: str = _one_of("info", LOG_LEVELS)
    """The lowest level of log lines: debug, info, warning or error."""
    format: str = _one_of("auto", LOG_FORMATS)
    """Log lines as JSON, or for people; auto: for people on a terminal, else JSON."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """The users with extra permissions."""

    log: tuple[str, ...] = ()
    """Users that may read the source `/log`; without users every client of this machine may."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits and the users of a broker."""

    engine: EngineConfig = field(default_factory=EngineConfig)
    """Limits of queues and ticks."""
    log: LogConfig = field(default_factory=LogConfig)
    """Limits of segments and batches."""
    connection: ConnectionLimits = field(default_factory=ConnectionLimits)
    """Limits of one connection."""
    server: ServerLimits = field(default_factory=ServerLimits)
    """Limits of the server."""
    listeners: ListenerConfig = field(default_factory=ListenerConfig)
    """Where the server listens, and what peers must prove."""
    compaction: CompactionConfig = field(default_factory=CompactionConfig)
    """The schedule of automatic compaction."""
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    """The schedule of retention."""
    logging: LogLines = field(default_factory=LogLines)
    """The log lines."""
    audit: AuditConfig = field(default_factory=AuditConfig)
    """The limits of the audit log."""
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    """The spans of messages."""
    users: Mapping[str, str] = field(default_factory=dict)
    """Name to password; empty: anonymous clients on the loopback interface."""
    permissions: Permissions = field(default_factory=Permissions)
    """The users with extra permissions."""
