"""The pages of the project as tests read them: code blocks, tables and drawings."""

import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["PAGES", "ROOT", "blocks", "drawing", "rows", "steps", "text_of"]

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
)

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^ {4,6}(\d+) +(u8|u16|u32|u64|i64|\d+ B) +(\w+)", re.MULTILINE)
_WIDTHS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i64": 8}


def text_of(page: str) -> str:
    """Return a page's text."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """Return a page's code blocks of one language."""
    return [block[2] for block in _BLOCK.finditer(text_of(page)) if block[1] == language]


def steps(page: str) -> list[tuple[str, str]]:
    """Return the commands of a page's consoles, each with what it is shown to print."""
    told = [step for block in blocks(page, "console") for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, shown) for command, _, shown in (step.partition("\n") for step in told)]


def rows(page: str, heading: str) -> Iterator[list[str]]:
    """Yield the cells of the first table below a heading, without its head."""
    _, _, rest = text_of(page).partition(f"\n{heading}\n")
    assert rest, f"{page} has no heading {heading!r}"
    table = re.search(r"(?:^\|.*\n)+", rest.partition("\n#")[0], re.MULTILINE)
    assert table, f"{page}: no table below {heading!r}"
    for line in table[0].splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split(" |")]


def drawing(page: str, heading: str) -> list[tuple[int, int, str]]:
    """Return offset, width and name of each field drawn below a heading."""
    _, _, rest = text_of(page).partition(f"\n{heading}\n")
    drawn = rest.partition("\n## ")[0]
    return [
        (int(offset), _WIDTHS.get(width) or int(width.split()[0]), name)
        for offset, width, name in _FIELD.findall(drawn)
    ]
