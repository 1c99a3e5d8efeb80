"""TOML as it is written, read again by the library."""

import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ambermq.tools.wiring.toml_writer import toml_text

_SCALARS = st.text() | st.integers() | st.floats(allow_nan=False) | st.booleans()
_TABLES = st.dictionaries(st.text(), _SCALARS | st.lists(_SCALARS, max_size=4), max_size=5)


@given(st.dictionaries(st.text(), st.lists(_TABLES, min_size=1, max_size=3), max_size=3))
@example({"a": [{"x": "\x7f\x85\u2028\r\n\t\"\\'"}]})
@example({"a": [{"": [True, 1, 1.0, -0.0, 1e300, float("inf")]}]})
def test_what_was_written_is_read(arrays: dict[str, list[dict[str, object]]]) -> None:
    """Values, types, and the order of tables and keys."""
    assert repr(tomllib.loads(toml_text(arrays))) == repr(arrays)


def test_it_is_written_for_eyes() -> None:
    """A table, its keys a line each, and a line between two."""
    muxers: list[dict[str, object]] = [{"name": "a", "seed": 3}, {"name": "b", "property": ["x", "y=1"]}]
    assert toml_text({"muxers": muxers}) == (
        '[[muxers]]\nname = "a"\nseed = 3\n\n[[muxers]]\nname = "b"\nproperty = ["x", "y=1"]\n'
    )


def test_what_toml_cannot_say_is_our_mistake() -> None:
    """It has no null."""
    with pytest.raises(TypeError, match="without NoneType"):
        toml_text({"a": [{"x": None}]})
