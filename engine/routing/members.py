"""What each queue or muxer is attached by: the other direction of the wiring in State.

Rule: most members have one attachment, which costs an entry of a dict and no object of its own. Those of a member that
has several are found by a hash of muxer and argument: attaching one queue for a hundred thousand patterns compares none
of them with the others.
"""

from typing import final

from engine.attachment import Argument, Attachment, argument_text
from engine.state import State

__all__ = ["Members"]

_Several = dict[int, tuple[int, ...]]
"""Hash of muxer and argument -> ids of attachments, mostly one."""


@final
class Members:
    """Attachments by member, of one virtual host."""

    __slots__ = ("_by_member",)

    def __init__(self, state: State) -> None:
        """Take all that State has."""
        self._by_member: dict[int, int | _Several] = {}
        for muxer in state.muxers.values():
            for attachment in muxer.attachments.values():
                self.add(state, muxer.id, attachment)

    def add(self, state: State, muxer: int, attachment: Attachment) -> None:
        """Take one more, which State has already."""
        member = attachment.member
        known = self._by_member.get(member)
        if known is None:
            self._by_member[member] = attachment.id
            return
        if isinstance(known, int):
            first = _found(state, known)
            known = {} if first is None else {_key(first[0], first[1].argument): (known,)}
            self._by_member[member] = known
        key = _key(muxer, attachment.argument)
        known[key] = (*known.get(key, ()), attachment.id)

    def remove(self, muxer: int, attachment: Attachment) -> None:
        """Let one go."""
        member = attachment.member
        known = self._by_member.get(member)
        if known == attachment.id:
            del self._by_member[member]
        elif isinstance(known, dict):
            key = _key(muxer, attachment.argument)
            left = tuple(one for one in known.get(key, ()) if one != attachment.id)
            if left:
                known[key] = left
            else:
                known.pop(key, None)
            if not known:
                del self._by_member[member]

    def find(self, state: State, muxer: int, member: int, argument: Argument) -> Attachment | None:
        """Return the attachment of a member to a muxer by an argument."""
        known = self._by_member.get(member, {})
        ids = (known,) if isinstance(known, int) else known.get(_key(muxer, argument), ())
        attachments = state.muxers[muxer].attachments
        for one in ids:
            attachment = attachments.get(one)
            if attachment is not None and _alike(attachment.argument, argument):
                return attachment
        return None

    def attachments_of(self, state: State, member: int) -> list[tuple[int, Attachment]]:
        """Return all of a member, as (muxer, attachment), in order of id."""
        known = self._by_member.get(member, {})
        ids = [known] if isinstance(known, int) else sorted(one for several in known.values() for one in several)
        return [found for one in ids if (found := _found(state, one)) is not None]


def _alike(one: Argument, other: Argument) -> bool:
    # True equals 1 in Python, and is another value to a condition.
    return one == other and argument_text(one) == argument_text(other)


def _key(muxer: int, argument: Argument) -> int:
    return hash((muxer, argument))


def _found(state: State, attachment: int) -> tuple[int, Attachment] | None:
    """Return the muxer that has an attachment, and the attachment."""
    for muxer in state.muxers.values():
        found = muxer.attachments.get(attachment)
        if found is not None:
            return muxer.id, found
    return None
