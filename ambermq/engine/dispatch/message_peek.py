"""What selectors ask of messages on queues: their bodies from the log, as they are there now.

Rule 1. A large message is looked at by its first piece: what selectors ask about stands before the body.
Rule 2. What the running tick has drafted is not in the log yet: nobody looks at it before the write.
Rule 3. A message that cannot be believed is nobody's: it is reported, and leaves its queue.
"""

from collections.abc import Callable, Sequence
from typing import final

from ambermq.engine.commands import ReportDamage
from ambermq.engine.dispatch.selector_scan import Counted
from ambermq.engine.model.entry import Entry
from ambermq.engine.routing.router import FieldsOf
from ambermq.engine.selectors.fields import Fields
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED
from ambermq.log.write.log import Log

__all__ = ["MessagePeek"]


@final
class MessagePeek:
    """The messages of one log, to be looked at."""

    __slots__ = ("_fields_of", "_log", "_report")

    def __init__(self, log: Log, fields_of: FieldsOf, report: Callable[[ReportDamage], None]) -> None:
        self._log = log
        self._fields_of = fields_of
        self._report = report

    def at(self, queue: int, words: Sequence[int], entries: Sequence[Entry | None]) -> list[Fields | None] | None:
        """Return what may be asked of messages on a queue, of the first ones at least; None where they must wait.

        They do for their write, or to be read, which was asked for.
        """
        log_end = self._log.log_end
        pairs = [(word, entry) for word, entry in zip(words, entries, strict=True) if word >> 16 < log_end]
        firsts = [entry.chunks[0] if entry and entry.chunks else word >> 16 for word, entry in pairs]
        found = self._log.bodies.get_run(firsts) if firsts else None
        if found is None:
            return None
        fields: list[Fields | None] = []
        for (word, entry), body in zip(pairs, found, strict=True):
            if body is DAMAGED:
                self._report(ReportDamage(queue, word))
                fields.append(None)
            else:
                fields.append(self._as_it_is(body, entry))
        return fields

    def _as_it_is(self, body: Buffer, entry: Entry | None) -> Fields:
        """Return what a message says with what its queue knows of it: failed deliveries, annotations added."""
        if entry is None:
            return self._fields_of(body)
        seen = self._fields_of(body, entry.annotations) if entry.annotations else self._fields_of(body)
        return Counted(seen, entry.count)
