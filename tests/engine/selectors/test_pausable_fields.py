"""Evaluations that pause at long texts: the answer is that of an evaluation at once, and each try makes progress."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.selectors.pausable_fields import LONG_BYTES, KnownTerms, PausableFields
from ambermq.engine.selectors.selector import parse_selector
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget
from tests.engine.routing.selector_trees import DictFields

LONG = "bc" + "a" * 3 * LONG_BYTES + "d"
TERMS = (
    *("p LIKE '%a_a%'", "p LIKE '%b_a%d'", "p LIKE 'b%c%d'", "p LIKE '%e%'", "p LIKE '%a%b%'", "p LIKE '%a_d'"),
    *("q LIKE '%z_'", "p = 'a'", "n > 3", "JMSXUserID LIKE '%u_er'", "amqp.user_id LIKE '%x%'", "absent LIKE '%a%'"),
)


def tries_of(text: str, fields: Any, step_us: int) -> tuple[int, bool]:
    """Return in how many ticks of 10 us a selector is evaluated, and the answer."""
    budget = TimeBudget(count(0, step_us * 1000).__next__, duration_us=10)
    selector, known = parse_selector(text), KnownTerms()
    for tries in range(1, 10_000):
        budget.end_ns = None
        assert not budget.is_spent()
        try:
            return tries, selector.matches(PausableFields(fields, budget, known))
        except MatchUnfinished:
            continue
    raise AssertionError("the evaluation makes no progress")


@settings(deadline=None)
@given(st.lists(st.sampled_from(TERMS), min_size=1, max_size=8), st.sampled_from([" AND ", " OR "]), st.booleans())
def test_a_paused_evaluation_answers_the_same(terms: list[str], operator: str, negated: bool) -> None:
    """Whatever the terms are, and however little time each try has."""
    text = operator.join(terms)
    text = f"NOT ({text})" if negated else text
    fields = DictFields({"p": LONG, "q": "xyz", "n": 5, "properties.user-id": b"x" * LONG_BYTES + b"user"})
    expected = parse_selector(text).matches(fields)
    for step_us in (0, 4, 11):
        assert tries_of(text, fields, step_us)[1] is expected


def test_each_try_searches_a_part_of_a_text() -> None:
    """A text of four blocks, searched for ten patterns that it does not have, takes a try for each."""
    text = " OR ".join(f"p LIKE '%{letter}_{letter}%'" for letter in "efghijklmn")
    tries, answer = tries_of(text, DictFields({"p": LONG}), 11)
    assert not answer
    assert tries == 1 + 10 * (len(LONG) // LONG_BYTES + 1) - 1


@pytest.mark.parametrize("step_us", [0, 11])
def test_short_texts_do_not_pause(step_us: int) -> None:
    """A message without long texts is evaluated at once."""
    text = " OR ".join(f"p LIKE '%{letter}%'" for letter in "efghijklmn")
    assert tries_of(text, DictFields({"p": "a" * LONG_BYTES}), step_us) == (1, False)
