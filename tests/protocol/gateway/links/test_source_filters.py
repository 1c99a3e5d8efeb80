"""The filter `ambermq:at`: whatever a peer writes names a moment, names none, or is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import LinkFault
from ambermq.protocol.amqp10.types.values import Described, Map, Symbol, Timestamp, ULong
from ambermq.protocol.gateway.links.source_filters import AT, AtOffset, AtTime, read_at
from tests.protocol.amqp_values import values


@pytest.mark.parametrize("filters", [None, {}, Map(()), {Symbol("other"): 1}, {AT: None}])
def test_no_moment(filters: Any) -> None:
    """Nothing is named, nothing is applied."""
    assert read_at(filters) == (None, None)


@given(st.integers(0, (1 << 64) - 1), st.booleans())
def test_an_offset(offset: int, is_described: bool) -> None:
    """Described or bare; what is applied is what came."""
    value: Any = Described(AT, ULong(offset)) if is_described else ULong(offset)
    assert read_at({AT: value}) == (AtOffset(offset), {AT: value})
    assert read_at(Map(((1, 2), (AT, value)))) == (AtOffset(offset), {AT: value})


@given(st.integers(0, 1 << 47))
def test_a_time(milliseconds: int) -> None:
    """Milliseconds become microseconds, as far as calendars go."""
    value = Timestamp(milliseconds)
    assert read_at({AT: value}) == (AtTime(milliseconds * 1000), {AT: value})


@given(st.one_of(values, st.builds(Described, st.just(AT), values)))
def test_any_value_is_read_or_refused(value: Any) -> None:
    """Nothing but amqp:invalid-field ever comes of it."""
    said = ""
    try:
        moment, applied = read_at({AT: value})
    except LinkFault as fault:
        said = fault.condition
    else:
        assert (moment is None) is (applied is None)
    assert said in ("", "amqp:invalid-field")
