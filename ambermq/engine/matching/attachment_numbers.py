"""Attachments by number.

A number is an index in the order of ids, so a list sorted by number is sorted by id. Bisection finds the number of an
attachment, so the number is not stored: 19 bytes per attachment.

Rule 1. A removed attachment leaves a hole. Only the same attachment can fill it. If holes outnumber attachments,
        `close_up` removes the holes.
Rule 2. A caller that stores numbers must apply what `insert` and `close_up` return: None, or the new number of each.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, final

from ambermq.engine.model.attachment import Attachment

__all__ = ["AttachmentNumbers", "Moved"]

Moved = Sequence[int]
"""The new number of each old number, in the same order. The value for a hole has no meaning."""

_HOLES_MIN: Final = 64
_HOLE: Final = Attachment(0, 0)
"""The value at the number of a removed attachment."""


@final
class AttachmentNumbers:
    """Attachments in order of id."""

    __slots__ = ("_attachments", "_count", "_ids", "needed")

    def __init__(self) -> None:
        self._attachments: list[Attachment] = []
        self._ids = array("Q")
        self.needed: array[int] = array("H")
        """By number: the count of terms that must be hit for the attachment to match."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def at(self, numbers: Iterable[int]) -> tuple[Attachment, ...]:
        """Return the attachments that have these numbers."""
        attachments = self._attachments
        return tuple([attachments[number] for number in numbers])

    def number_of(self, attachment: Attachment) -> int:
        """Return the number of an attachment in the table."""
        return bisect_left(self._ids, attachment.id)

    def present(self) -> tuple[Attachment, ...]:
        """Return all attachments, in order of id."""
        return tuple(one for one in self._attachments if one is not _HOLE)

    def insert(self, attachment: Attachment, needed: int) -> Moved | None:
        """Insert an attachment. Its number is usually the highest, since ids grow; else higher numbers move by one."""
        number = self.number_of(attachment)
        is_last = number == len(self._ids)
        self._count += 1
        if not is_last and self._ids[number] == attachment.id:
            assert self._attachments[number] is _HOLE, f"attachment {attachment.id} is there already"
            self._attachments[number] = attachment
            self.needed[number] = needed
            return None
        self._ids.insert(number, attachment.id)
        self._attachments.insert(number, attachment)
        self.needed.insert(number, needed)
        return None if is_last else array("I", [*range(number), *range(number + 1, len(self._ids))])

    def remove(self, number: int) -> None:
        """Remove the attachment of a number."""
        assert self._attachments[number] is not _HOLE
        self._attachments[number] = _HOLE
        self._count -= 1

    def close_up(self) -> Moved | None:
        """Remove the holes if there are many; return the new numbers, or None if nothing changed."""
        holes = len(self._ids) - self._count
        if holes <= max(_HOLES_MIN, self._count):
            return None
        moved = array("I", bytes(array("I").itemsize * len(self._ids)))
        kept = [number for number, one in enumerate(self._attachments) if one is not _HOLE]
        for new, old in enumerate(kept):
            moved[old] = new
        self._attachments = [self._attachments[number] for number in kept]
        self._ids = array("Q", [self._ids[number] for number in kept])
        self.needed = array("H", [self.needed[number] for number in kept])
        return moved
