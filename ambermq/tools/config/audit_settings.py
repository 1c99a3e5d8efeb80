"""The limits of the audit log."""

from dataclasses import dataclass

from ambermq.protocol.amqp10.limits import bounded

__all__ = ["AuditConfig"]


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """The table `[audit]` of the configuration."""

    bytes_max: int = bounded(1 << 30, least=1 << 20)
    """All files of the audit log. Above it the oldest file goes, and the chain begins with the next one."""
    file_bytes: int = bounded(16 << 20, least=1 << 16)
    """One file. A line that does not fit begins the next."""
    queue_max: int = bounded(10_000, least=1)
    """Events that wait for the disk. Further ones are counted, and the log says how many are missing."""
    text_max: int = bounded(256, least=16)
    """The characters of a value that a client chose. The rest is cut."""
    required: bool = False
    """Whether the broker ends with exit code 74 when the audit log cannot be written."""
