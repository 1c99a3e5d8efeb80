"""How the tables of a state become blocks of rows, and tables again.

Rule. Each step is small, because a broker may be running.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, Final, TypeVar

import msgspec

from ambermq.engine.errors import EngineError
from ambermq.snapshot.block_file import Block, BlockKind
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["ImageFault", "encode", "in_order", "json_blocks", "map_of", "sorted_items"]

_JSON_BYTES: Final = 16 << 10
_SORTED_AT_ONCE: Final = 1024
_MAPPED_AT_ONCE: Final = 256

_Value = TypeVar("_Value")
encode = msgspec.json.Encoder().encode
"""Return a row in JSON."""


class ImageFault(EngineError):
    """Blocks with valid checksums that are not a valid state."""


def json_blocks(kind: BlockKind, rows: Iterable[Any]) -> Iterator[Block]:
    """Yield blocks of rows. Each row is encoded by itself, so that no single call takes long."""
    parts: list[bytes] = []
    size = 0
    for row in rows:
        encoded = encode(row)
        parts.append(encoded)
        size += len(encoded)
        if size >= _JSON_BYTES:
            yield Block(kind, [b"[" + b",".join(parts) + b"]"])
            parts, size = [], 0
    if parts:
        yield Block(kind, [b"[" + b",".join(parts) + b"]"])


def in_order(table: "PersistentMap[int, _Value]") -> Iterator[_Value]:
    """Return the values of a map, sorted by key."""
    return map(itemgetter(1), sorted_items(table))


def sorted_items(table: "PersistentMap[Any, _Value]") -> Iterator[tuple[Any, _Value]]:
    """Return the items of a map, sorted by key. It sorts in small pieces, because one long call stops a broker."""
    items = iter(table.items())
    runs = []
    while some := list(islice(items, _SORTED_AT_ONCE)):
        some.sort(key=itemgetter(0))
        runs.append(some)
    return merge(*runs, key=itemgetter(0)) if len(runs) > 1 else iter(runs[0] if runs else ())


def map_of(items: "dict[int, _Value]") -> "PersistentMap[int, _Value]":
    """Return a map, built in small steps: a call with millions of items would stop a running broker."""
    empty: PersistentMap[int, _Value] = PersistentMap()
    draft, left = empty.mutate(), iter(items.items())
    while some := dict(islice(left, _MAPPED_AT_ONCE)):
        draft.update(some)
    return draft.finish()
