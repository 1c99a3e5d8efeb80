"""The links of each node, by its id: producers by muxer or queue, consumers by queue."""

from typing import Final

from ambermq.engine.model.state import Links
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["linked", "unlinked"]

_NO_LINKS: Final[Links] = PersistentMap()


def linked(links: "PersistentMap[int, Links]", node: int, link: int) -> "PersistentMap[int, Links]":
    """Return the links of all nodes with one more link of a node."""
    return links.set(node, links.get(node, _NO_LINKS).set(link, None))


def unlinked(links: "PersistentMap[int, Links]", node: int, link: int) -> "PersistentMap[int, Links]":
    """Return the links of all nodes without a link of a node."""
    known = links.get(node)
    if known is None or link not in known:
        return links
    return links.set(node, known.delete(link)) if len(known) > 1 else links.delete(node)
