"""The rules of language that a program can check, over the package, its command line and the pages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
MODULES: Final = [
    path
    for root in ("ambermq", "bench", "tests")
    for path in sorted((ROOT / root).rglob("*.py"))
    if "node_modules" not in path.parts
]
PAGES: Final = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

FIRST_WORDS: Final = re.compile(r"(Let|Be|Tell|Give|Do|Say|Take)\b(?! (a snapshot|the snapshots)\b|, list, verify)")
"""They do not say what a function does or returns; one takes a snapshot all the same, that is the word of the field."""
PERSONS: Final = re.compile(r"\b(nobody|somebody|whoever)\b", re.IGNORECASE)
"""The actor of a sentence has a name: the broker, a receiver, a link."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a file with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def test_a_docstring_says_what_its_function_does() -> None:
    """It begins with Return, Append, Raise, Start: not with one of the verbs that leave the actor open."""
    found = [(path, line) for path in MODULES for line, text in docstrings(path) if FIRST_WORDS.match(text)]
    assert [f"{path.relative_to(ROOT)}:{line}" for path, line in found] == []


def test_an_actor_has_a_name() -> None:
    """In code, comments, messages and pages alike."""
    lines = (
        (path, number, line)
        for path in (*MODULES, *PAGES)
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    )
    assert [f"{path.relative_to(ROOT)}:{number}" for path, number, line in lines if PERSONS.search(line)] == []
