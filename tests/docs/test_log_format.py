"""docs/log-format.md draws the bytes that the code reads and writes."""

import re

import pytest

from ambermq.engine.model.outcome import OutcomeKind
from ambermq.engine.records.types import TYPE_NAMES
from ambermq.log.format.batch import BATCH_HEADER_BYTES, BatchHeader
from ambermq.log.format.record import RECORD
from ambermq.log.index.segment_index import _TRAILER_BYTES
from ambermq.log.manifest.manifest import Manifest, decode, encode
from ambermq.log.manifest.vhost_manifest import VhostManifest
from ambermq.log.manifest.vhost_manifest import decode as decode_root
from ambermq.log.manifest.vhost_manifest import encode as encode_root
from tests.docs.pages import blocks, drawing, rows, text_of

_PAGE = "docs/log-format.md"


@pytest.mark.parametrize(
    ("heading", "size"),
    [("## Segment", 56), ("## Batch", BATCH_HEADER_BYTES), ("## Record", RECORD.size), ("## Index", _TRAILER_BYTES)],
)
def test_drawn_fields_lie_back_to_back(heading: str, size: int) -> None:
    """Each field begins where the one before ends, and the last ends where the format does."""
    drawn = drawing(_PAGE, heading)
    end = 0
    for offset, width, name in drawn:
        assert offset == end, name
        end += width
    assert end == size


def test_the_batch_header_has_the_fields_drawn() -> None:
    """Names and order of the batch header are those of the code."""
    drawn = [name for _, _, name in drawing(_PAGE, "## Batch")]
    assert drawn == [name.removesuffix("_us") for name in BatchHeader._fields]


def test_every_record_type_is_listed() -> None:
    """The table has each type's number and name."""
    listed = {int(row[0].strip("| ")): row[1].strip("`") for row in rows(_PAGE, "## Record")}
    assert listed == TYPE_NAMES


def test_every_outcome_is_listed() -> None:
    """The numbers of the outcomes are those on the disk."""
    told = ", ".join(f"{kind.value} {kind.name.lower()}" for kind in OutcomeKind)
    assert told in " ".join(text_of(_PAGE).split())


def test_the_example_manifest_is_one() -> None:
    """The manifest on the page is read with a right CRC, written the same way, and explained field by field."""
    example, _ = blocks(_PAGE, "json")
    manifest = decode(example.encode(), file=_PAGE)
    assert encode(manifest) == example.encode()
    explained = [re.sub(r"[`| ]", "", row[0]) for row in rows(_PAGE, "## Manifest")]
    assert explained == list(Manifest.__dataclass_fields__)


def test_the_example_root_manifest_is_one() -> None:
    """The root manifest on the page is read with a right CRC, written the same way, and explained field by field."""
    _, example = blocks(_PAGE, "json")
    root = decode_root(example.encode(), file=_PAGE)
    assert encode_root(root) == example.encode()
    explained = [re.sub(r"[`| ]", "", row[0]) for row in rows(_PAGE, "## Root manifest")]
    assert explained == list(VhostManifest.__dataclass_fields__)
