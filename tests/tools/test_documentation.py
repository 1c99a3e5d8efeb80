"""The pages that `ambermq docs` prints."""

import json

from tests.docs.pages import ROOT
from tests.tools.conftest import Run


def test_all_pages_are_listed(run: Run) -> None:
    rows = json.loads(run("docs", "--output", "json").stdout)
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {f"{row['page']}.md" for row in rows} == there
    titles = {row["page"]: row["title"] for row in rows}
    assert titles["durability"] == "What is durable, and when"


def test_a_page_is_printed_as_markdown(run: Run) -> None:
    assert run("docs", "durability").stdout == (ROOT / "docs/durability.md").read_text()
    assert run("docs", "durability.md").stdout == (ROOT / "docs/durability.md").read_text()


def test_the_path_of_a_page(run: Run) -> None:
    (path,) = run("docs", "decisions/README", "--path").stdout.splitlines()
    assert path.endswith("/docs/decisions/README.md")


def test_an_unknown_page_has_near_names(run: Run) -> None:
    failed = run("docs", "durabilty")
    assert failed.exit_code == 6
    assert "no such page: expected one of durability;" in failed.stderr
