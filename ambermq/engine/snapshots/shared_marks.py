"""Marks of a snapshot: equal ones become one value, and equal texts one text, as they are in the state of a broker.

Rule 1. The newest marks are known, a limited number. So a snapshot with ever other marks takes no more memory while it
        is read.
Rule 2. All texts and annotations are known: the queues count each distinct one (outcome_annotations.py).
"""

from typing import Final, final

from msgspec.structs import force_setattr

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.marks import Marks, SetAsideFor
from ambermq.engine.model.queue_parts.columns import Annotations

__all__ = ["SharedMarks"]

_KNOWN_MAX: Final = 4096


@final
class SharedMarks:
    """The marks that have been read so far."""

    def __init__(self) -> None:
        self._values: dict[Marks | SetAsideFor, Marks | SetAsideFor] = {}
        self._texts: dict[str, str] = {}
        self._annotations: dict[Annotations, Annotations] = {}

    def share(self, entry: Entry) -> None:
        """Replace the marks of an entry that was just read, and that nothing else has yet, by equal ones."""
        # A frozen value is changed before anything has seen it: a copy would take as long as its decoding.
        if entry.marks is not None:
            force_setattr(entry, "marks", self._shared(entry.marks))
        if entry.set_aside_for is not None:
            force_setattr(entry, "set_aside_for", self._shared(entry.set_aside_for))
        if entry.annotations:
            force_setattr(entry, "annotations", self._annotations.setdefault(entry.annotations, entry.annotations))

    def _shared(self, value: Marks | SetAsideFor) -> Marks | SetAsideFor:
        known = self._values.get(value)
        if known is not None:
            return known
        for name in ("description", "source", "first_source"):
            if text := getattr(value, name, ""):
                force_setattr(value, name, self._texts.setdefault(text, text))
        if len(self._values) >= _KNOWN_MAX:
            self._values.clear()
        self._values[value] = value
        return value
