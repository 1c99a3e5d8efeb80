"""The first release that can read a log, and the moment at which a log begins to need a later one.

Rule 1. A new program writes nothing that the release before cannot read, until one of its new features is used.
Rule 2. The manifest notes the release that the log needs. A kill before that edit makes the next such event note it.
"""

from functools import partial
from typing import NamedTuple, final

from ambermq.engine.events.event_type import FIRST_RELEASE
from ambermq.engine.events.registry import TYPE_NAMES, least_release, release_order
from ambermq.log.manifest.manifest import note_release
from ambermq.log.write.log import Log

__all__ = ["FormatLevel", "FormatRaised"]


class FormatRaised(NamedTuple):
    """The first events that earlier releases cannot read."""

    types: tuple[str, ...]
    """The names of their types."""
    before: str
    """The first release that could read the log before them."""
    after: str
    """The first release that can read it now."""


@final
class FormatLevel:
    """The level of one log."""

    __slots__ = ("_log", "_release")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._release = log.manifest.least_release or FIRST_RELEASE

    def take_raised(self) -> FormatRaised | None:
        """Return what has raised the level since the last call, after a request to note it; None if nothing has."""
        types = self._log.draft.newer_types
        if not types:
            return None
        found, before = sorted(types), self._release
        types.clear()
        after = least_release(found)
        if release_order(after) <= release_order(before):
            return None
        self._release = after
        self._log.edit_manifest(partial(note_release, release=after))
        return FormatRaised(tuple(TYPE_NAMES[one] for one in found), before, after)
