"""A type of event: everything that is known of it beside its class. Each table by type is derived from these.

field          read by
number, name   every record and every program: they are on the disk and on the wire, and never change
layout, meta   records/writer.py, records/reader.py, docs/log-format.md
facts, queue   records/event_fields.py: `/log`, `ambermq log dump --output json`
story          tools/history/event_text.py
keys           records/index_keys.py
bound          records/size_bounds.py
link           tools/dataset/rows.py: the columns of Spark
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msgspec import Struct

from ambermq.engine.events.record_draft import RecordDraft
from ambermq.engine.events.story import Story

__all__ = ["EventType", "Facts", "IndexKeys", "Layout", "LinkColumn", "Read", "SizeBound", "Write", "field_facts"]

Facts = dict[str, Any]
"""Values that a program can read: int, float, bool, str, and lists of those."""
Write = Callable[[RecordDraft, Any], int]
"""(draft, event) -> the offset of the first record; it adds the event's records to the draft."""
Read = Callable[[int, int, tuple[int, ...], bytes], Any]
"""(offset, time, columns as `RECORD` unpacks them, meta) -> event."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What each column of a record holds: the event's field, or `field: words` where a reader needs more than its name.

    An event with a codec of its own may use any words. An empty text is an empty column.
    """

    queue: str = ""
    ref: str = ""
    count: str = ""
    aux: str = ""
    meta: str = ""
    body: str = ""


class IndexKeys(Enum):
    """By which keys an index finds the records of a type."""

    NOTHING = 0
    WORDS = 1
    """Each entry that the words in its meta name."""
    NODE = 2
    """The queue in its column `queue`, or else the link in `ref`."""
    BROKER = 3
    """The one key of all that concerns the whole virtual host."""


class SizeBound(Enum):
    """What bounds the bytes of a record."""

    FIXED = 0
    """Nothing of variable length, or what the log cuts itself: bodies."""
    DEALT = 1
    """The messages that one dispatch deals out."""
    SETTLED = 2
    """The messages that one settlement, or one loss, names."""
    NAMES = 3
    """Names of queues, containers and links, and texts of arguments."""
    CONDITIONS = 4
    """The conditions of an attachment."""


class LinkColumn(Enum):
    """Which column of a record tells the producer or consumer that an event is about."""

    NONE = 0
    REF = 1
    OFFSET = 2
    """The record is the link's own: its offset is the id."""


def no_facts(_event: Any) -> Facts:
    """Return no facts."""
    return {}


def field_facts(*names: str) -> Callable[[Any], Facts]:
    """Return what tells these fields of an event as facts of the same names."""
    return lambda event: {name: getattr(event, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """One type of event."""

    event: type[Any]
    """The class of its events."""
    number: int
    """The type of its records: it never changes meaning, and no other event ever gets it."""
    name: str
    """The type as people and programs read it."""
    listed_after: int = 0
    """The number of the type that lists name before this one; 0 for the number before its own."""

    layout: Layout = Layout()
    meta: Callable[[Any], bytes] | None = None
    """Encodes the meta; None for an empty one, and where `write` does."""
    json: type[Struct] | None = None
    """The keys of the JSON in the meta."""
    write: Write | None = None
    """Adds its records to a draft; None: one record, by `layout` and `meta`."""
    read: Read | None = None
    """Makes the event of a record; None: by `layout`."""

    keys: IndexKeys = IndexKeys.NOTHING
    bound: SizeBound = SizeBound.FIXED
    link: LinkColumn = LinkColumn.NONE
    queue: str = ""
    """The field with the id of the queue that an event names, `queues` for several, `offset` where it declares it."""

    facts: Callable[[Any], Facts] = no_facts
    """Tells an event as values, but for type, offset, time and queue, which every event tells alike."""
    facts_text: str = ""
    """The facts, the queue's too, as docs/log-source.md lists them: each name in backquotes, and when it is there."""
    story: Story = ()
    """The event's line in a history; its fields are facts and `story_facts`."""
    story_facts: Callable[[Any], Facts] = no_facts
    """Tells what the story needs beside the facts."""
