"""docs/snapshot-format.md draws the bytes of a backup that the code reads and writes."""

import re

import pytest

from ambermq.tools.backup.format import FRAME_HEADER_BYTES, HEADER_BYTES, TRAILER_BYTES, VERSION, Frame, Table
from tests.docs.pages import drawing, rows, text_of

_PAGE = "docs/snapshot-format.md"


@pytest.mark.parametrize(
    ("heading", "size"),
    [
        ("## Backup header", HEADER_BYTES),
        ("## Backup frame", FRAME_HEADER_BYTES),
        ("## Backup trailer", TRAILER_BYTES),
    ],
)
def test_drawn_fields_lie_back_to_back(heading: str, size: int) -> None:
    """Each field begins where the one before ends, and the last ends where the format does."""
    end = 0
    for offset, width, name in drawing(_PAGE, heading):
        assert offset == end, name
        end += width
    assert end == size


def test_frame_and_table_have_the_fields_told() -> None:
    """Names and order are those of the code."""
    assert tuple(name for _, _, name in drawing(_PAGE, "## Backup frame")) == Frame._fields
    told = [name for row in rows(_PAGE, "## Backup table") for name in re.findall(r"\w+", row[0])]
    assert tuple(told) == Table.__struct_fields__
    assert f"| `version` | {VERSION}; a newer one is refused |" in text_of(_PAGE)
