"""The page of conformance: every test that it names exists."""

import re

from tests.docs.pages import ROOT, text_of

_NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def test_every_named_test_exists() -> None:
    """Each row of a clause names a test; a test that is renamed or removed is changed on the page too."""
    page = text_of("docs/conformance.md")
    named = _NAMED.findall(page)
    assert len(named) == sum(line.startswith("| ") and "clause" not in line for line in page.splitlines())
    for path, name in named:
        source = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert f"\ndef {name}(" in source, f"{path}::{name}"
