"""Each event is described once, and whole."""

from dataclasses import fields
from itertools import chain
from string import Formatter

from ambermq.engine.events import Event
from ambermq.engine.events.event_type import EventType, Layout
from ambermq.engine.events.line_template import Choice, Listed
from ambermq.engine.events.registry import BY_CLASS, NUMBERS, REGISTRY, TYPE_NAMES
from ambermq.engine.fold.apply import APPLY
from ambermq.engine.records.event_fields import facts_of
from ambermq.engine.records.writer import WRITE
from tests.engine.events.samples import SAMPLES


def texts(one: EventType) -> list[str]:
    """Return the templates in a line."""
    parts = chain.from_iterable(part.parts if isinstance(part, Listed) else (part,) for part in one.line)
    return [
        text for part in parts for text in ((part.text, *part.texts.values()) if isinstance(part, Choice) else (part,))
    ]


def test_each_class_of_the_union_is_in_every_table() -> None:
    """No event can be written that is not folded, and each has a number and a name of its own."""
    classes = set(Event.__args__)
    assert classes == {*BY_CLASS} == {*WRITE} == {*APPLY} == {type(sample.event) for sample in SAMPLES}
    assert len(REGISTRY) == len(classes) == len({*NUMBERS.values()}) == len({*TYPE_NAMES.values()})


def test_a_column_that_names_no_field_belongs_to_an_event_with_a_codec() -> None:
    """A derived codec reads and writes the fields that the layout names."""
    for one in REGISTRY:
        columns = [getattr(one.layout, column.name).partition(":")[0] for column in fields(Layout)]
        named = {column for column in columns if column in one.event.__struct_fields__}
        if one.read is None:
            # The user is in the meta of every such event.
            assert named == {*one.event.__struct_fields__[2:]} - {"by"}, one.name
        if one.write is None:
            assert named == {column for column in columns if column and column != columns[4]}, one.name


def test_a_line_has_no_field_that_its_event_lacks() -> None:
    """Every field of a template is a fact of some sample, whether or not a line shows it."""
    for one in REGISTRY:
        told: set[str] = set()
        for event in (sample.event for sample in SAMPLES if type(sample.event) is one.event):
            told |= facts_of(event, lambda _: None).keys() | one.line_facts(event).keys()
        shown = {name for text in texts(one) for _, name, _, _ in Formatter().parse(text) if name is not None}
        assert shown <= told, one.name
