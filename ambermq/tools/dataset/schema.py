"""The columns of history: one row a message and event, the same for Spark, archives and exports.

    offset           bigint     of the event's record; an event over many messages has a row for each of them
    timestamp        timestamp  UTC
    vhost            string
    queue            string     null where an event is about none; a message published to n queues has n rows
    type             string     such as `published`, `acquired`, `settled`, `queue-declared`
    message_offset   bigint     the message's identity: the offset at which it was published
    message_id       string     as it is typed; of published rows alone, others are joined by message_offset
    outcome          string     settled: accepted, rejected, released, modified
    container        string     the peer that published, received, settled, came or went
    count            int        1 where the row is about a message, else 0, so that sums count messages
    size             bigint     bytes of the message, or of the piece
    durable          boolean    published: whether it survives a restart

Only when asked for, since each is decoded message by message, published rows alone:

    headers                 string  JSON of the header, and of the annotations, as `annotations`
    properties              string  JSON of the properties
    application_properties  string  JSON of the application properties
    body                    binary  data sections as they are, text as UTF-8, any other value as JSON

Rule: the order of columns, and that all of them may be null, is the schema; who reads may ask for fewer, in any order.
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
"""What is decoded from the messages themselves, and only when it is asked for."""

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
"""What one has without asking."""

MESSAGE_COLUMNS: Final = frozenset({"message_id", *CONTENT_COLUMNS})
"""For these the bodies are read and their checksums verified."""

UNREADABLE: Final = "unreadable"
"""The type of a row that stands for damaged bytes: `size` of them, behind `offset`."""


def columns_named(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns; ToolError where one is none."""
    known = EVENT_COLUMNS | CONTENT_COLUMNS
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ToolError(
            f"no such column of history: {', '.join(unknown)}",
            expected=", ".join(known),
            advice="ask for some of these",
            code=ExitCode.USAGE,
        )
    return tuple(names)


def schema_of(names: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of these columns; ToolError where one is none."""
    known = EVENT_COLUMNS | CONTENT_COLUMNS
    return pa.schema([pa.field(name, known[name]) for name in columns_named(names)])
