"""The attachments of each member: the wiring in State, indexed by queue or muxer.

Rule 1. Most members have one attachment, which costs one entry of a dict and one number. If a member has several, a
        hash of muxer and argument finds one. So attaching one queue for 100,000 patterns compares none with the others.
Rule 2. Nothing scans all muxers, because each subscription with a selector has a muxer.
"""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Final, final

from ambermq.engine.model.attachment import Argument, Attachment
from ambermq.engine.model.condition_text import argument_text
from ambermq.engine.model.state import State

__all__ = ["ReverseWiring"]

_Several = dict[int, tuple[int, ...]]
"""Places of attachments, mostly one, by the hash of muxer and argument."""

_ID_BITS: Final = 64
_ID: Final = (1 << _ID_BITS) - 1
"""A place is the id of a muxer and the id of an attachment in one number."""


@final
class ReverseWiring:
    """The attachments of a virtual host by member; its length is their number."""

    __slots__ = ("_by_member", "_count")

    def __init__(self, state: State) -> None:
        """Add all attachments of `state`."""
        self._by_member: dict[int, int | _Several] = {}
        self._count = 0
        for muxer in state.muxers.values():
            for attachment in muxer.attachments.values():
                self.add(state, muxer.id, attachment)

    def __len__(self) -> int:
        return self._count

    def add(self, state: State, muxer: int, attachment: Attachment) -> None:
        """Add an attachment, which `state` has already."""
        member, place = attachment.member, muxer << _ID_BITS | attachment.id
        self._count += 1
        known = self._by_member.get(member)
        if known is None:
            self._by_member[member] = place
            return
        if isinstance(known, int):
            first = _found(state, known)
            known = {} if first is None else {_key(first[0], first[1].argument): (known,)}
            self._by_member[member] = known
        key = _key(muxer, attachment.argument)
        known[key] = (*known.get(key, ()), place)

    def remove(self, muxer: int, attachment: Attachment) -> None:
        """Remove an attachment that is in the index."""
        member, place = attachment.member, muxer << _ID_BITS | attachment.id
        self._count -= 1
        known = self._by_member.get(member)
        if known == place:
            del self._by_member[member]
        elif isinstance(known, dict):
            key = _key(muxer, attachment.argument)
            left = tuple(one for one in known.get(key, ()) if one != place)
            if left:
                known[key] = left
            else:
                known.pop(key, None)
            if not known:
                del self._by_member[member]

    def find(self, state: State, muxer: int, member: int, argument: Argument) -> Attachment | None:
        """Return the attachment with this muxer, member and argument, None if there is none."""
        known = self._by_member.get(member, {})
        for place in (known,) if isinstance(known, int) else known.get(_key(muxer, argument), ()):
            found = _found(state, place)
            if found is not None and found[0] == muxer and _alike(found[1].argument, argument):
                return found[1]
        return None

    def attachments_of(self, state: State, member: int, *, at_most: int | None = None) -> list[tuple[int, Attachment]]:
        """Return a member's attachments in `state` as (muxer, attachment), in order of id, at most `at_most`."""
        places = sorted(islice(self._places_of(member), at_most), key=_ID.__and__)
        return [found for one in places if (found := _found(state, one)) is not None]

    def upstream_muxers(self, state: State, member: int) -> set[int]:
        """Return the muxers that a member is attached to."""
        return {muxer for one in self._places_of(member) if (muxer := one >> _ID_BITS) in state.muxers}

    def _places_of(self, member: int) -> Iterable[int]:
        known = self._by_member.get(member, {})
        return (known,) if isinstance(known, int) else chain.from_iterable(known.values())


def _alike(one: Argument, other: Argument) -> bool:
    # In Python True equals 1, but a condition tells them apart, so the texts are compared too.
    return one == other and argument_text(one) == argument_text(other)


def _key(muxer: int, argument: Argument) -> int:
    return hash((muxer, argument))


def _found(state: State, place: int) -> tuple[int, Attachment] | None:
    """Return the muxer and the attachment of a place, None if `state` does not have them."""
    muxer = state.muxers.get(place >> _ID_BITS)
    attachment = None if muxer is None else muxer.attachments.get(place & _ID)
    return None if muxer is None or attachment is None else (muxer.id, attachment)
