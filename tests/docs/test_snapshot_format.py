"""docs/snapshot-format.md draws the bytes that the code reads and writes."""

import pytest

from ambermq.engine.snapshots.state_codec import _RUN
from ambermq.snapshot.block_file import BLOCK_HEADER_BYTES, HEADER_BYTES, VERSION, BlockKind, Header
from tests.docs.pages import drawing, rows, text_of

_PAGE = "docs/snapshot-format.md"


@pytest.mark.parametrize(
    ("heading", "size"), [("## Header", HEADER_BYTES), ("## Block", BLOCK_HEADER_BYTES), ("## Words", _RUN.size)]
)
def test_drawn_fields_lie_back_to_back(heading: str, size: int) -> None:
    """Each field begins where the one before ends, and the last ends where the format does."""
    end = 0
    for offset, width, name in drawing(_PAGE, heading):
        assert offset == end, name
        end += width
    assert end == size


def test_the_header_has_the_fields_drawn() -> None:
    """Names and order are those of the code."""
    drawn = [name for _, _, name in drawing(_PAGE, "## Header")]
    assert [name for name in drawn if name in Header._fields] == list(Header._fields)
    assert f"version         {VERSION};" in text_of(_PAGE)


def test_every_kind_of_block_is_listed() -> None:
    """The table has each kind's number and name."""
    listed = {int(row[0].strip("| ")): row[1].strip("`") for row in rows(_PAGE, "## Block")}
    assert listed == {kind.value: kind.name for kind in BlockKind}
