"""The template of an event's line in a history: texts with fields, as data. tools/history/event_text.py fills them in.

    "{count:messages} of {queue_id:queue} purged"     a field, and how it is shown
    Choice("lifetime", ", until {lifetime}")          a text for a fact that is not always there
    Choice("durable", texts={True: "durable"})        a text a value
    Listed(" ({})", (Choice(...), Choice(...)))       what there is of several texts, with commas in between

A field is shown as `str.format` shows it, so `{name!r}` is in quotes and `{count:,}` has separators, or, by a word:

    queue, muxer, link    the name of the thing with that id
    member                a queue or muxer with its kind
    queues, links         names of several
    messages, bytes       a count or size with its unit
    ranges                offsets
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["LIFETIME", "Choice", "Listed", "Story"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A text that depends on a fact; nothing where there is no such fact."""

    name: str
    """The fact."""
    text: str = ""
    """For any other value than those of `texts`."""
    texts: Mapping[Any, str] = field(default_factory=dict)
    """The text for a value."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The texts that are not empty, joined by commas; nothing where all are empty."""

    frame: str
    """Stands around them: they replace its `{}`."""
    parts: tuple[Choice, ...]


Story = tuple[str | Choice | Listed, ...]
"""The parts of a line, one after the other."""

LIFETIME: Final = Choice(
    "lifetime",
    texts={
        "on_close": ", until its link closes",
        "no_links": ", until its last link goes",
        "no_messages": ", until its last message goes",
        "no_links_or_messages": ", until its last link and message go",
    },
)
"""When a queue or muxer ends by itself, in words."""
