"""One finding of the doctor."""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Finding", "Level"]


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    """The broker works, but more slowly or with less room than it could."""
    FAULT = "fault"
    """Messages may be lost, or the broker does not start."""


class Finding(NamedTuple):
    """What a check found."""

    check: str
    level: Level
    found: str
    advice: str = ""
    """What to do; empty if nothing has to be done."""
