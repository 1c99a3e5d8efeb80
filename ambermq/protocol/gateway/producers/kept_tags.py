"""The delivery-tags of one sender that the broker keeps: its messages are stored, and it has not settled them.

Rule 1. Only a sender that settles after it knows the outcome (mode second) has them, and one that resumes its link.
Rule 2. The engine keeps them in its state. Here are those of this link, to answer a resumed delivery without it.
Rule 3. A delivery whose first frames came before the detach is not stored: it comes again as a whole.
"""

from collections.abc import Iterable, Sequence
from typing import Final, final

from ambermq.protocol.amqp10.link.resumption import UnsettledMap
from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState

__all__ = ["KEPT_OUTCOME", "KeptTags"]

KEPT_OUTCOME: Final = Accepted()
"""The outcome of each message whose tag is kept."""


@final
class KeptTags:
    """The kept tags of one link."""

    __slots__ = ("_cut_tag", "_kept", "_resumes", "_unsettled_ids")

    def __init__(self) -> None:
        self._resumes: UnsettledMap | None = None
        """The unsettled map of the peer's attach, until that is answered."""
        self._kept: set[bytes] = set()
        """The tags of stored messages that the sender has not settled."""
        self._unsettled_ids: dict[int, bytes] = {}
        """The tags of messages in receiver-settle-mode second by delivery-id."""
        self._cut_tag = b""
        """The tag of a delivery whose first frames came on the link before it was detached; nothing of it is stored."""

    def note_resumption(self, unsettled: UnsettledMap, cut_tag: bytes) -> None:
        """Note the unsettled map of the peer's attach, and the tag of a delivery that its detach had cut off."""
        self._resumes, self._cut_tag = unsettled, cut_tag

    def answer(self, kept: Sequence[bytes]) -> UnsettledMap | None:
        """Return our unsettled map for an attach: the kept tags with their outcome, and a delivery of which none is.

        `kept` are those of the engine. Returns None if the peer resumes nothing.
        """
        theirs, self._resumes = self._resumes, None
        if theirs is None:
            return None
        self._kept = set(kept)
        cut = self._cut_tag if self._cut_tag in theirs and self._cut_tag not in self._kept else b""
        self._cut_tag = cut
        ours: dict[bytes, DeliveryState | None] = dict.fromkeys(kept, KEPT_OUTCOME)
        return ours | ({cut: None} if cut else {})

    def is_kept(self, tag: bytes) -> bool:
        """Return whether the message of a tag is stored."""
        return tag in self._kept

    def note_unsettled(self, delivery_id: int, tag: bytes) -> None:
        """Note the tag of a delivery that the sender settles later."""
        self._unsettled_ids[delivery_id] = tag

    def keep(self, delivery_id: int) -> None:
        """Keep the tag of a delivery whose message is stored, if the sender has not settled it."""
        tag = self._unsettled_ids.get(delivery_id)
        if tag is not None:
            self._kept.add(tag)

    def settled(self, delivery_ids: Iterable[int]) -> list[bytes]:
        """Return the tags of deliveries that the sender has settled, and forget their ids."""
        if not self._unsettled_ids:
            return []
        tags = [self._unsettled_ids.pop(one, b"") for one in delivery_ids]
        return [tag for tag in tags if tag]

    def forget(self, tags: Sequence[bytes]) -> None:
        """Forget tags that the sender has settled."""
        self._kept.difference_update(tags)
