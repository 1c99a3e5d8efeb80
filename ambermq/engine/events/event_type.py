"""A type of event: everything that describes it, except its class. Each table by type is derived from these.

field          reader
number, name   every record and every program: they are on the disk and on the wire, and never change
layout, meta   records/writer.py, records/reader.py, docs/log-format.md
facts, queue   records/event_fields.py: `/log`, `ambermq log dump --output json`
line           tools/history/event_text.py
since          engine/loop/format_level.py, `ambermq log verify`
keys           records/index_keys.py
bound          records/size_bounds.py
link           tools/dataset/rows.py: the columns of Spark
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from ambermq.engine.events.line_template import LineTemplate
from ambermq.engine.events.record_draft import RecordDraft

__all__ = [
    "FIRST_RELEASE",
    "EventType",
    "Facts",
    "IndexKeys",
    "Layout",
    "LinkColumn",
    "Read",
    "SizeBound",
    "Write",
    "field_facts",
]

FIRST_RELEASE: Final = "0.1.0"
"""The first release; each later one reads its logs."""

Facts = dict[str, Any]
"""Values that a program can read: int, float, bool, str, and lists of those."""
Write = Callable[[RecordDraft, Any], int]
"""(draft, event) -> the offset of the first record; it adds the event's records to the draft."""
Read = Callable[[int, int, tuple[int, ...], bytes], Any]
"""(offset, time, columns as `RECORD` unpacks them, meta) -> event."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What each column of a record holds: the event's field, or `field: words` to explain the field.

    An event with a codec of its own may use any words. An empty text is an empty column.
    """

    queue: str = ""
    ref: str = ""
    count: str = ""
    aux: str = ""
    meta: str = ""
    body: str = ""


class IndexKeys(Enum):
    """The keys by which an index finds the records of a type."""

    NOTHING = 0
    WORDS = 1
    """Each entry that the words in the meta name."""
    NODE = 2
    """The queue in the column `queue`, or else the link in `ref`."""
    BROKER = 3
    """The single key of all events that concern the whole virtual host."""


class SizeBound(Enum):
    """What bounds the bytes of a record."""

    FIXED = 0
    """The record has a fixed length, or a body that the log itself cuts."""
    DEALT = 1
    """The messages that one dispatch deals out."""
    SETTLED = 2
    """The messages that one settlement or one loss names."""
    NAMES = 3
    """Names of queues, containers and links, and texts of arguments."""
    CONDITIONS = 4
    """The conditions of an attachment."""


class LinkColumn(Enum):
    """The column of a record that holds the producer or consumer of an event."""

    NONE = 0
    REF = 1
    OFFSET = 2
    """The record attached the link: its offset is the id of the link."""


def no_facts(_event: Any) -> Facts:
    """Return no facts."""
    return {}


def field_facts(*names: str) -> Callable[[Any], Facts]:
    """Return a function that returns these fields of an event as facts of the same names."""
    return lambda event: {name: getattr(event, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """One type of event."""

    event: type[Any]
    """The class of the events."""
    number: int
    """The type of the records: it never changes its meaning, and no other event ever gets it."""
    name: str
    """The type as people and programs read it."""
    since: str = FIRST_RELEASE
    """The first release that can read its records. The next release has a name before it is released."""
    listed_after: int = 0
    """The number of the type that precedes this one in lists; 0 if types are listed by their own numbers."""

    layout: Layout = Layout()
    meta: Callable[[Any], bytes] | None = None
    """The function that encodes the meta. It is None if the meta is empty or `write` encodes it."""
    json: type[Struct] | None = None
    """The keys of the JSON in the meta."""
    write: Write | None = None
    """The function that adds the records to a draft. None: one record, by `layout` and `meta`."""
    read: Read | None = None
    """The function that decodes a record into the event. None: `layout` decodes it."""

    keys: IndexKeys = IndexKeys.NOTHING
    bound: SizeBound = SizeBound.FIXED
    link: LinkColumn = LinkColumn.NONE
    queue: str = ""
    """The field with the id of the queue that an event names: `queues` for several, `offset` if it declares one."""

    facts: Callable[[Any], Facts] = no_facts
    """Returns the values of an event without type, offset, time and queue, which are the same for every event."""
    facts_text: str = ""
    """The facts and those of the queue, as docs/log-source.md lists them: names in backquotes, and conditions."""
    line: LineTemplate = ()
    """The event's line in a history; its fields are facts and `line_facts`."""
    line_facts: Callable[[Any], Facts] = no_facts
    """Returns the values that the line needs besides the facts."""
