"""docs/muxers.md says what matches: each example of its table is run."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.engine.matching.muxer_index import MuxerIndex
from ambermq.engine.model.attachment import Argument, Attachment, Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.patterns.pattern import PATTERN_LENGTH_MAX, SEPARATOR_LENGTH_MAX, WORDS_MAX
from tests.docs.pages import rows, text_of
from tests.docs.tours.consoles import check_consoles
from tests.engine.routing.naive import Given

_PAGE = "docs/muxers.md"
_CODE = re.compile(r"`([^`]*)`")
_BY_DESTINATION = {MuxerKind.SIMPLE, MuxerKind.LOSSY, MuxerKind.DESTINATION, MuxerKind.WILD_DESTINATION}


def _examples() -> Iterator[tuple[MuxerKind, str, str, bool]]:
    """Yield class, argument, message, and whether it matches."""
    for name, attached, matching, others in rows(_PAGE, "## Classes and matching rules"):
        kind = MuxerKind[name.strip("| ").replace(" ", "_")]
        for cell, is_match in ((matching, True), (others, False)):
            for message in _CODE.findall(cell):
                yield kind, attached, message, is_match


def _argument(kind: MuxerKind, cell: str) -> Argument:
    if kind in {MuxerKind.SIMPLE, MuxerKind.LOSSY}:
        return None
    said = _CODE.findall(cell)
    if kind in {MuxerKind.PROPERTY, MuxerKind.WILD_PROPERTY}:
        return tuple(_condition(one) for one in said)
    (text,) = said
    return str(text)


def _condition(said: str) -> Condition:
    name, equals, value = said.partition(" = ")
    return Condition(name, bool(equals), json.loads(value) if equals else None)


@pytest.mark.parametrize(("kind", "attached", "message", "is_match"), list(_examples()))
def test_the_example_matches_as_told(kind: MuxerKind, attached: str, message: str, is_match: bool) -> None:
    """An index with that attachment alone passes the message on, or does not."""
    index = MuxerIndex(kind)
    index.add(Attachment(1, 7, _argument(kind, attached)))
    destination, properties = (message, {}) if kind in _BY_DESTINATION else ("", json.loads(message))
    fields: Any = Given(properties)
    assert bool(index.match(destination, fields)) == is_match


def test_every_class_has_an_example() -> None:
    """All seven, and what does not match where there is such a thing."""
    assert {kind for kind, _, _, _ in _examples()} == set(MuxerKind)
    choosing = set(MuxerKind) - {MuxerKind.SIMPLE, MuxerKind.LOSSY}
    assert {kind for kind, _, _, is_match in _examples() if not is_match} == choosing


def test_the_limits_are_those_of_the_code() -> None:
    """Characters and words of patterns, characters of separators."""
    text = text_of(_PAGE)
    assert f"1 to {PATTERN_LENGTH_MAX:,} characters and at most {WORDS_MAX} words" in text
    assert f"1 to {SEPARATOR_LENGTH_MAX} printable characters" in text


def test_the_blocks_are_built_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page prints what the page shows."""
    assert check_consoles(_PAGE, tmp_path, monkeypatch) > 30
