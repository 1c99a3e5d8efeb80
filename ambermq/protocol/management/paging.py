"""Pages of what QUERY finds: `attributeNames`, `results` and `total`, as the AMQP management draft has them.

Rule 1. A page ends where it holds so many bytes of text as well: a client that pages goes on behind what it got.
Rule 2. A client may name the attributes that it wants; what it names and is not there is null.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ambermq.engine.errors import Refused
from ambermq.protocol.management.request_fields import asked_number, refuse_unknown

__all__ = ["PAGE_BYTES_MAX", "Window", "asked_window", "page_of"]

PAGE_BYTES_MAX: Final = 1 << 20
"""Characters of the texts on a page, but for those of its last row."""
_NAMES_MAX: Final = 100

Window = tuple[int, int, tuple[str, ...]]
"""First row, most rows, and the attributes that were asked for: none for all."""


def asked_window(asked: Mapping[str, Any], body: Mapping[str, Any], noun: str, results_max: int) -> Window:
    """Return which rows and attributes a QUERY is about; Refused where it does not say that well."""
    refuse_unknown(body, noun, "attributeNames")
    given = body.get("attributeNames")
    names = [] if given is None else given
    if not isinstance(names, list) or len(names) > _NAMES_MAX or not all(isinstance(name, str) for name in names):
        raise Refused("amqp:invalid-field", f"'attributeNames' must be a list of at most {_NAMES_MAX} names")
    offset, count = asked_number(asked, "offset", 0), asked_number(asked, "count", results_max)
    return offset, min(count, results_max), tuple(map(str, names))


def page_of(
    rows: Iterable[Mapping[str, Any]], total: int, names: Sequence[str], attributes: Sequence[str]
) -> dict[str, Any]:
    """Return the answer to a QUERY: these rows, of `total`, with the attributes `names`, or all where it is empty."""
    shown, results, size = list(names or attributes), [], 0
    for row in rows:
        results.append([row.get(name) for name in shown])
        size += sum(_size(value) for value in results[-1])
        if size >= PAGE_BYTES_MAX:
            break
    return {"attributeNames": shown, "results": results, "total": total}


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(map(_size, value))
    return sum(map(_size, value.values())) if isinstance(value, dict) else 1
