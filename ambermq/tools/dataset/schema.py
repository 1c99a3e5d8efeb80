"""The columns of history: one row for each message of an event, the same for Spark, archives and exports.

    offset           bigint     of the event's record; an event over many messages has a row for each of them
    timestamp        timestamp  UTC
    vhost            string
    queue            string     null for an event without a queue; a message published to n queues has n rows
    type             string     such as `published`, `acquired`, `settled`, `queue-declared`
    message_offset   bigint     the message's identity: the offset at which it was published
    message_id       string     as text; only for published rows, others are joined by message_offset
    outcome          string     settled: accepted, rejected, released, modified
    container        string     the peer that published, received, settled, attached or detached
    count            int        1 if the row is about a message, else 0, so sums count messages
    size             bigint     bytes of the message, or of the piece
    durable          boolean    published: whether it survives a restart

Only on request, since each message must be decoded, and only for published rows:

    headers                 string  JSON of the header, and of the annotations, as `annotations`
    properties              string  JSON of the properties
    application_properties  string  JSON of the application properties
    body                    binary  data sections as they are, text as UTF-8, any other value as JSON; of a message
                                    above 16 MiB the beginning, at most its first piece

Rule: the schema has this order of columns, and all of them may be null. A reader may request fewer, in any order.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["CONTENT_COLUMNS", "EVENT_COLUMNS", "MESSAGE_COLUMNS", "UNREADABLE", "columns_named", "schema_of"]

CONTENT_COLUMNS: Final = {
    "headers": pa.string(),
    "properties": pa.string(),
    "application_properties": pa.string(),
    "body": pa.binary(),
}
"""The columns that are decoded from messages, only on request."""

EVENT_COLUMNS: Final = {
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "vhost": pa.string(),
    "queue": pa.string(),
    "type": pa.string(),
    "message_offset": pa.int64(),
    "message_id": pa.string(),
    "outcome": pa.string(),
    "container": pa.string(),
    "count": pa.int32(),
    "size": pa.int64(),
    "durable": pa.bool_(),
}
"""The columns of a read without a schema."""

MESSAGE_COLUMNS: Final = frozenset({"message_id", *CONTENT_COLUMNS})
"""The columns that need the bodies, and so their checksums."""

UNREADABLE: Final = "unreadable"
"""The type of a row for damaged bytes: `size` bytes at `offset`."""


def columns_named(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names as a tuple; ToolError if one is no column."""
    known = EVENT_COLUMNS | CONTENT_COLUMNS
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ToolError(
            f"no such column of history: {', '.join(unknown)}",
            expected=", ".join(known),
            advice="use some of these",
            code=ExitCode.USAGE,
        )
    return tuple(names)


def schema_of(names: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of these columns; ToolError if a name is no column."""
    known = EVENT_COLUMNS | CONTENT_COLUMNS
    return pa.schema([pa.field(name, known[name]) for name in columns_named(names)])
