"""The settings of a queue that exclude each other, as a table. docs/queues.md has the same rows.

Rule 1. A row names settings by text, and one that does not exist is never given. So a row may come before its setting.
Rule 2. A setting that new queues have without being asked for, such as `priorities`, is in no row.
Rule 3. The check is that of each declaration, update and template, so no queue has such a combination.
"""

from dataclasses import dataclass
from typing import Final

from ambermq.engine.errors import EngineError
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.settings.setting_table import SETTINGS

__all__ = ["CONFLICTS", "Conflict", "check_combination"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two settings that exclude each other."""

    first: str
    second: str
    """A name, or a name and the value that is excluded, such as `overflow block`."""
    why: str
    """As a phrase, for messages and docs."""

    def holds(self, settings: Settings) -> bool:
        """Return whether settings have both."""
        return all(_is_given(settings, one) for one in (self.first, self.second))


def _is_given(settings: Settings, text: str) -> bool:
    name, _, value = text.partition(" ")
    if name not in SETTINGS:
        return False
    found = getattr(settings, name)
    return bool(found == value) if value else found != SETTINGS[name].default


_NOTHING_TAKEN: Final = "a delivery of a non-destructive queue takes no message"

CONFLICTS: Final = (
    Conflict("last_value", "dedup_window_ms", "a newer message with the same key is no duplicate: it is the new value"),
    Conflict("non_destructive", "overflow block", "no consumer makes room, so producers would wait for ever"),
    Conflict("non_destructive", "delivery_count_max", _NOTHING_TAKEN + ", so none fails"),
    Conflict("non_destructive", "lock_ms", _NOTHING_TAKEN + ", so there is none to lock"),
    Conflict("non_destructive", "redelivery_delay_ms", _NOTHING_TAKEN + ", so there is none to offer again"),
    Conflict("non_destructive", "exclusive", "each consumer gets all messages"),
    Conflict("last_value", "cut_through", "a message replaces others when it is complete"),
    Conflict("non_destructive", "cut_through", "each consumer gets all messages, and begins with complete ones"),
    Conflict("dedup_window_ms", "cut_through", "a message is known to be a duplicate when it is complete"),
    Conflict("lock_ms", "cut_through", "a delivery begins with the end of its lock, which counts from its last frame"),
)
"""All of them, in the order of docs."""


def check_combination(settings: Settings) -> None:
    """Raise EngineError if two of the settings of a queue exclude each other."""
    for one in CONFLICTS:
        if one.holds(settings):
            raise EngineError(f"{one.first} and {one.second} exclude each other: {one.why}")
