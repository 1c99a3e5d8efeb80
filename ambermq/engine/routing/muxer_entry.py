"""One muxer of the router: its attachments in State, their index, and the muxers that it sends messages to."""

from collections import Counter
from operator import attrgetter
from typing import final

from ambermq.engine.matching.muxer_index import MuxerIndex
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.muxer import Muxer
from ambermq.engine.time_budget import TimeBudget
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["IndexedMuxer"]


@final
class IndexedMuxer:
    """The index of one muxer's attachments; `attachments` is the map that the index is built from."""

    __slots__ = ("attachments", "index", "member_muxers")

    def __init__(
        self,
        muxer: Muxer,
        muxers: "PersistentMap[int, Muxer]",
        *,
        cached_max: int,
        budget: TimeBudget | None = None,
    ) -> None:
        """Index all attachments. A member is a muxer if `muxers` has its id."""
        self.attachments = muxer.attachments
        self.index = MuxerIndex(muxer.kind, separator=muxer.options.separator, cached_max=cached_max, budget=budget)
        self.member_muxers: Counter[int] = Counter()
        """The members that are muxers, each with the number of its attachments."""
        # A map has no order. An index that gets an older attachment late renumbers all younger ones.
        for attachment in sorted(muxer.attachments.values(), key=attrgetter("id")):
            self._add(attachment, muxers)

    def attach(self, attachment: Attachment, muxer: Muxer, muxers: "PersistentMap[int, Muxer]") -> None:
        """Add an attachment; `muxer` has it already."""
        self._add(attachment, muxers)
        self.attachments = muxer.attachments

    def detach(self, attachment: int, muxer: Muxer) -> None:
        """Remove an attachment; `muxer` does not have it any more."""
        gone = self.attachments.get(attachment)
        if gone is not None:
            self.index.remove(gone)
            if gone.member in self.member_muxers:
                self.member_muxers[gone.member] -= 1
                if not self.member_muxers[gone.member]:
                    del self.member_muxers[gone.member]
        self.attachments = muxer.attachments

    def _add(self, attachment: Attachment, muxers: "PersistentMap[int, Muxer]") -> None:
        self.index.add(attachment)
        if attachment.member in muxers:
            self.member_muxers[attachment.member] += 1
