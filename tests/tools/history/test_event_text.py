"""Events as a person would event_line them."""

import pytest

from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.events import Attached, Event, Settled
from ambermq.engine.events.registry import TYPE_NAMES
from ambermq.tools.history.event_text import EVENT_TYPES, event_line, iso_time, type_of
from ambermq.tools.past.id_names import IdNames
from tests.engine.events.samples import SAMPLES, TIME_US, WIRING, WORDS, Sample


@pytest.fixture
def names() -> IdNames:
    known = IdNames()
    for event in WIRING:
        known.add(event)
    return known


def _name(sample: Sample) -> str:
    return type(sample.event).__name__


@pytest.mark.parametrize("sample", SAMPLES, ids=_name)
def test_every_event_is_told_in_words_with_its_names(names: IdNames, sample: Sample) -> None:
    """Ids are resolved; what was never heard of is shown by its id."""
    assert event_line(sample.event, names).words == sample.words


def test_no_event_is_left_untold() -> None:
    """The story knows every event, by the name that its record type has."""
    assert {type(sample.event) for sample in SAMPLES} == set(Event.__args__)
    assert sorted(EVENT_TYPES) == sorted(TYPE_NAMES.values())


def test_a_line_says_where_when_and_what_kind(names: IdNames) -> None:
    """The offset, the time in UTC, the kind, the words."""
    event = Settled(14, TIME_US, 2, 4, ACCEPTED, WORDS)
    line = str(event_line(event, names))
    assert line.split()[:3] == ["14", "2023-11-14T22:13:20.000001Z", "settled"]
    assert event_line(event, names).as_json() == {
        "offset": 14,
        "time": "2023-11-14T22:13:20.000001Z",
        "type": "settled",
        "queue": "orders",
        "queue_id": 2,
        "count": 3,
        "consumer": 4,
        "outcome": "accepted",
        "bytes": 300,
        "offsets": [[10, 12]],
        "words": "3 messages of 'orders' accepted by store/in: 10 to 12",
    }


def test_time_is_utc_whatever_the_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's zone changes nothing, and no microsecond is rounded away."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    assert iso_time(0) == "1970-01-01T00:00:00.000000Z"
    assert iso_time(TIME_US) == "2023-11-14T22:13:20.000001Z"


def test_a_muxer_that_is_attached_is_called_one(names: IdNames) -> None:
    """And what a member receives by is left out where there is nothing to say."""
    assert event_line(Attached(5, TIME_US, 1, 1), names).words == "muxer 'QUEUE' attached to 'QUEUE'"


@pytest.mark.parametrize("sample", SAMPLES, ids=_name)
def test_an_event_knows_its_queues(names: IdNames, sample: Sample) -> None:
    """What is about a queue, or from or to a link of it, is found by the queue's name."""
    event = sample.event
    about_none = {"started", "drawn", "lost", "reset", "compacted", "clock-stepped", "committed", "upload-ended"}
    about_none |= {"muxer-declared", "muxer-updated", "muxer-deleted"}
    if type_of(event) in about_none:
        assert names.queues_of(event) == ()
    else:
        assert "orders" in names.queues_of(event)
