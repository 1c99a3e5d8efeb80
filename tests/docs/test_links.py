"""The checker of links finds what leads nowhere, and the pages have nothing of that; the index leads to every page."""

from pathlib import Path

import pytest

from tests.docs import links
from tests.docs.links import anchors, broken_links, pages
from tests.docs.pages import ROOT, rows, text_of


def _page(directory: Path, text: str) -> Path:
    page = directory / "page.md"
    page.write_text(text)
    return page


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """A link names a file that is there, and a heading of it."""
    assert list(broken_links(page)) == []


def test_what_leads_nowhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not there, a heading of another page, a heading of the page itself, each with its line."""
    monkeypatch.setattr(links, "ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# Other\n\n## A `b`, and [c](d.md)\n\n## Twice\n\n## Twice\n")
    good = "[x](other.md) [x](other.md#a-b-and-c) [x](other.md#twice-1) [x](#top) [x](https://example.org/#none)"
    code = "`[x](none.md)`\n```sh\n[x](none.md)\n# no heading\n```"
    bad = "[x](none.md) [x](other.md#none)\n[x](#no-heading)"
    page = _page(tmp_path, f"# Top\n{good}\n{code}\n{bad}\n")
    assert list(broken_links(page)) == [
        "page.md:8: no file none.md",
        "page.md:8: no heading #none in other.md",
        "page.md:9: no heading #no-heading in page.md",
    ]


def test_anchors_are_those_of_github(tmp_path: Path) -> None:
    """Case, spaces, marks and headings that are alike."""
    page = _page(tmp_path, '# `[log]` & Co.\n\n## x_y-z\n\n## Same\n\n### Same\n<a id="old"></a>\n')
    assert anchors(page) == {"log--co", "x_y-z", "same", "same-1", "old"}


def test_the_index_leads_to_every_page() -> None:
    """docs/index.md links each page beside it."""
    text = text_of("docs/index.md")
    named = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {name for name in named if f"]({name}" not in text} == set()


@pytest.mark.parametrize("task", ["Run", "Send", "Secure", "Back up", "Look back", "Compact", "Find a fault"])
def test_the_index_is_by_task(task: str) -> None:
    """Each task has a table of pages."""
    assert list(rows("docs/index.md", f"## {task}"))


@pytest.mark.parametrize("term", ["tick", "muxer", "attachment", "horizon", "epoch", "spare", "ballast"])
def test_the_words_of_the_files_are_explained(term: str) -> None:
    """What is a configuration key or the name of a file state has an entry of its own."""
    assert term in anchors(ROOT / "docs" / "glossary.md")
