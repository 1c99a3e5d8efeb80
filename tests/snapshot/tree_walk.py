"""A walk through the tree of a persistent queue: its nodes and chunks."""

from collections.abc import Iterator
from typing import Any


def objects_of(node: Any) -> Iterator[Any]:
    """Yield a node, and all nodes and chunks below it."""
    yield node
    if type(node) is tuple:
        for child in node:
            yield from objects_of(child)


def leaf_nodes(node: Any) -> Iterator[Any]:
    """Yield the nodes of chunks."""
    for one in objects_of(node):
        if type(one) is tuple and one and type(one[0]) is not tuple:
            yield one


def depths(node: Any, depth: int = 0) -> set[int]:
    """Return how deep the chunks below a node are."""
    if type(node) is not tuple:
        return {depth}
    return set().union(*[depths(child, depth + 1) for child in node])
