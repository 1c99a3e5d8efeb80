"""Numbers as blocks."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.tools.history.sparkline import spark


def test_the_largest_fills_its_place_and_zero_is_the_lowest() -> None:
    """A gap is a space; without blocks in the encoding it is drawn in ASCII."""
    assert spark([0, 1, None, 7]) == "▁▂ █"
    assert spark([0, 7], encoding="ascii") == ".#"
    assert spark([0, 0]) == "▁▁"
    assert spark([]) == ""


@given(st.lists(st.none() | st.floats(0, 1e15)))
def test_a_character_a_value_and_none_lower_for_a_larger_one(values: list[float | None]) -> None:
    """The order of heights is that of the values."""
    drawn = spark(values)
    assert len(drawn) == len(values)
    pairs = sorted((value, block) for value, block in zip(values, drawn, strict=True) if value is not None)
    assert [block for _, block in pairs] == sorted(block for _, block in pairs)
