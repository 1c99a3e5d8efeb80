"""The tables of events in docs/, derived from what stands beside each event: `python -m tests.docs.event_tables`."""

import re
from collections.abc import Iterable
from dataclasses import astuple

from ambermq.engine.events.event_type import EventType
from ambermq.engine.events.registry import REGISTRY
from tests.docs.pages import ROOT, text_of

__all__ = ["with_facts", "with_layouts"]


def with_layouts(page: str) -> str:
    """Return docs/log-format.md with the table of types as it is now."""
    types = sorted(REGISTRY, key=lambda one: one.number)
    return _with_table(page, "## Record", (_layout_row(one) for one in types))


def with_facts(page: str) -> str:
    """Return docs/log-source.md with the table of facts as it is now."""
    return _with_table(page, "## Facts", (_row([f"`{one.name}`", one.facts_text]) for one in REGISTRY))


def _layout_row(one: EventType) -> str:
    return _row([str(one.number), f"`{one.name}`", *astuple(one.layout)])


def _row(cells: Iterable[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def _with_table(page: str, heading: str, rows: Iterable[str]) -> str:
    """Replace the rows of the first table below a heading; its two lines of head stay."""
    before, found, after = page.partition(f"\n{heading}\n")
    assert found, f"no heading {heading!r}"
    table = re.compile(r"^((?:\|.*\n){2})(?:\|.*\n)*", re.MULTILINE)
    text = "".join(f"{row}\n" for row in rows)
    return before + found + table.sub(lambda match: match[1] + text, after, count=1)


def _main() -> None:
    for name, derived in (("docs/log-format.md", with_layouts), ("docs/log-source.md", with_facts)):
        (ROOT / name).write_text(derived(text_of(name)), encoding="utf-8")


if __name__ == "__main__":
    _main()
