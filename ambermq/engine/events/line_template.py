"""The template of an event's line in a history: texts with fields, as data. tools/history/event_text.py fills it in.

    "{count:messages} of {queue_id:queue} purged"     two fields and their forms
    Choice("lifetime", ", until {lifetime}")          a text for a fact that some events do not have
    Choice("durable", texts={True: "durable"})        a text for each value
    Listed(" ({})", (Choice(...), Choice(...)))       the texts that are not empty, joined by commas

`str.format` formats a field: `{name!r}` is in quotes, `{count:,}` has separators. These words are forms of our own:

    queue, muxer, link    the name of the thing with that id
    member                a queue or muxer with its kind
    queues, links         names of several
    messages, bytes       a count or size with its unit
    ranges                offsets
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["LIFETIME", "Choice", "LineTemplate", "Listed"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A text that depends on a fact; it is empty if the event does not have the fact."""

    name: str
    """The fact."""
    text: str = ""
    """The text for every value that `texts` does not have."""
    texts: Mapping[Any, str] = field(default_factory=dict)
    """The text for each value."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The texts that are not empty, joined by commas; empty if all are."""

    frame: str
    """The text around them: they replace its `{}`."""
    parts: tuple[Choice, ...]


LineTemplate = tuple[str | Choice | Listed, ...]
"""The parts of a line, one after the other."""

LIFETIME: Final = Choice(
    "lifetime",
    texts={
        "on_close": ", until its link closes",
        "no_links": ", until it has no links",
        "no_messages": ", until it has no messages",
        "no_links_or_messages": ", until it has no links and no messages",
    },
)
"""When a queue or muxer ends by itself, in words."""
