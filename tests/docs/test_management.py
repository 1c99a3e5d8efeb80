"""docs/management.md tells of the node `$management` what there is, and nothing else."""

import re

import pytest

from ambermq.protocol.management.attachments import ATTACHMENT_ATTRIBUTES
from ambermq.protocol.management.muxers import MUXER_ATTRIBUTES
from ambermq.protocol.management.operations import KINDS, describe
from ambermq.protocol.management.queues import QUEUE_ATTRIBUTES
from ambermq.protocol.management.templates import TEMPLATE_ATTRIBUTES
from tests.docs.pages import rows, text_of

_PAGE = "docs/management.md"
_CODE = re.compile(r"`([^`]*)`")


def test_every_type_is_listed_with_its_operations() -> None:
    """The table of types is what GET-OPERATIONS answers."""
    listed = {kind.strip("`| "): said.partition(":")[0].split(", ") for kind, said in rows(_PAGE, "## Types")}
    assert listed == describe("GET-OPERATIONS", {})


@pytest.mark.parametrize("kind", KINDS)
def test_every_operation_is_told_of(kind: str) -> None:
    """In the section of its type, whose tables and sentences name it."""
    section = next(part for part in text_of(_PAGE).split("\n## ")[3:] if f"`{kind}`" in part or f"type {kind}" in part)
    assert [name for name in KINDS[kind].operations if name not in section and kind != "org.ambermq.template"] == []


@pytest.mark.parametrize(
    ("heading", "attributes"),
    [
        ("Queues", QUEUE_ATTRIBUTES),
        ("Muxers", MUXER_ATTRIBUTES),
        ("Attachments", ATTACHMENT_ATTRIBUTES),
        ("Templates", TEMPLATE_ATTRIBUTES),
    ],
)
def test_every_attribute_is_told_of(heading: str, attributes: tuple[str, ...]) -> None:
    """In the section of its type."""
    section = text_of(_PAGE).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert set(attributes) <= set(_CODE.findall(section))
