"""Wiring as a graph: a tree of text, or DOT for Graphviz. Pure: rows in, lines out.

Rule 1. A tree begins at each muxer that is a member of no other. Muxers have no cycles.
Rule 2. A muxer is drawn once; later it is a line that refers to the first.
Rule 3. The attachments of queues to QUEUE by their names are one number, not lines.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ambermq.engine.address import MUXER_MEMBER, member_address
from ambermq.engine.model.muxer import QUEUE_MUXER
from ambermq.tools.config.attachment_options import member_text, options_of, options_text
from ambermq.tools.wiring.rows import WiringRows

__all__ = ["dot_lines", "tree_lines"]

_Row = Mapping[str, Any]
_BRANCH: Final = ("├── ", "│   ")
_LAST: Final = ("└── ", "    ")


def tree_lines(rows: WiringRows) -> Iterator[str]:
    """Yield the trees of all muxers."""
    below = _below(rows)
    muxers: dict[str, _Row] = {row["name"]: row for row in rows.muxers}
    passed_to = {row["member"].removeprefix(MUXER_MEMBER) for row in rows.attachments if _is_muxer(row)}
    drawn: set[str] = set()
    for name, muxer in muxers.items():
        if name not in passed_to:
            yield _title(muxer, rows)
            yield from _branches(name, muxers, below, drawn)


def dot_lines(rows: WiringRows) -> Iterator[str]:
    """Yield the lines of a graph in DOT: muxers are boxes, queues cylinders, attachments arrows."""
    yield "digraph wiring {"
    yield "  rankdir=LR;"
    for muxer in rows.muxers:
        yield f"  {_quoted('muxer:' + muxer['name'])} [shape=box, label={_quoted(_title(muxer, rows))}];"
    attachments = [row for one in _below(rows).values() for row in one if row["member"] is not None]
    for queue in dict.fromkeys(row["member"] for row in attachments if not _is_muxer(row)):
        yield f"  {_quoted('queue:' + queue)} [shape=cylinder, label={_quoted(queue)}];"
    for row in attachments:
        member = row["member"] if _is_muxer(row) else f"queue:{row['member']}"
        by = options_text(options_of(row))
        label = f" [label={_quoted(by)}]" if by else ""
        yield f"  {_quoted('muxer:' + row['muxer'])} -> {_quoted(member)}{label};"
    yield "}"


def _branches(
    first: str, muxers: Mapping[str, _Row], below: Mapping[str, Sequence[_Row]], drawn: set[str]
) -> Iterator[str]:
    drawn.add(first)
    stack = [("", row, is_last) for row, is_last in _backwards(below.get(first, ()))]
    while stack:
        indent, row, is_last = stack.pop()
        branch, onward = _LAST if is_last else _BRANCH
        by = options_text(options_of(row))
        label = f": {by}" if by else ""
        if not _is_muxer(row):
            yield f"{indent}{branch}{'' if row['member'] is None else 'queue '}{member_text(row)}{label}"
            continue
        member = row["member"].removeprefix(MUXER_MEMBER)
        is_drawn = member in drawn
        title = f"muxer {member}" if is_drawn else _title(muxers[member])
        yield f"{indent}{branch}{title}{label}{' (see above)' if is_drawn and below.get(member) else ''}"
        if not is_drawn:
            drawn.add(member)
            stack += [(indent + onward, one, last) for one, last in _backwards(below.get(member, ()))]


def _backwards(rows: Sequence[_Row]) -> Iterator[tuple[_Row, bool]]:
    """Yield rows in reverse order, each with whether it is the last row."""
    for number, row in enumerate(reversed(rows)):
        yield row, number == 0


def _title(row: _Row, rows: WiringRows | None = None) -> str:
    more = "" if row.get("probability") is None else f" {row['probability']}"
    title = f"muxer {row['name']} ({row['class']}{more})"
    if rows is not None and row["name"] == QUEUE_MUXER:
        count = sum(map(_is_by_name, rows.attachments))
        title += f": {count:,} {'queue' if count == 1 else 'queues'} by name"
    return title


def _below(rows: WiringRows) -> dict[str, list[_Row]]:
    below: dict[str, list[_Row]] = {}
    for row in rows.attachments:
        if not _is_by_name(row):
            below.setdefault(row["muxer"], []).append(row)
    return below


def _is_muxer(row: _Row) -> bool:
    return str(row["member"]).startswith(MUXER_MEMBER)


def _is_by_name(row: _Row) -> bool:
    is_named = isinstance(row["destination"], str) and member_address(row["destination"]) == row["member"]
    return row["muxer"] == QUEUE_MUXER and is_named


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
