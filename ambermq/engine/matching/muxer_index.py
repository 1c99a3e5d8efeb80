"""The index of one muxer's attachments; it finds those that match a message. docs/muxers.md has the table of classes.

The index is derived from the wiring, so messages cannot make it grow. Its caches have at most `cached_max` destinations
and texts, and are cleared if an attachment is added or removed.
"""

from typing import assert_never, final

from ambermq.engine.matching.matchers import Destinations, Everything, Matcher, Patterns, Properties, Selectors
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.selectors.fields import Fields
from ambermq.engine.time_budget import TimeBudget

__all__ = ["MuxerIndex"]


@final
class MuxerIndex:
    """An index of attachments. They are added and removed one by one; the order of ids is the cheapest."""

    __slots__ = ("_matcher",)

    def __init__(
        self, kind: MuxerKind, *, separator: str = ".", cached_max: int = 10_000, budget: TimeBudget | None = None
    ) -> None:
        self._matcher = _matcher_of(kind, separator, cached_max, budget or TimeBudget())

    def __len__(self) -> int:
        return len(self._matcher)

    def add(self, attachment: Attachment) -> None:
        """Add an attachment that is not in the index. Its argument was checked when it was declared."""
        self._matcher.add(attachment)

    def remove(self, attachment: Attachment) -> None:
        """Remove an attachment that is in the index."""
        self._matcher.remove(attachment)

    def match(self, destination: str, fields: Fields | None) -> tuple[Attachment, ...]:
        """Return the attachments that match a message, in order of id.

        A LOSSY muxer matches all of them: the router draws. Without fields no property and no selector matches.
        Raises MatchUnfinished if the time is over: the next call for the same fields, or destination, goes on.
        """
        return self._matcher.match(destination, fields)


def _matcher_of(kind: MuxerKind, separator: str, cached_max: int, budget: TimeBudget) -> Matcher:
    match kind:
        case MuxerKind.SIMPLE | MuxerKind.LOSSY:
            return Everything()
        case MuxerKind.DESTINATION:
            return Destinations()
        case MuxerKind.WILD_DESTINATION:
            return Patterns(separator, cached_max, budget)
        case MuxerKind.PROPERTY:
            return Properties(None, cached_max, budget)
        case MuxerKind.WILD_PROPERTY:
            return Properties(separator, cached_max, budget)
        case MuxerKind.SELECTOR:
            return Selectors()
        case _:
            assert_never(kind)
