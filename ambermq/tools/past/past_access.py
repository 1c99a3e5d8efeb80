"""Access to the past of a broker's directory: open its log, find a moment, read states and events.

Rule 1. The past is read from the log's files, so a command needs the directory; a broker's URL is not enough.
Rule 2. A command shows only durable events, but all that were written before it started. The broker writes the durable
end within a second after the last write, and the command waits for that.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from ambermq.engine.events import Event
from ambermq.engine.history.past import Past, open_past
from ambermq.engine.model.state import State
from ambermq.tools.client.named_place import URL_VARIABLE, named_directory, named_place
from ambermq.tools.past.background_storage import storage_of
from ambermq.tools.past.low_priority import directory_to_read
from ambermq.tools.past.moment_option import AtOffset, parse_when
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.progress import progress_bar
from ambermq.tools.terminal.variables import read_variable

__all__ = ["moment_of", "offset_of", "opened_past", "past_directory", "state_of", "watched_events"]

_DURABLE_SECONDS: Final = 2.0
_CHECK_SECONDS: Final = 0.2
_PROGRESS_OFFSETS: Final = 1 << 16
_STAGE: Final = "reading the log"


def past_directory(url: str | None, data: str | None) -> str:
    """Return the log directory to read; raise ToolError or UsageError if the options name only a URL, or nothing."""
    place = named_place(url, data) if url else named_directory(data)
    named_url = place.url or read_variable(URL_VARIABLE)
    if named_url and not place.data:
        raise ToolError(
            "the command reads the files of the log, which a URL does not name",
            where=named_url,
            advice="give --data, the broker's directory, on the broker's machine",
            code=ExitCode.USAGE,
        )
    return directory_to_read(place.data or None)


@contextmanager
def opened_past(url: str | None, data: str | None) -> Iterator[Past]:
    """Open the past of the directory in the options, with all events written before."""
    past = _with_all_written(past_directory(url, data))
    try:
        yield past
    finally:
        past.close()


def _with_all_written(directory: str) -> Past:
    past = open_past(directory, storage=storage_of(directory))
    written, deadline = past.reader.survey.valid_end, time.monotonic() + _DURABLE_SECONDS
    while past.end < written and time.monotonic() < deadline:
        past.close()
        time.sleep(_CHECK_SECONDS)
        past = open_past(directory, storage=storage_of(directory))
    return past


def moment_of(past: Past, when: str) -> tuple[int, int]:
    """Return offset and time in microseconds of the moment in a text. Raises ToolError, PastError."""
    match parse_when(when, now_us=past.now_us):
        case AtOffset(offset):
            return offset, past.time_at(offset)
        case moment:
            return past.offset_at(moment.time_us), moment.time_us


def offset_of(past: Past, when: str) -> int:
    """Return the offset of the moment in a text. Raises ToolError, PastError."""
    return moment_of(past, when)[0]


def state_of(past: Past, offset: int) -> State:
    """Return the state after the event at `offset`, with a progress bar. Raises PastError, DamageError."""
    with progress_bar() as progress:
        return past.state_at(offset, partial(progress, _STAGE))


def watched_events(past: Past, first: int, last: int) -> Iterator[Event]:
    """Yield the events between two offsets, with a progress bar. Raises PastError, DamageError."""
    with progress_bar() as progress:
        reported = first
        for event in past.events(first, last):
            yield event
            if event.offset - reported >= _PROGRESS_OFFSETS:
                reported = event.offset
                progress(_STAGE, reported - first, last + 1 - first)
