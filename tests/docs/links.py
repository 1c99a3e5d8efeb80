"""`python -m tests.docs.links`: each link of the pages names a file that is there, and each anchor a heading of it.

Rule 1. A link with a scheme, such as https:, is not followed.
Rule 2. Code is no link: blocks between ``` and text between backticks are left out.
Rule 3. An anchor is made of a heading as GitHub makes it: lower case, a hyphen for each space, and of other characters
letters, digits, hyphens and underscores alone; the second of two that are alike ends in -1.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.docs.pages import ROOT

__all__ = ["anchors", "broken_links", "pages"]

_BLOCK: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`[^`\n]*`")
_LINK: Final = re.compile(r"\]\((?P<path>[^)#\s]*)(#(?P<anchor>[^)\s]*))?\)")
_SCHEME: Final = re.compile(r"[a-z][a-z+.-]*:")
_HEADING: Final = re.compile(r"^#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)
_MARKED: Final = re.compile(r"<a (?:id|name)=\"([^\"]+)\">")
_LINKED: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def pages() -> list[Path]:
    """Return the pages: those of the top level, of docs/ and of bench/."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")])


def broken_links(page: Path) -> Iterator[str]:
    """Yield each link of a page that leads nowhere, with its line."""
    text = _CODE.sub(_blank, _BLOCK.sub(_blank, page.read_text(encoding="utf-8")))
    for link in _LINK.finditer(text):
        if _SCHEME.match(link["path"]):
            continue
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        place = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, link.start()) + 1}"
        if not target.exists():
            yield f"{place}: no file {link['path']}"
        elif link["anchor"] and link["anchor"] not in anchors(target):
            yield f"{place}: no heading #{link['anchor']} in {target.relative_to(ROOT)}"


def _blank(found: re.Match[str]) -> str:
    """Return as many characters and lines as code has."""
    return re.sub(r"[^\n]", " ", found[0])


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return what may stand behind a # in a link to a page."""
    if page.suffix != ".md":
        return frozenset()
    text = _BLOCK.sub(_blank, page.read_text(encoding="utf-8"))
    seen = Counter[str]()
    found = set(_MARKED.findall(text))
    for heading in _HEADING.findall(text):
        words = re.sub(r"[^\w\- ]", "", _LINKED.sub(r"\1", heading).lower()).replace(" ", "-")
        found.add(f"{words}-{seen[words]}" if seen[words] else words)
        seen[words] += 1
    return frozenset(found)


def main() -> int:
    """Print the links that lead nowhere; return 1 if there are any."""
    found = [line for page in pages() for line in broken_links(page)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
