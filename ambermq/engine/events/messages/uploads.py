"""Events of large messages that arrive piece by piece: a chunk of one, and the end of one that is not published."""

from typing import Final, final

from msgspec import Struct

from ambermq.engine.events.event_type import EventType, Layout, LinkColumn, field_facts
from ambermq.log.buffer import Buffer

__all__ = ["Chunked", "UploadEnded"]

_CHUNKED: Final = 11
_UPLOAD_ENDED: Final = 47


@final
class Chunked(Struct):
    """A chunk of a large message. Its publish record names it later; without that record it is garbage."""

    offset: int
    time_us: int
    producer: int
    body: Buffer
    upload: int = 0
    """The offset of the first chunk of its message, if the message arrives piece by piece; else 0."""


@final
class UploadEnded(Struct):
    """A message that arrived piece by piece is not published: its chunk records are garbage."""

    offset: int
    time_us: int
    upload: int
    """The offset of its first chunk record."""


UploadEvent = Chunked | UploadEnded

TYPES: Final = (
    EventType(
        event=Chunked,
        number=_CHUNKED,
        name="chunk",
        layout=Layout(
            queue="upload: the offset of its message's first chunk, if that arrives piece by piece; else 0",
            ref="producer",
            body="body: a piece of a large message",
        ),
        read=lambda offset, time_us, row, _: Chunked(offset, time_us, row[5], b"", row[4]),
        link=LinkColumn.REF,
        facts=field_facts("producer"),
        facts_text="`producer`",
        line=("a chunk of a large message from {producer:link}",),
    ),
    EventType(
        event=UploadEnded,
        number=_UPLOAD_ENDED,
        name="upload-ended",
        since="0.2.0",
        layout=Layout(ref="upload: the offset of its first chunk"),
        facts=field_facts("upload"),
        facts_text="`upload`",
        line=("a large message ended before it was published, stored in chunks from offset {upload} on",),
    ),
)
