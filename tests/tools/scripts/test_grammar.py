"""The language of scripts: what a line means, and what a mistake says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.tools.scripts.grammar import Statement, parse_script
from ambermq.tools.scripts.patterns import duration_s, filled, is_match
from ambermq.tools.terminal.errors import ToolError


def test_a_line_is_a_statement() -> None:
    """Comments and blank lines are none; texts may have blanks and escapes."""
    text = '# first\n\nalice attach sender out to "a b/#"  # why\nalice send out m "x \\"y\\"" count=2\n'
    assert parse_script(text, "f") == (
        Statement("attach_sender", 3, ("alice", "out", "a b/#")),
        Statement("send", 4, ("alice", "out", "m", 'x "y"'), {"count": "2"}),
    )


def test_blocks_nest() -> None:
    """`repeat` has one block, `random` one for each choice."""
    (outer,) = parse_script("repeat 2\n random\n  sleep 1ms\n or\n  a drop\n end\nend", "f")
    (inner,) = outer.blocks[0]
    assert (outer.kind, outer.words, inner.kind) == ("repeat", ("2",), "random")
    assert [block[0].kind for block in inner.blocks] == ["sleep", "drop"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nalice conect\n", "f:2:7: not a statement: expected attach or close"),
        ("alice send\n", "f:1:11: not a statement: expected a name, found the end of the line"),
        ("repeat 3\n alice drop\n", "found the end of the file"),
        ("alice send out m cout=3\n", "f:1: no option 'cout' of send: expected count, durable"),
        ('alice send out "m\n', "f:1:16"),
        ("broker begin\n", "expected start, stop, kill or restart, found 'begin'"),
        ("a settle in refused\n", "expected accepted, rejected, released, modified"),
    ],
)
def test_a_mistake_names_line_column_and_what_may_stand_there(text: str, message: str) -> None:
    """No statement has run then."""
    with pytest.raises(ToolError) as caught:
        parse_script(text, "f")
    assert message in caught.value.message
    assert caught.value.exit_code == 2


@given(st.text(max_size=60))
def test_no_text_raises_another_error(text: str) -> None:
    """Any file is a script, or a mistake with a message."""
    try:
        parse_script(text, "f")
    except ToolError as error:
        message = error.message
    else:
        message = "f:"
    assert message.startswith("f:")


@given(st.lists(st.text("ab*", max_size=4), max_size=4), st.text("ab", max_size=8))
def test_a_star_stands_for_any_characters(parts: list[str], filling: str) -> None:
    """A pattern fits what comes of it when each star is replaced."""
    pattern = "*".join(parts)
    assert is_match(pattern, pattern.replace("*", filling))


@pytest.mark.parametrize(("pattern", "text"), [("a*", "ba"), ("a", "aa"), ("*b", "a"), ("a.c", "abc"), ("", "x")])
def test_other_texts_do_not_fit(pattern: str, text: str) -> None:
    """Only the star is special."""
    assert not is_match(pattern, text)


def test_values() -> None:
    """Durations have a unit; unknown variables stay."""
    assert [duration_s(text) for text in ("250ms", "1.5s", "2min")] == [0.25, 1.5, 120.0]
    with pytest.raises(ValueError, match="expected a duration such as 500ms"):
        duration_s("5")
    assert filled("m{n} {other}", {"n": 3}) == "m3 {other}"
