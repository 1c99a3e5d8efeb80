"""The page of conformance: each row says what the broker does, and names a test that exists."""

import re
from collections import Counter
from typing import Final, NamedTuple

from tests.docs.pages import ROOT, text_of

_TEST: Final = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
_BEHAVIOUR: Final = re.compile(r"holds(; .+)?|(deviates|not offered): .+")
_TITLES: Final = (
    *("Types (part 1)", "Transport (part 2)", "Messaging (part 3)", "Transactions (part 4)", "Security (part 5)"),
    *("Anonymous terminus (anonterm)", "Link pairing (linkpair)", "Filter expressions (filtex)"),
    *("Connection uniqueness (soleconn)", "Management (the working draft)", "Claims-based security (cbs)"),
)


class Clause(NamedTuple):
    """A row of the page."""

    title: str
    clause: str
    requirement: str
    behaviour: str
    test: str


def clauses() -> list[Clause]:
    """Return the rows of all tables of clauses; a row with another number of cells is a mistake."""
    found, title = [], ""
    for line in text_of("docs/conformance.md").splitlines():
        if line.startswith("## "):
            title = line[3:]
        elif title and line.startswith("| ") and not line.startswith("| clause |"):
            found.append(Clause(title, *(cell.strip() for cell in line.strip("|").split(" | "))))
    return found


def test_every_named_test_exists() -> None:
    """Each row of a clause names a test; a test that is renamed or removed is changed on the page too."""
    for clause in clauses():
        named = _TEST.fullmatch(clause.test)
        assert named, clause
        source = (ROOT / "tests" / named[1]).read_text(encoding="utf-8")
        assert f"\ndef {named[2]}(" in source, clause


def test_every_row_says_what_the_broker_does() -> None:
    """It holds, or the row has the reason or the refusal; no requirement is there twice."""
    rows = clauses()
    assert not [row for row in rows if not _BEHAVIOUR.fullmatch(row.behaviour) or not row.clause or not row.requirement]
    assert max(Counter(row[:3] for row in rows).values()) == 1


def test_every_document_is_listed() -> None:
    """The parts of the specification and the documents beside it, in this order, each with its clauses."""
    assert tuple(dict.fromkeys(row.title for row in clauses())) == _TITLES
