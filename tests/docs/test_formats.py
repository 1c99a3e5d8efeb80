"""docs/log-format.md and docs/snapshot-format.md draw the bytes that the code reads and writes."""

import re
from typing import Final

import pytest

from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events.registry import TYPE_NAMES
from ambermq.engine.snapshots.word_runs import _RUN, _TIMES
from ambermq.log.format.batch import BATCH_HEADER_BYTES, BatchHeader
from ambermq.log.format.record import RECORD
from ambermq.log.index.segment_index import _TRAILER_BYTES
from ambermq.log.manifest.manifest import Manifest, decode, encode
from ambermq.log.manifest.vhost_manifest import VhostManifest
from ambermq.log.manifest.vhost_manifest import decode as decode_root
from ambermq.log.manifest.vhost_manifest import encode as encode_root
from ambermq.snapshot import block_file
from ambermq.snapshot.block_file import BlockKind, Header
from ambermq.tools.backup import format as backup_format
from ambermq.tools.backup.format import Frame, Table
from ambermq.tools.proxy import recording
from tests.docs.event_tables import with_layouts
from tests.docs.pages import blocks, drawing, rows, text_of

_LOG: Final = "docs/log-format.md"
_SNAPSHOT: Final = "docs/snapshot-format.md"


@pytest.mark.parametrize(
    ("page", "heading", "size"),
    [
        (_LOG, "## Segment", 56),
        (_LOG, "## Batch", BATCH_HEADER_BYTES),
        (_LOG, "## Record", RECORD.size),
        (_LOG, "## Index", _TRAILER_BYTES),
        (_SNAPSHOT, "## Header", block_file.HEADER_BYTES),
        (_SNAPSHOT, "## Block", block_file.BLOCK_HEADER_BYTES),
        (_SNAPSHOT, "## Words", _RUN.size),
        (_SNAPSHOT, "## Times of messages", _TIMES.size),
        (_SNAPSHOT, "## Backup header", backup_format.HEADER_BYTES),
        (_SNAPSHOT, "## Backup frame", backup_format.FRAME_HEADER_BYTES),
        (_SNAPSHOT, "## Backup trailer", backup_format.TRAILER_BYTES),
        ("docs/proxy.md", "## Recording header", recording.HEADER_BYTES),
        ("docs/proxy.md", "## Recording record", recording.RECORD_HEADER_BYTES),
    ],
)
def test_drawn_fields_lie_back_to_back(page: str, heading: str, size: int) -> None:
    """Each field begins where the one before ends, and the last ends where the format does."""
    end = 0
    for offset, width, name in drawing(page, heading):
        assert offset == end, name
        end += width
    assert end == size


def test_the_batch_header_has_the_fields_drawn() -> None:
    """Names and order of the batch header are those of the code."""
    drawn = [name for _, _, name in drawing(_LOG, "## Batch")]
    assert drawn == [name.removesuffix("_us") for name in BatchHeader._fields]


def test_every_record_type_is_listed() -> None:
    """The table has each type's number and name."""
    listed = {int(row[0].strip("| ")): row[1].strip("`") for row in rows(_LOG, "## Record")}
    assert listed == TYPE_NAMES


def test_the_table_of_types_is_derived() -> None:
    """Its words are those that stand beside each event."""
    assert text_of(_LOG) == with_layouts(text_of(_LOG)), "run python -m tests.docs.event_tables"


def test_every_outcome_is_listed() -> None:
    """The numbers of the outcomes are those on the disk."""
    told = ", ".join(f"{kind.value} {kind.name.lower()}" for kind in OutcomeKind)
    assert told in " ".join(text_of(_LOG).split())


def test_the_example_manifest_is_one() -> None:
    """The manifest on the page is read with a right CRC, written the same way, and explained field by field."""
    example, _ = blocks(_LOG, "json")
    manifest = decode(example.encode(), file=_LOG)
    assert encode(manifest) == example.encode()
    explained = [re.sub(r"[`| ]", "", row[0]) for row in rows(_LOG, "## Manifest")]
    assert explained == list(Manifest.__dataclass_fields__)


def test_the_example_root_manifest_is_one() -> None:
    """The root manifest on the page is read with a right CRC, written the same way, and explained field by field."""
    _, example = blocks(_LOG, "json")
    root = decode_root(example.encode(), file=_LOG)
    assert encode_root(root) == example.encode()
    explained = [re.sub(r"[`| ]", "", row[0]) for row in rows(_LOG, "## Root manifest")]
    assert explained == list(VhostManifest.__dataclass_fields__)


def test_the_snapshot_header_has_the_fields_drawn() -> None:
    """Names and order are those of the code."""
    drawn = [name for _, _, name in drawing(_SNAPSHOT, "## Header")]
    assert [name for name in drawn if name in Header._fields] == list(Header._fields)
    assert f"version         {block_file.VERSION};" in text_of(_SNAPSHOT)


def test_every_kind_of_block_is_listed() -> None:
    """The table has each kind's number and name."""
    listed = {int(row[0].strip("| ")): row[1].strip("`") for row in rows(_SNAPSHOT, "## Block")}
    assert listed == {kind.value: kind.name for kind in BlockKind}


def test_backup_frame_and_table_have_the_fields_told() -> None:
    """Names and order are those of the code."""
    assert tuple(name for _, _, name in drawing(_SNAPSHOT, "## Backup frame")) == Frame._fields
    told = [name for row in rows(_SNAPSHOT, "## Backup table") for name in re.findall(r"\w+", row[0])]
    assert tuple(told) == Table.__struct_fields__
    assert f"| `version` | {backup_format.VERSION}; a newer one is refused |" in text_of(_SNAPSHOT)
