"""The attachments of one muxer, and which of them a message passes on by; docs/muxers.md has the table of classes.

An index is derived from wiring and holds nothing that peers can make grow: what they send is looked up. What lately
seen destinations and texts came to is remembered, `cached_max` of them, until an attachment comes or goes.
"""

from typing import assert_never, final

from ambermq.engine.matching.matchers import Destinations, Everything, Matcher, Patterns, Properties, Selectors
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.selectors.fields import Fields

__all__ = ["MuxerIndex"]


@final
class MuxerIndex:
    """A muxer's attachments: taken up and let go one by one, in any order, cheapest in that of their ids."""

    __slots__ = ("_matcher",)

    def __init__(self, kind: MuxerKind, *, separator: str = ".", cached_max: int = 10_000) -> None:
        self._matcher = _matcher_of(kind, separator, cached_max)

    def __len__(self) -> int:
        return len(self._matcher)

    def add(self, attachment: Attachment) -> None:
        """Take up an attachment that is not here; its argument was checked when it was declared."""
        self._matcher.add(attachment)

    def remove(self, attachment: Attachment) -> None:
        """Let go an attachment that is here."""
        self._matcher.remove(attachment)

    def match(self, destination: str, fields: Fields | None) -> tuple[Attachment, ...]:
        """Return the attachments that a message passes on by, in order of id.

        Of a LOSSY muxer that is all of them: drawing is the router's. Without fields no property matches, no selector.
        """
        return self._matcher.match(destination, fields)


def _matcher_of(kind: MuxerKind, separator: str, cached_max: int) -> Matcher:
    match kind:
        case MuxerKind.SIMPLE | MuxerKind.LOSSY:
            return Everything()
        case MuxerKind.DESTINATION:
            return Destinations()
        case MuxerKind.WILD_DESTINATION:
            return Patterns(separator, cached_max)
        case MuxerKind.PROPERTY:
            return Properties(None, cached_max)
        case MuxerKind.WILD_PROPERTY:
            return Properties(separator, cached_max)
        case MuxerKind.SELECTOR:
            return Selectors()
        case _:
            assert_never(kind)
