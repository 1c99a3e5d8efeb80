"""What a command takes of a tick besides its events, in changes: some work leaves few events, and takes long."""

from typing import Final

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    Command,
    DetachConsumer,
    DetachProducer,
    EditMessages,
    FindMessages,
    Inspect,
    MoveMessages,
    RemoveMessages,
    ScheduleMessages,
    SettleNamed,
    TakeDeferred,
)

__all__ = ["EXPIRY_CHANGES", "HIDDEN_WORK", "LEAVES_PER_CHANGE", "MARK_CHANGES", "hidden_work"]

_LINK_COMMANDS: Final = frozenset({AttachConsumer, AttachProducer, DetachConsumer, DetachProducer})
_MESSAGE_COMMANDS: Final = frozenset(
    {EditMessages, FindMessages, MoveMessages, RemoveMessages, ScheduleMessages, SettleNamed, TakeDeferred}
)
HIDDEN_WORK: Final = _LINK_COMMANDS | _MESSAGE_COMMANDS | {AttachMember, Inspect}
"""The commands that take more of a tick than their events."""
_LINK_CHANGES: Final = 24
"""The changes that a link counts for, besides its events: an attach and its answer cost as much as 24 messages."""
EXPIRY_CHANGES: Final = 5
"""The changes that a run of messages with a time to live counts for, besides its events: one of a single message has an
expiry and a timer of its own, which takes 25 us."""
MARK_CHANGES: Final = 4
"""The changes that a run of messages with a priority or a delivery time counts for, besides its events: where these
differ, each message is a run with two events, which takes 35 us."""
LEAVES_PER_CHANGE: Final = 4
"""The messages that leave their queue by one settlement and count for a change."""
_INSPECT_CHANGES: Final = 500
"""The changes that a question counts for: a page of a listing takes 3 ms."""
_MESSAGES_CHANGES: Final = 1000
"""The changes that a request about single messages counts for: it looks at thousands of them."""
_CHANGES_PER_CHARACTER: Final = 2
"""The changes that a character of a selector or another argument counts for: a parser reads it."""


def hidden_work(command: Command) -> int:
    """Return the changes that a command of HIDDEN_WORK counts for, besides its events."""
    if type(command) is Inspect:
        return _INSPECT_CHANGES
    if type(command) in _MESSAGE_COMMANDS:
        return _MESSAGES_CHANGES
    changes = _LINK_CHANGES if type(command) in _LINK_COMMANDS else 0
    text = getattr(command, "selector", "") or getattr(command, "argument", "")
    return changes + len(text) * _CHANGES_PER_CHARACTER if isinstance(text, str) else changes
