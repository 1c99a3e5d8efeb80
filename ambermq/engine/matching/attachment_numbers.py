"""Attachments by number.

A number is an index in the order of ids, so a list sorted by number is sorted by id. Bisection finds the number of an
attachment, so the number is not stored: 19 bytes per attachment.

Rule 1. A removed attachment leaves a hole. Only the same attachment can fill it. If holes outnumber attachments, the
        owner builds a new table (matchers.py).
Rule 2. A caller that stores numbers must apply what `insert` returns: None, or the new number of each.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, final

from ambermq.engine.model.attachment import Attachment

__all__ = ["AttachmentNumbers", "Moved"]

Moved = Sequence[int]
"""The new number of each old number, in the same order. The value for a hole has no meaning."""

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

    @property
    def end(self) -> int:
        """The number after the last one."""
        return len(self._ids)

    def get(self, number: int) -> Attachment | None:
        """Return the attachment of a number, None for a hole."""
        attachment = self._attachments[number]
        return None if attachment is _HOLE else attachment

    def at(self, numbers: Iterable[int]) -> tuple[Attachment, ...]:
        """Return the attachments that have these numbers."""
        attachments = self._attachments
        return tuple(map(attachments.__getitem__, numbers))

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
