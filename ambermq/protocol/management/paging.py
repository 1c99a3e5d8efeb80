"""Pages of a QUERY: `attributeNames`, `results` and `total`, as in the AMQP management draft.

Rule 1. A page is bounded in rows, in values and in characters. A client asks for the next page, after the last row that
        it got.
Rule 2. A client may name the attributes of the page. A name that the type does not have gives null.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ambermq.engine.errors import Refused
from ambermq.protocol.management.request_fields import number_field, refuse_unknown

__all__ = ["PAGE_BYTES_MAX", "Window", "page_of", "query_window", "rows_max"]

PAGE_BYTES_MAX: Final = 1 << 20
"""Characters of the texts on a page; the row that reaches the bound is the last."""
_PAGE_VALUES_MAX: Final = 4096
"""Values on a page, such as 256 queues with all attributes: each takes up to 2 us of one step of the event loop."""
_NAMES_MAX: Final = 100

Window = tuple[int, int, tuple[str, ...]]
"""First row, most rows, and the names of the attributes; empty for all attributes."""


def query_window(properties: Mapping[str, Any], body: Mapping[str, Any], noun: str, results_max: int) -> Window:
    """Return the rows and attributes that a QUERY asks for. Raises Refused."""
    refuse_unknown(body, noun, "attributeNames")
    value = body.get("attributeNames")
    names = [] if value is None else value
    if not isinstance(names, list) or len(names) > _NAMES_MAX or not all(isinstance(name, str) for name in names):
        raise Refused("amqp:invalid-field", f"'attributeNames' must be a list of at most {_NAMES_MAX} names")
    offset, count = number_field(properties, "offset", 0), number_field(properties, "count", results_max)
    return offset, min(count, results_max), tuple(map(str, names))


def page_of(
    rows: Iterable[Mapping[str, Any]], total: int, names: Sequence[str], attributes: Sequence[str]
) -> dict[str, Any]:
    """Return the answer to a QUERY: these rows, of `total`, with the attributes `names`; with all if it is empty."""
    columns, results, size = list(names or attributes), [], 0
    for row in rows:
        results.append([row.get(name) for name in columns])
        size += sum(_size(value) for value in results[-1])
        if size >= PAGE_BYTES_MAX or len(results) * len(columns) >= _PAGE_VALUES_MAX:
            break
    return {"attributeNames": columns, "results": results, "total": total}


def rows_max(names: Sequence[str], attributes: Sequence[str]) -> int:
    """Return the most rows of a page with the attributes `names`; with all if it is empty."""
    return -(-_PAGE_VALUES_MAX // len(names or attributes))


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(map(_size, value))
    return sum(map(_size, value.values())) if isinstance(value, dict) else 1
