"""The fields of queued messages for selectors, read from the log.

Rule 1. Of a large message only the first piece is read: the fields that selectors use come before the body.
Rule 2. The drafts of the running tick are not in the log yet, so their messages are not read before the write.
Rule 3. A damaged message matches no selector. It is reported, and leaves its queue.
"""

from collections.abc import Callable, Sequence
from typing import final

from ambermq.engine.commands import ReportDamage
from ambermq.engine.dispatch.large_message import assemble, first_record
from ambermq.engine.dispatch.selector_scan import Counted
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.engine.routing.router import FieldsOf
from ambermq.engine.selectors.fields import Fields
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED
from ambermq.log.write.log import Log

__all__ = ["MessagePeek"]


@final
class MessagePeek:
    """The reader of message fields of one log."""

    __slots__ = ("_fields_of", "_log", "_report")

    def __init__(self, log: Log, fields_of: FieldsOf, report: Callable[[ReportDamage], None]) -> None:
        self._log = log
        self._fields_of = fields_of
        self._report = report

    def at(self, queue: int, words: Sequence[int], entries: Sequence[Entry | None]) -> list[Fields | None] | None:
        """Return the fields of messages on a queue, at least of the first ones; None if the caller must wait.

        The wait is for their write, or for their read from the disk, which this call requests. The element of a damaged
        message is None.
        """
        log_end = self._log.log_end
        pairs = [(word, entry) for word, entry in zip(words, entries, strict=True) if word >> 16 < log_end]
        firsts = [first_record(word, entry) for word, entry in pairs]
        found = self._log.bodies.get_run(firsts) if firsts else None
        if found is None:
            return None
        fields: list[Fields | None] = []
        for (word, entry), body in zip(pairs, found, strict=True):
            if body is DAMAGED:
                self._report(ReportDamage(queue, word))
                fields.append(None)
            else:
                fields.append(self._with_columns(body, entry))
        return fields

    def whole(
        self, queue: int, words: Sequence[int], entries: Sequence[Entry | None]
    ) -> Sequence[Buffer | None] | None:
        """Return whole messages on a queue; None if the caller must wait, as for `at`. A damaged one is None."""
        if any(word >> 16 >= self._log.log_end for word in words):
            return None
        known = assemble(self._log.bodies, words, entries)
        found = None if known is None else self._joined(known)
        if found is None:
            return None
        for word, body in zip(words, found, strict=True):
            if body is DAMAGED:
                self._report(ReportDamage(queue, word))
        return [None if body is DAMAGED else body for body in found]

    def _joined(self, messages: Sequence[Buffer | StoredMessage]) -> list[Buffer] | None:
        """Return messages with the large ones joined; None if a piece must be read from the disk first."""
        whole: list[Buffer] = []
        for message in messages:
            if not isinstance(message, StoredMessage):
                whole.append(message)
                continue
            pieces = self._log.bodies.get_run(list(message.offsets))
            if pieces is None:
                return None
            whole.append(DAMAGED if any(piece is DAMAGED for piece in pieces) else b"".join(pieces))
        return whole

    def _with_columns(self, body: Buffer, entry: Entry | None) -> Fields:
        """Return a message's fields with the columns of its entry: its deliveries before, and added annotations."""
        if entry is None:
            return self._fields_of(body)
        seen = self._fields_of(body, added) if (added := entry.added) else self._fields_of(body)
        return Counted(seen, entry)
