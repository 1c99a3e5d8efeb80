"""The lines of a history: one line of text for each event. Pure: events in, lines out.

Rule 1. A line has time, offset, type, and a text that describes the event. `facts` are the same as values for JSON, the
        values of engine/records/event_fields.py.
Rule 2. Times are UTC in ISO 8601 with microseconds, in any time zone of the machine.
Rule 3. The template of the text is with each event, in engine/events. This module has the forms of the fields: names,
        units, ranges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Any, Final

from ambermq.engine.events import Event
from ambermq.engine.events.line_template import Choice, Listed
from ambermq.engine.events.registry import BY_CLASS
from ambermq.engine.events.user_meta import BY
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.records.event_fields import EVENT_TYPES, facts_of, type_of
from ambermq.tools.past.id_names import IdNames

__all__ = ["EVENT_TYPES", "Line", "event_line", "iso_time", "type_of"]

_RANGES_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class Line:
    """The line of one event."""

    offset: int
    """The offset of its first record."""
    time: str
    """The time in UTC, ISO 8601."""
    type: str
    """The type, such as `published`."""
    words: str
    """The text that describes the event."""
    facts: dict[str, Any]
    """The same as values."""

    def __str__(self) -> str:
        return f"{self.offset:>12}  {self.time}  {self.type:<17}  {self.words}"

    def as_json(self) -> dict[str, Any]:
        """Return the line as one object."""
        return {"offset": self.offset, "time": self.time, "type": self.type, **self.facts, "words": self.words}


def event_line(event: Event, names: IdNames) -> Line:
    """Return the line of an event; `names` has the names from this event and from all events before it."""
    one, facts = BY_CLASS[type(event)], facts_of(event, names.known_queue)
    template = _Template(names, facts | one.line_facts(event))
    text = "".join(map(template.part, (*one.line, BY)))
    return Line(event.offset, iso_time(event.time_us), one.name, text, facts)


class _Template:
    """The parts of one event's template, with values in their fields."""

    def __init__(self, names: IdNames, facts: Mapping[str, Any]) -> None:
        self._names = names
        self._facts = facts

    def part(self, part: str | Choice | Listed) -> str:
        """Return the text of a part."""
        match part:
            case str():
                return self._formatted(part)
            case Choice():
                return self._choice(part)
        texts = [text for one in part.parts if (text := self._choice(one))]
        return part.frame.format(", ".join(texts)) if texts else ""

    def _choice(self, choice: Choice) -> str:
        if choice.name not in self._facts:
            return ""
        # Without texts the value may be a list, which cannot be the key of a table.
        return self._formatted(choice.texts.get(self._facts[choice.name], choice.text) if choice.texts else choice.text)

    def _formatted(self, text: str) -> str:
        pieces = []
        for literal, name, form, conversion in _fields(text):
            pieces.append(literal)
            if name is not None:
                pieces.append(self._field(self._facts[name], form or "", conversion))
        return "".join(pieces)

    def _field(self, value: Any, form: str, conversion: str | None) -> str:
        formatter = _FORMS.get(form)
        if formatter is not None:
            return formatter(self._names, value)
        return repr(value) if conversion == "r" else format(value, form)


@cache
def _fields(text: str) -> Sequence[tuple[str, str | None, str | None, str | None]]:
    """Return the fields of a template as `str.format` parses them, each with the text before it."""
    return tuple(Formatter().parse(text))


def _queues(names: IdNames, queues: list[int]) -> str:
    return ", ".join(repr(names.queue(queue)) for queue in queues) or "no queue"


def _links(names: IdNames, links: list[int]) -> str:
    return ", ".join(map(names.link, links))


def _messages(_names: IdNames, count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _bytes(_names: IdNames, size: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _ranges(_names: IdNames, ranges: list[list[int]]) -> str:
    shown = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in ranges[:_RANGES_SHOWN])
    more = sum(last - first + 1 for first, last in ranges[_RANGES_SHOWN:])
    return f"{shown} and {more:,} more" if more else shown


_FORMS: Final[Mapping[str, Callable[[IdNames, Any], str]]] = {
    "queue": lambda names, queue: repr(names.queue(queue)),
    "muxer": lambda names, muxer: repr(names.muxer(muxer)),
    "member": lambda names, member: names.member(member),
    "link": lambda names, link: names.link(link),
    "queues": _queues,
    "links": _links,
    "messages": _messages,
    "bytes": _bytes,
    "ranges": _ranges,
}
"""The function for each form that a field of a template can name; engine/events/story.py lists the forms."""
