"""Matching within a limit of time: it says when a match goes on, never what it answers."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.errors import Refused
from ambermq.engine.matching.muxer_index import MuxerIndex
from ambermq.engine.matching.published_fields import PublishedFields
from ambermq.engine.model.attachment import Attachment, Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.selectors.fields import Fields
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget
from tests.engine.routing.naive import Given
from tests.engine.routing.wirings import arguments, fields, texts


def steps(step_us: int) -> TimeBudget:
    """Return a budget whose every check takes so much of its 10 us."""
    return TimeBudget(count(0, step_us * 1000).__next__, duration_us=10)


def matched_in_ticks(
    index: MuxerIndex, budget: TimeBudget, destination: str, message: Fields | None
) -> tuple[int, Sequence[Attachment]]:
    """Return the ticks that a match takes, and its attachments."""
    for tick in range(1, 100_000):
        budget.end_ns = None
        try:
            return tick, index.match(destination, message)
        except MatchUnfinished:
            continue
    raise AssertionError("the match makes no progress")


@settings(deadline=None, max_examples=150)
@given(st.data(), st.sampled_from(MuxerKind), st.sampled_from([1, 4, 10]))
def test_a_match_cut_into_ticks_is_the_same(data: st.DataObject, kind: MuxerKind, step_us: int) -> None:
    """For each class, where nothing is cached, and one question after the other."""
    budget = steps(step_us)
    whole, cut = MuxerIndex(kind, cached_max=0), MuxerIndex(kind, cached_max=0, budget=budget)
    for number, argument in enumerate(data.draw(st.lists(arguments(kind, "."), max_size=30))):
        for index in (whole, cut):
            index.add(Attachment(100 + number, 7, argument))
    for _ in range(3):
        destination, message = data.draw(texts(".")), data.draw(fields("."))
        published = PublishedFields(message, None, budget)
        assert matched_in_ticks(cut, budget, destination, published)[1] == whole.match(destination, message)


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        (MuxerKind.SELECTOR, lambda number: f"a = {number}"),
        (MuxerKind.WILD_DESTINATION, lambda number: f"#.{number}.#"),
        (MuxerKind.PROPERTY, lambda number: (Condition(f"p{number}"),)),
        (MuxerKind.WILD_PROPERTY, lambda number: (Condition("a", has_value=True, value=f"#.{number}.#"),)),
    ],
)
def test_a_long_match_takes_many_ticks(kind: MuxerKind, argument: Any) -> None:
    """Each tick does some of it, and an attachment that comes in between begins it anew."""
    budget = steps(10)
    index = MuxerIndex(kind, budget=budget)
    for number in range(2000):
        index.add(Attachment(100 + number, 7, argument(number)))
    text = ".".join(map(str, range(100)))
    published = PublishedFields(Given({"a": text, "p5": 1}), None, budget)
    ticks, found = matched_in_ticks(index, budget, text, published)
    assert ticks > 10
    index.add(Attachment(5000, 7, argument(5 if kind is MuxerKind.PROPERTY else 42)))
    again = matched_in_ticks(index, budget, text, PublishedFields(Given({"a": text, "p5": 1}), None, budget))[1]
    assert [one.id for one in again] == [
        *(one.id for one in found),
        *([5000] if kind is not MuxerKind.SELECTOR else []),
    ]


def test_a_message_is_tested_with_a_bounded_number_of_selectors() -> None:
    """Equal selectors of a muxer count once; one more is refused."""
    first, second = MuxerIndex(MuxerKind.SELECTOR), MuxerIndex(MuxerKind.SELECTOR)
    for number in range(10):
        first.add(Attachment(100 + number, 7, f"a = {number % 5}"))
        second.add(Attachment(200 + number, 7, f"a = {number % 6}"))
    message = Given({"a": 3})
    published = PublishedFields(message, None, None, 11)
    assert [one.id for one in first.match("", published)] == [103, 108]
    assert [one.id for one in second.match("", published)] == [203, 209]
    published = PublishedFields(message, None, None, 10)
    first.match("", published)
    with pytest.raises(Refused, match="selectors_per_message_max") as refused:
        second.match("", published)
    assert refused.value.condition == "amqp:resource-limit-exceeded"


def test_equal_selectors_of_many_muxers_are_one_test() -> None:
    """As those of subscriptions, which have a muxer each."""
    muxers = [MuxerIndex(MuxerKind.SELECTOR) for _ in range(100)]
    for number, muxer in enumerate(muxers):
        muxer.add(Attachment(100 + number, 7, "a = 3" if number % 2 else "a = 4"))
    published = PublishedFields(Given({"a": 3}), None, None, 2)
    assert [len(muxer.match("", published)) for muxer in muxers] == [0, 1] * 50
